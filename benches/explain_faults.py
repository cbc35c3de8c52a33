"""The faults that `benches/explain` puts into paths: what is written for each, which findings are right, and by which verdicts of the emulator."""
import math

SEGMENT = 1448
# A full segment on Ethernet: headers of TCP and IP with timestamps, and the frame.
WIRE = 1538
# What the path's own rate may be called, where it is not hidden and where it is.
RATE = ("ceiling", "path_rate")
# From this share of what the path carries on nothing is left to find.
AT_RATE = 0.94


class Path:
    """What a case's path would carry without the fault."""

    def __init__(self, draws):
        self.draws = draws
        self.draw()

    def draw(self):
        self.rtt = math.exp(self.draws.uniform(math.log(0.005), math.log(0.2)))
        self.rate = math.exp(self.draws.uniform(math.log(2e6), math.log(1e9)))
        self.congestion = self.draws.choice(["reno", "cubic", "bbr"])

    def until(self, holds):
        """Draws until this holds of the path."""
        while not holds(self):
            self.draw()
        return self

    @property
    def bdp(self):
        """Rate x RTT, bytes."""
        return self.rate * self.rtt / 8

    @property
    def segments(self):
        return self.bdp / WIRE

    @property
    def carries(self):
        """Goodput of TCP, bit/s."""
        return self.rate * SEGMENT / WIRE

    @property
    def seconds(self):
        """Long enough to leave slow start behind, and short enough for a thousandth of a gigabyte."""
        return min(30, max(6, 80 * self.rtt))

    def part(self, least, most):
        """A share of something, spread evenly by its logarithm."""
        return math.exp(self.draws.uniform(math.log(least), math.log(most)))


class Fault:
    """A fault (`always` the limit, whatever it leaves: a half-duplex medium takes 4 to 28 % of what its rate would carry): `write` makes a scenario for a path, `right` are the findings that name it, and `acted` asks the record whether it did anything."""

    def __init__(self, write, right, acted=None, always=False):
        self.write, self.right, self.acted, self.always = write, right, acted or (lambda case: True), always

    def answers(self, case, path):
        """The findings that are right of this case, by what the emulator did and what the path leaves."""
        if self.always:
            return self.right
        if not self.acted(case):
            # It was there and did nothing: what remains are the rate, and what slow start's end in the path's own queue cost.
            return (*RATE, *self.right, "congestion_loss")
        if (case.get("goodput_bps") or 0) >= AT_RATE * path.carries:
            return (*RATE, "shallow_queue") if "shallow_queue" in self.right else RATE
        return self.right


def packets(path, share):
    return max(4, round(path.bdp * share / 1500))


def toml(path, near="", far="", link="", forward="", reverse="", flow="", queue=1.0, more="", rate=None, seconds=None, omit=None):
    """A path with what is said of its parts; the queue in shares of rate x RTT."""
    seconds = seconds or path.seconds
    omit = seconds / 4 if omit is None else omit
    big = round(max(8 * path.bdp, 6 << 20))
    hosts = f"[hosts.near]\n{near}" + ("" if "send_buffer" in near else f"send_buffer = {big}\n")
    hosts += f"[hosts.far]\n{far}" + ("" if "receive_buffer" in far or "window" in flow else f"receive_buffer = {big}\n")
    return (
        f'title = "explain"\nclock = "virtual"\n{hosts}[[link]]\nbetween = ["near", "far"]\nrate = {rate or round(path.rate)}\n'
        f'delay = "{path.rtt / 2 * 1e6:.0f}us"\nlimit = {packets(path, queue)}\n{link}'
        + (f"[link.forward]\n{forward}" if forward else "") + (f"[link.reverse]\n{reverse}" if reverse else "")
        + f'[[flow]]\nfrom = "near"\nto = "far"\ncongestion = "{path.congestion}"\nduration = "{seconds:.1f}s"\nomit = "{omit:.2f}s"\n{flow}{more}'
    )


def window(path, share):
    """A window of so much of rate x RTT, some segments at least."""
    return max(4 * SEGMENT, round(path.bdp * share))


def wide(path, segments=40):
    """A path that so many segments don't fill."""
    return path.until(lambda p: p.segments >= segments)


def lossy(path):
    """A path that a loss-based control with random losses doesn't fill, and that BBR does."""
    return path.until(lambda p: p.congestion != "bbr" and p.segments >= 40)


