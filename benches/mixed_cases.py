"""The cases of `benches/mixed`: paths, hosts and programs drawn by a seed, with several limits each, and the scenario of a case with any of its limits lifted."""
import math
import random

# What a frame takes beside the IP packet, and the headers of TCP over IPv4 with timestamps.
OVERHEAD, HEADERS = 38, 52
# Segments that a run carries at the most: up to 1 Gbit/s each is a packet of its own, above they cross the lab in bundles.
SEGMENTS, BUNDLED = 40_000, 400_000
# A path has at most this share of them in flight, so that a test has so many round trips at the least.
ROUND_TRIPS = 15
CONTROLS = {"cubic": 40, "reno": 20, "bbr": 30, "htcp": 2, "illinois": 2, "westwood": 2, "vegas": 2, "bic": 2}
QUEUES = {"drop-tail": 60, "codel": 8, "fq_codel": 12, "pie": 6, "red": 4, "cake": 6, "dualpi2": 4}
# How often each limit is drawn, in relation to the others.
WEIGHTS = {
    "receive window": 12, "send buffer": 10, "loss": 12, "policer": 8, "reordering": 5, "jitter": 3, "duplicates": 2, "lost acknowledgements": 4, "slow way back": 6,
    "traffic on the way back": 3, "cross traffic": 8, "slow reader": 8, "slow writer": 9, "messages": 4, "outage": 3, "rate changes": 4, "path becomes longer": 2,
    "radio": 2, "half duplex": 2, "black hole": 1, "SACK off": 3, "short transfer": 10,
}
# What `bdp` may call each: the first is its own name. The queue's is in `benches/mixed`, for it depends on what the queue did.
NAMES = {
    "receive window": ("receive_window",), "send buffer": ("send_buffer",), "loss": ("random_loss",), "policer": ("policer",), "reordering": ("reordering",),
    "jitter": (), "duplicates": (), "lost acknowledgements": ("reverse_path",), "slow way back": ("reverse_path",), "traffic on the way back": ("reverse_path",),
    "cross traffic": ("cross_traffic",), "slow reader": ("slow_reader",), "slow writer": ("slow_writer",), "messages": ("round_trips", "slow_writer", "client_idle"),
    "Nagle": ("nagle",), "outage": ("path_changed",), "rate changes": ("path_changed",), "path becomes longer": ("path_changed",), "radio": ("cross_traffic", "path_changed"),
    "half duplex": ("half_duplex",), "black hole": ("mtu_black_hole",), "SACK off": ("sack_missing",), "slow start": ("slow_start",), "initial window": ("slow_start",),
}
# Which rates and times may not stand together in one file of the lab.
EXCLUDES = [{"slow writer", "messages"}, {"rate changes", "radio", "half duplex"}, {"slow way back", "half duplex"}]


def time(seconds):
    """A time as scenarios have it."""
    return f'"{max(0, seconds) * 1e6:.0f}us"'