def loss_for(path, share):
    """The loss at which Reno reaches so much of the rate (Mathis et al.: 1.22 / sqrt(p) segments in a round trip)."""
    return min(0.05, 1.5 / (path.segments * share) ** 2)


def random_loss(path):
    """Losses that leave a part of the rate, of which ten at least fall into the test."""
    def draw(p):
        p.loss = loss_for(p, p.part(0.1, 0.4))
        sent = p.loss ** -0.5 * 1.22 / p.rtt * p.seconds * 0.75
        return p.congestion != "bbr" and p.segments >= 40 and sent * p.loss >= 10
    return path.until(draw)


def bursts(path):
    """Bursts of three on average."""
    path = random_loss(path)
    return toml(path, forward=f"loss = {{ to_bad = {path.loss:.7f}, to_good = 0.33, loss_bad = 1.0 }}\n")


def udp(path, least, most):
    path.until(lambda p: p.rate <= 3e8)
    rate = round(path.rate * 0.95 * path.draws.uniform(least, most))
    return (
        f'title = "explain"\nclock = "virtual"\n[[link]]\nbetween = ["near", "far"]\nrate = {round(path.rate)}\ndelay = "{path.rtt / 2 * 1e6:.0f}us"\n'
        f'limit = {packets(path, 1)}\n[[flow]]\nprotocol = "udp"\nrate = {rate}\nduration = "6s"\nomit = "1s"\n'
    )


def cross(path):
    seconds = path.seconds
    return f'[[flow]]\nfrom = "near"\nto = "far"\ncongestion = "{path.congestion}"\nbackground = true\nduration = "{seconds:.1f}s"\nomit = "{seconds / 4:.2f}s"\n'


def short(path):
    path.until(lambda p: p.segments >= 30)
    return toml(path, flow=f'bytes = {round(path.bdp * path.part(0.5, 2)) + 20000}\ninterval = "10ms"\n', omit=0)


def route_step(path):
    """The path becomes longer while data flows."""
    more = path.rtt * path.part(0.5, 2) / 2
    return toml(path, forward=f'delay = {{ steps = [["0s", "{path.rtt / 2 * 1e6:.0f}us"], ["{path.seconds / 2:.1f}s", "{(path.rtt / 2 + more) * 1e6:.0f}us"]] }}\n')


def rate_step(path):
    return toml(path, rate=f'{{ steps = [["0s", {round(path.rate)}], ["{path.seconds / 2:.1f}s", {round(path.rate * path.part(0.1, 0.4))}]] }}')


def dropped(cause, direction=0):
    """Whether the emulator dropped packets of data by this cause."""
    def did(case):
        directions = (case.get("fidelity") or {}).get("directions") or []
        return len(directions) > direction and directions[direction]["dropped"].get(cause, 0) > 0
    return did


def overflowed(case):
    """Whether the queue of the way back dropped a good part of the acknowledgements."""
    directions = (case.get("fidelity") or {}).get("directions") or []
    return len(directions) > 1 and directions[1]["dropped"]["queue"] >= 0.05 * max(1, directions[1]["packets_in"])


def counted(member, direction=0):
    def did(case):
        directions = (case.get("fidelity") or {}).get("directions") or []
        return len(directions) > direction and (directions[direction].get(member) or 0) > 0
    return did