class Case:
    """A path with its hosts and programs. `toml` is its scenario, without the limits that are named."""

    def __init__(self, seed, number, attempt=0):
        self.number = number
        self.draws = random.Random(f"mixed {seed} {number} {attempt}")
        self.seed = self.draws.randrange(1, 1 << 32)
        self.parts = {}
        self.draw_path()
        self.draw_length()
        for name in self.drawn_names():
            self.parts[name] = getattr(self, "draw_" + name.lower().replace(" ", "_"))()
        if "short transfer" in self.parts:
            self.seconds, self.bytes = self.parts.pop("short transfer")
        self.place()

    # What is drawn.

    def log(self, least, most):
        return math.exp(self.draws.uniform(math.log(least), math.log(most)))

    def of(self, weights):
        return self.draws.choices(list(weights), list(weights.values()))[0]

    def chance(self, share):
        return self.draws.random() < share

    def draw_path(self):
        while True:
            self.rate = round(self.log(1e4, 1e10))
            self.rtt = self.log(*self.draws.choices([(1e-3, 0.3), (1e-4, 1e-3), (0.3, 10)], [70, 15, 15])[0])
            self.mtu = self.of({1500: 80, 1280: 5, 9000: 15} if self.rate >= 1e8 else {1500: 88, 1280: 6, 576: 6})
            if self.rate * self.rtt / 8 / self.mtu * ROUND_TRIPS <= self.budget:
                break
        self.congestion = self.of(CONTROLS)
        self.queue = self.of(QUEUES)
        self.queue_share = self.log(0.02, 4)
        self.queue_least = round(self.log(4, 100))
        self.ecn = self.chance(0.15)
        self.threshold = max(3, round(self.bdp * self.log(0.02, 1) / self.mtu)) if self.ecn and self.queue == "drop-tail" else None
        self.streams = self.of({1: 78, 2: 8, 4: 9, 8: 5})
        self.timestamps = not self.chance(0.05)
        self.initial_window = self.of({None: 80, 2: 5, 4: 5, 32: 5, 100: 5})

    def draw_length(self):
        longest = self.budget * self.mtu * 8 / self.rate
        # Enough round trips, and segments, that a few more or less are no gain.
        least = min(60, max(20 * self.rtt if self.chance(0.9) else 5 * self.rtt, 150 * self.mtu * 8 / self.rate))
        self.seconds = min(60, longest, max(least, self.log(1, 60)))
        self.bytes = None

    def drawn_names(self):
        """One to four limits, each once."""
        names, left = [], dict(WEIGHTS)
        for _ in range(self.of({1: 30, 2: 30, 3: 25, 4: 15})):
            name = self.of(left)
            names.append(name)
            gone = {name}.union(*(group for group in EXCLUDES if name in group))
            if name in ("half duplex", "black hole"):
                gone |= {"half duplex", "black hole"}
            left = {other: weight for other, weight in left.items() if other not in gone}
        if "half duplex" in names:
            self.queue, self.threshold = "drop-tail", None
            self.rate = min(self.rate, 100_000_000)
        return names

    def share(self):
        """Of what the path carries, so much is left by a limit: above 1 it leaves all."""
        return self.log(0.03, 3)

    def draw_receive_window(self):
        window = self.bdp * self.share() / self.streams
        kind = self.of({"rmem": 45, "asked": 25, "default": 15, "scaling off": 5, "stripped": 5, "clamped": 5})
        return {"kind": kind, "bytes": max(600 if self.chance(0.1) else 3 * self.mss, round(window))}

    def draw_send_buffer(self):
        if self.chance(0.2):
            return {"bytes": 4 << 20}
        return {"bytes": max(8192, round(2 * self.bdp * self.share() / self.streams))}

    def draw_loss(self):
        target = max(1, self.bdp / self.mss * self.share() / self.streams)
        share = min(0.1, max(1e-6, (1.22 / target) ** 2)) if self.chance(0.6) else self.log(1e-4, 0.1)
        kind = self.of({"single": 45, "bursts": 20, "every": 10, "times": 15, "corrupt": 10})
        burst, bad = self.log(1.5, 10), self.log(0.002, 0.05)
        return {"kind": kind, "share": share, "burst": burst, "bad_s": bad}

    def draw_policer(self):
        rate = self.rate * self.log(0.05, 1.5)
        return {"rate": max(4000, round(rate)), "burst": max(2 * self.mtu, round(rate / 8 * self.log(0.005, 2)))}

    def draw_reordering(self):
        if self.chance(0.3):
            return {"jitter_s": self.rtt * self.log(0.02, 0.5)}
        return {"share": self.log(0.001, 0.1), "by_s": self.rtt * self.log(0.05, 1.5)}

    def draw_jitter(self):
        return {"jitter_s": self.rtt * self.log(0.02, 0.5), "kind": self.of({"uniform": 2, "normal": 1})}

    def draw_duplicates(self):
        return {"share": self.log(0.001, 0.1)}

    def draw_lost_acknowledgements(self):
        return {"share": self.draws.uniform(0.1, 0.9)}

    def draw_slow_way_back(self):
        return {"rate": max(2000, round(self.rate / self.log(2, 300))), "limit": round(self.log(10, 1000))}

    def draw_traffic_on_the_way_back(self):
        return {"flows": self.of({1: 2, 2: 1, 4: 1}), "congestion": self.of({"cubic": 2, "bbr": 1})}

    def draw_cross_traffic(self):
        kind = self.of({"flows": 5, "udp": 2, "on-off": 2})
        return {"kind": kind, "flows": self.of({1: 4, 2: 2, 4: 1, 8: 1}), "congestion": self.of({"cubic": 3, "reno": 1, "bbr": 1}), "share": self.draws.uniform(0.1, 0.9)}

    def draw_program(self):
        if self.chance(0.6):
            return {"rate": min(10**9, max(8000, round(self.carries * self.share() / self.streams)))}
        every = min(self.seconds / 4, self.log(0.02, 3))
        return {"every_s": max(0.004, every), "share": self.draws.uniform(0.1, 0.8)}

    draw_slow_reader = draw_slow_writer = draw_program

    def draw_messages(self):
        return {"size": round(self.log(100, 1e6)), "writes": self.of({1: 5, 2: 4, 3: 1}), "nodelay": self.chance(0.4)}

    def draw_outage(self):
        return {"at": self.draws.uniform(0.3, 0.7), "for": self.log(0.02, 0.4), "drop": self.chance(0.5)}

    def draw_rate_changes(self):
        return {"at": self.draws.uniform(0.35, 0.75), "to": self.log(0.1, 0.8)}

    def draw_path_becomes_longer(self):
        return {"at": self.draws.uniform(0.3, 0.7), "by_s": self.rtt * self.log(0.3, 4)}

    def draw_radio(self):
        return {"levels": [0.2, 0.6, 1.0], "stay_s": max(0.02, min(self.seconds / 8, self.log(0.1, 2))), "seed": self.draws.randrange(1 << 32)}

    def draw_half_duplex(self):
        return {"guard_s": self.log(1e-5, 2e-4), "turn_s": self.log(5e-4, 5e-3)}

    def draw_black_hole(self):
        return {"above": max(100, self.mtu - 100)}

    def draw_sack_off(self):
        return {"at": self.of({"near": 1, "far": 1})}

    def draw_short_transfer(self):
        amount = round(self.log(20_000, max(40_000, min(20 * self.bdp + 200_000, self.budget * self.mss))))
        return 60, amount

    def place(self):
        """How long the test may be expected to take, for what happens within it."""
        self.lasts = self.seconds if not self.bytes else min(60, self.bytes * 8 / self.carries + 4 * self.rtt)
        self.steps = [(0.0, 1.0)]
        if "rate changes" in self.parts:
            self.steps.append((self.parts["rate changes"]["at"] * self.lasts, self.parts["rate changes"]["to"]))
        elif "radio" in self.parts:
            radio = self.parts["radio"]
            draws, at, self.steps = random.Random(radio["seed"]), 0.0, []
            while at < max(self.longer, 3 * self.lasts) and len(self.steps) < 9000:
                self.steps.append((at, draws.choice([level for level in radio["levels"] if not self.steps or level != self.steps[-1][1]])))
                at += max(0.005, draws.expovariate(1 / radio["stay_s"]))

    # What follows.

    @property
    def mss(self):
        """Payload of a full segment."""
        return self.mtu - HEADERS

    @property
    def budget(self):
        return SEGMENTS if self.rate <= 1e9 else BUNDLED

    @property
    def bdp(self):
        """Rate x RTT, bytes."""
        return self.rate * self.rtt / 8

    @property
    def carried_share(self):
        return self.mss / (self.mtu + OVERHEAD)

    @property
    def carries(self):
        """Goodput that the link has room for, bit/s."""
        return self.rate * self.carried_share

    @property
    def mean(self):
        """What the rate comes to in the part of the test that counts, as a share."""
        ends = [at for at, _ in self.steps[1:]] + [math.inf]
        counted = [(max(0, min(end, self.lasts) - max(at, self.omit)), share) for (at, share), end in zip(self.steps, ends)]
        return sum(time * share for time, share in counted) / sum(time for time, _ in counted)

    @property
    def omit(self):
        return 0 if self.bytes else min(2, self.seconds / 4)

    @property
    def longer(self):
        """Seconds of the test that is long enough to leave slow start behind."""
        return max(3 * self.seconds, min(10 * self.seconds, 20 * self.rtt))

    @property
    def stretched(self):
        """How many times as long the test is then, by its time or its bytes. What happens within it takes the same share of it."""
        return min(10, max(2, 2 * self.budget * self.mss / self.bytes)) if self.bytes else self.longer / self.seconds

    @property
    def limit(self):
        """Packets that the queue has room for."""
        return min(1_000_000, max(self.queue_least, round(self.bdp * self.queue_share / self.mtu)))

    @property
    def deep(self):
        """Packets of a queue that is long enough for any control."""
        return min(1_000_000, max(self.limit, 100, round(2 * self.bdp / self.mtu)))

    @property
    def candidates(self):
        """What is lifted, each alone."""
        names = [*self.parts, "queue"]
        if self.parts.get("messages", {}).get("writes", 1) > 1 and not self.parts["messages"]["nodelay"]:
            names.append("Nagle")
        if self.bytes or self.seconds < 100 * self.rtt:
            names += ["slow start", "initial window"]
        return names

    def entries(self, name):
        """What `bdp` may call this limit, the queue apart."""
        part, names = self.parts.get(name, {}), [*NAMES[name]]
        if name == "loss" and part["kind"] == "times" and part["bad_s"] >= self.rtt:
            # Nothing comes through for a round trip and more: an outage.
            names.append("path_changed")
        if name == "outage" and part["drop"] and part["for"] * self.lasts < self.rtt:
            names.append("random_loss")
        return names

    def parameters(self):
        """What was drawn, for who reads the results."""
        return {
            "rate_bps": self.rate, "rtt_ms": round(self.rtt * 1e3, 3), "mtu": self.mtu, "congestion": self.congestion, "queue": self.queue, "queue_packets": self.limit,
            "ecn": self.ecn, "ecn_threshold": self.threshold, "streams": self.streams, "seconds": round(self.seconds, 3), "bytes": self.bytes, "initial_window": self.initial_window,
            "limits": {name: {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in part.items()} for name, part in self.parts.items()},
        }

    # The scenario.

    def toml(self, lifted=frozenset(), repetitions=1):
        """The scenario without what is lifted; `faster link` and `other control` are lifts too."""
        part = lambda name: None if name in lifted else self.parts.get(name)  # noqa: E731
        faster = 4 if "faster link" in lifted else 1
        room = min(1 << 30, max(6 << 20, round(16 * (self.bdp + self.limit * self.mtu))))
        longer = "slow start" in lifted
        near, far = self.hosts(part, room, "initial window" in lifted)
        flow = self.flow(part, longer, "other control" in lifted, "Nagle" in lifted)
        link = self.link(part, faster, "queue" in lifted, self.lasts * (self.stretched if longer else 1))
        beside = self.beside(part, room, longer)
        interval = min(0.2, max(0.01, self.lasts / 100))
        lines = [
            'title = "mixed"', 'clock = "virtual"', f"seed = {self.seed}", f"repetitions = {repetitions}", f"idle = {time(max(1, 3 * self.rtt))}",
            "[hosts.near]", *near, "[hosts.far]", *far,
        ]
        if beside:
            for name in ("a", "b"):
                lines += [f"[hosts.{name}]", f"receive_buffer = {room}", f"send_buffer = {room}"]
            lines += ["[hosts.r1]", "router = true", "[hosts.r2]", "router = true"]
        ends = ("r1", "r2") if beside else ("near", "far")
        lines += ["[[link]]", f'between = ["{ends[0]}", "{ends[1]}"]', *link]
        if beside:
            access = [f"mtu = {self.mtu}", 'limit = "none"', 'delivery = "super"' if self.rate > 1e9 else 'delivery = "segment"']
            for ends in (("near", "r1"), ("a", "r1"), ("r2", "far"), ("r2", "b")):
                lines += ["[[link]]", f'between = ["{ends[0]}", "{ends[1]}"]', *access]
        lines += ["[[flow]]", 'from = "near"', 'to = "far"', f"interval = {time(interval)}", *flow, *beside]
        return "\n".join(lines) + "\n"

    def hosts(self, part, room, wide):
        near, far = [], []
        window, buffer = part("receive window"), part("send buffer")
        near.append(f"send_buffer = {buffer['bytes'] if buffer else room}")
        if window and window["kind"] == "rmem":
            far.append(f"receive_buffer = {max(4608, 2 * window['bytes'])}")
        elif window and window["kind"] == "default":
            far.append('receive_buffer = "6M"')
        elif not (window and window["kind"] == "asked"):
            far.append(f"receive_buffer = {room}")
        if window and window["kind"] == "scaling off":
            far.append("window_scaling = false")
        without = part("SACK off")
        if without:
            (near if without["at"] == "near" else far).append("sack = false")
        if not self.timestamps:
            near.append("timestamps = false")
        if self.ecn:
            near.append('ecn = "on"')
            far.append('ecn = "on"')
        if initial := 100 if wide else self.initial_window:
            near.append(f"initial_window = {initial}")
        return near, far

    def flow(self, part, longer, other, nodelay):
        congestion = ("cubic" if self.congestion == "bbr" else "bbr") if other else self.congestion
        seconds, amount = self.seconds, self.bytes
        if longer and amount:
            amount = round(amount * self.stretched)
            seconds = 600
        elif longer:
            seconds = self.longer
        lines = [f'congestion = "{congestion}"', f"duration = {time(seconds)}", f"omit = {time(self.omit)}", f"streams = {self.streams}"]
        if amount:
            lines.append(f"bytes = {amount}")
        window = part("receive window")
        if window and window["kind"] == "asked":
            lines.append(f"window = {window['bytes']}")
        for name, key in (("slow reader", "reader"), ("slow writer", "writer")):
            program = part(name)
            if program and "rate" in program:
                lines.append(f"{key} = {{ rate = {program['rate']} }}")
            elif program:
                lines.append(f"{key} = {{ pause = {time(program['every_s'] * program['share'])}, every = {time(program['every_s'])} }}")
        messages = part("messages")
        if messages:
            lines.append(f"messages = {{ size = {messages['size']}, writes = {messages['writes']} }}")
            if messages["nodelay"] or nodelay:
                lines.append("nodelay = true")
        return lines

    def link(self, part, faster, deep, lasts):
        delay, rate = self.rtt / 2, self.rate * faster
        lines, forward, reverse = [f"mtu = {self.mtu}"], [], []
        longer = part("path becomes longer")
        if part("rate changes") or part("radio"):
            stretch = lasts / self.lasts if part("rate changes") else 1
            steps = ", ".join(f"[{time(at * stretch)}, {round(rate * share)}]" for at, share in self.steps)
            lines.append(f"rate = {{ steps = [{steps}] }}")
        else:
            # Of a radio what it carries in the mean; of a rate that falls the one before.
            lines.append(f"rate = {round(rate * self.mean) if 'radio' in self.parts else rate}")
        if longer:
            forward.append(f'delay = {{ steps = [["0s", {time(delay)}], [{time(longer["at"] * lasts)}, {time(delay + longer["by_s"])}]] }}')
            reverse.append(f"delay = {time(delay)}")
        else:
            lines.append(f"delay = {time(delay)}")
        duplex = part("half duplex")
        if duplex:
            lines.append(f"half_duplex = {{ guard = {time(duplex['guard_s'])}, turn = {time(duplex['turn_s'])} }}")
        # The queue of the way there; that of the way back is long enough unless it is the limit.
        queue = "drop-tail" if deep else self.queue
        forward.append(f"limit = {faster * (self.deep if deep else self.limit)}")
        if queue not in ("drop-tail",):
            marks = ", ecn = true" if self.ecn and queue in ("codel", "fq_codel", "pie", "red") else ""
            forward.append(f'queue = {{ kind = "{queue}"{marks} }}')
        elif self.threshold and not deep:
            forward.append(f"ecn_threshold = {self.threshold * faster}")
        back = part("slow way back")
        if back:
            reverse += [f"rate = {back['rate']}", f"limit = {back['limit']}"]
        else:
            reverse.append(f"limit = {max(1000, self.deep)}")
        self.impair(part, forward, reverse, lasts)
        return [*lines, "[link.forward]", *forward, "[link.reverse]", *reverse]

    def impair(self, part, forward, reverse, lasts):
        loss = part("loss")
        if loss:
            forward.append(self.lossy(loss))
        policer = part("policer")
        if policer:
            forward.append(f"policer = {{ rate = {policer['rate']}, burst = {policer['burst']} }}")
        overtaken, jitter = part("reordering"), part("jitter")
        if overtaken and "share" in overtaken:
            forward.append(f"reorder = {{ probability = {overtaken['share']:.6f}, by = {time(overtaken['by_s'])} }}")
        if overtaken and "jitter_s" in overtaken:
            forward.append(f"jitter = {{ normal = {time(overtaken['jitter_s'])}, reorder = true }}")
        elif jitter:
            forward.append(f"jitter = {{ {jitter['kind']} = {time(jitter['jitter_s'])} }}")
        else:
            # As little as every path has, so that seeds differ and what hangs by a hair shows.
            forward.append(f"jitter = {{ uniform = {time(max(1e-6, 0.002 * self.rtt))} }}")
        if part("duplicates"):
            forward.append(f"duplicate = {part('duplicates')['share']:.6f}")
        if part("lost acknowledgements"):
            reverse.append(f"loss = {part('lost acknowledgements')['share']:.4f}")
        if part("black hole"):
            forward.append(f"drop_above = {part('black hole')['above']}")
        window = part("receive window")
        if window and window["kind"] == "stripped":
            reverse.append('window_scale = "strip"')
        if window and window["kind"] == "clamped":
            reverse.append(f"window_field_max = {min(65535, max(1, window['bytes']))}")
        outage = part("outage")
        if outage:
            drop = ", drop = true" if outage["drop"] else ""
            once = f"outage = {{ at = {time(outage['at'] * lasts)}, for = {time(outage['for'] * lasts)}{drop} }}"
            forward.append(once)
            reverse.append(once)

    def lossy(self, loss):
        share = loss["share"]
        if loss["kind"] == "bursts":
            return f"loss = {{ to_bad = {share / loss['burst']:.8f}, to_good = {1 / loss['burst']:.4f}, loss_bad = 1.0 }}"
        if loss["kind"] == "every":
            return f"loss = {{ every = {max(2, round(1 / share))} }}"
        if loss["kind"] == "times":
            return f"loss = {{ good_for = {time(min(3600, max(0.001, loss['bad_s'] / share)))}, bad_for = {time(loss['bad_s'])}, loss_bad = 1.0 }}"
        if loss["kind"] == "corrupt":
            return f"corrupt = {share:.8f}"
        return f"loss = {share:.8f}"

    def beside(self, part, room, longer):
        """The flows of others over the same link."""
        lines = []
        seconds = self.longer if longer else self.seconds
        if self.bytes:
            seconds = min(60, max(1, 3 * self.lasts), 2 * self.budget * self.mtu * 8 / self.rate) * (5 if longer else 1)
        cross, back = part("cross traffic"), part("traffic on the way back")
        if cross and cross["kind"] == "flows":
            for _ in range(cross["flows"]):
                lines += ["[[flow]]", 'from = "a"', 'to = "b"', "background = true", f'congestion = "{cross["congestion"]}"', f"duration = {time(seconds)}", "omit = 0"]
        elif cross and cross["kind"] == "udp":
            lines += ["[[flow]]", 'from = "a"', 'to = "b"', "background = true", 'protocol = "udp"', f"rate = {max(1000, round(self.carries * cross['share']))}", f"duration = {time(seconds)}", "omit = 0"]
        elif cross:
            lines += ["[[traffic]]", 'from = "a"', 'to = "b"', 'pattern = "on-off"', f"duration = {time(seconds)}", f"on = {time(max(0.01, seconds / 40))}", f"off = {time(max(0.01, seconds / 40))}"]
        if back:
            for _ in range(back["flows"]):
                lines += ["[[flow]]", 'from = "b"', 'to = "a"', "background = true", f'congestion = "{back["congestion"]}"', f"duration = {time(seconds)}", "omit = 0"]
        return lines