FAULTS = {
    "none, deep queue": Fault(lambda p: toml(p, queue=p.part(1, 4)), RATE),
    "jitter": Fault(lambda p: toml(p, forward=f'jitter = {{ uniform = "{p.rtt * p.part(0.05, 0.2) * 1e6:.0f}us" }}\n'), RATE),
    "shallow queue": Fault(lambda p: toml(wide(p), queue=p.part(0.03, 0.12)), ("shallow_queue",), dropped("queue")),
    "receive window, tcp_rmem": Fault(lambda p: toml(wide(p), far=f"receive_buffer = {max(8192, 2 * window(p, p.part(0.05, 0.4)))}\n"), ("receive_window",)),
    "receive window, asked for": Fault(lambda p: toml(wide(p), flow=f"window = {window(p, p.part(0.05, 0.4))}\n"), ("receive_window",)),
    "window scaling off": Fault(lambda p: toml(wide(p, 90), far="window_scaling = false\n"), ("receive_window",)),
    "window scaling stripped": Fault(lambda p: toml(wide(p, 90), reverse='window_scale = "strip"\n'), ("receive_window",)),
    "send buffer": Fault(lambda p: toml(wide(p), near=f"send_buffer = {max(16384, 2 * window(p, p.part(0.05, 0.4)))}\n"), ("send_buffer",)),
    "asked rate, UDP": Fault(lambda p: udp(p, 0.5, 0.9), ("asked_rate",), always=True),
    "UDP above the rate": Fault(lambda p: udp(p, 1.2, 2.0), ("path_loss", "path_rate"), always=True),
    "random loss": Fault(lambda p: (random_loss(p), toml(p, forward=f"loss = {p.loss:.7f}\n"))[1], ("random_loss",), dropped("loss")),
    "bursts of loss": Fault(bursts, ("random_loss",), dropped("loss")),
    "policer": Fault(lambda p: toml(wide(p), forward=f'policer = {{ rate = {round(p.rate * p.part(0.2, 0.7))}, burst = {max(16 << 10, round(p.bdp * p.part(0.1, 1)))} }}\n'), ("policer",), dropped("policer")),
    "reordering": Fault(lambda p: toml(wide(p), forward=f'reorder = {{ probability = "{p.part(1, 5):.1f}%", by = "{p.rtt * p.part(0.2, 0.8) * 1e3:.1f}ms" }}\n'), ("reordering",), counted("held_back")),
    "acknowledgements lost": Fault(lambda p: toml(wide(p), reverse=f'loss = "{p.part(30, 70):.0f}%"\n'), ("reverse_path",), dropped("loss", 1)),
    "way back full": Fault(lambda p: toml(wide(p, 200), reverse=f"rate = {round(p.rate / p.draws.uniform(60, 120))}\nlimit = 100\n"), ("reverse_path",), overflowed),
    "half duplex": Fault(lambda p: toml(p, link=f'half_duplex = {{ guard = "50us", turn = "{p.part(1, 4):.1f}ms" }}\n', rate=round(min(p.rate, 5e7))), ("half_duplex",), always=True),
    "MTU black hole": Fault(lambda p: toml(p, link="mtu = 1500\n", forward="drop_above = 1400\n"), ("mtu_black_hole",), always=True),
    "short transfer": Fault(short, ("slow_start",)),
    "cross traffic": Fault(lambda p: toml(wide(p), queue=0.5, more=cross(p)), ("cross_traffic", "path_rate", "congestion_loss"), always=True),
    "rate falls": Fault(rate_step, ("path_changed",), always=True),
    "path becomes longer": Fault(route_step, ("path_changed",)),
    "outage": Fault(lambda p: toml(p, link=f'outage = {{ at = "{p.seconds / 2:.1f}s", for = "{p.part(1, 2):.1f}s" }}\n'), ("path_changed",), always=True),
    "ECN marks": Fault(lambda p: toml(wide(p), near='ecn = "on"\n', far='ecn = "on"\n', forward=f"ecn_threshold = {packets(p, p.part(0.02, 0.1))}\n"), ("ecn_marks",), counted("marked")),
    "SACK off, losses": Fault(lambda p: (random_loss(p), toml(p, near="sack = false\n", forward=f"loss = {p.loss:.7f}\n"))[1], ("sack_missing", "random_loss"), dropped("loss")),
}


def application(path, end, least, most):
    """A program that moves so much of what the path carries."""
    return f'{end} = {{ rate = {max(8000, round(path.carries * path.part(least, most)))} }}\n'


def pauses(path, end):
    """A program that stops for a good part of each second or so."""
    every = max(1.0, 12 * path.rtt)
    return f'{end} = {{ pause = "{every * path.part(0.3, 0.6):.2f}s", every = "{every:.2f}s" }}\n'


FAULTS |= {
    "slow reader": Fault(lambda p: toml(wide(p), flow=application(p, "reader", 0.05, 0.5)), ("slow_reader",)),
    "reader that pauses": Fault(lambda p: toml(wide(p), far=f"receive_buffer = {round(p.bdp * 3) + 131072}\n", flow=pauses(p, "reader")), ("slow_reader",)),
    "slow writer": Fault(lambda p: toml(wide(p), flow=application(p, "writer", 0.05, 0.5)), ("slow_writer",)),
    "writer that pauses": Fault(lambda p: toml(wide(p), flow=pauses(p, "writer")), ("slow_writer",)),
    "Nagle and delayed ACK": Fault(lambda p: toml(p.until(lambda p: p.segments >= 40 and p.rtt < 0.05), flow=f'messages = {{ size = {round(p.part(300, 3000))}, writes = 2 }}\n'), ("nagle",)),
}
