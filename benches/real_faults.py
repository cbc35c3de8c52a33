"""The 60 cases of `benches/explain-real`: what each does to the path or to its ends, and which findings are right."""
import signal
import subprocess
import sys
import time

from real_path import FAR, run

WIRE = 1514 / 1448  # of tbf, which counts frames
# What the path's own rate may be called, where nothing else is left to find.
RATE = ("path_rate", "ceiling")
AT_RATE = 0.94


class Case:
    """One measurement: its path, its fault and the right answers."""

    def __init__(self, fault, right, rtt_ms=0, rate_mbps=None, queue=1.5, congestion="cubic", options=(), reverse=False, seconds=5, about="", setup=None, meanwhile=None,
                 serve=None, measure=None, causes=None, relative=True, at=None):
        self.fault, self.right, self.rtt_ms, self.rate_mbps, self.queue = fault, right, rtt_ms, rate_mbps, queue
        self.congestion, self.reverse, self.seconds, self.about = congestion, reverse, seconds, about
        self.setup, self.meanwhile, self.serve, self.measure = setup, meanwhile, serve or (lambda path: {}), measure or (lambda path: {})
        self.causes = causes or {}  # findings that are right with such a cause alone
        self.relative = relative  # whether a goodput near the path's rate means that the fault took nothing
        self.at = at  # the end that the finding has to name
        self.options = [*options]

    def build(self, path):
        """The path with its fault; the bottleneck is before the end that receives."""
        if self.rtt_ms:
            path.delay(self.rtt_ms / 2e3)
        if self.rate_mbps:
            rate = self.rate_mbps * 1e6
            path.tbf(self.receiver, rate, max(6000, self.queue * rate / 8 * max(0.002, self.rtt_ms / 1e3)))
        if self.setup:
            self.setup(path, self)

    @property
    def data_comes(self):
        """By which device of the router data comes."""
        return f"to-{self.sender}"

    @property
    def answers_come(self):
        return f"to-{self.receiver}"

    @property
    def sender(self):
        return "far" if self.reverse else "near"

    @property
    def receiver(self):
        return "near" if self.reverse else "far"

    def is_right(self, finding, goodput_bps):
        said = finding["limit"]
        if self.relative and self.rate_mbps and goodput_bps >= AT_RATE * self.rate_mbps * 1e6 / WIRE:
            return said in (*RATE, *(("shallow_queue",) if "shallow_queue" in self.right else ()))
        if self.at and finding["place"]["at"] != self.at:
            return False
        return said in self.right or finding.get("cause") in self.causes.get(said, ())


def drop_data(one_in):
    return lambda path, case: path.forward(f"iifname {case.data_comes} meta length > 500 numgen random mod {one_in} 0 drop")


def drop_back(percent):
    """Whatever goes back while data flows, probes as well as acknowledgements; what sets a measurement up and ends it comes through."""
    return while_data_flows(f"numgen random mod 100 < {percent}", "answers_come", 0.5, None)


def police(mbps, burst_kb):
    return lambda path, case: path.forward(f"iifname {case.data_comes} limit rate over {round(mbps * 125)} kbytes/second burst {burst_kb} kbytes drop")


def buffers(sysctl, end, most):
    return lambda path, case: path.sysctl(getattr(case, end), sysctl, f"4096 {min(16384, most)} {most}")


def off(sysctl, end):
    return lambda path, case: path.sysctl(getattr(case, end), sysctl, 0)


def both(*setups):
    return lambda path, case: [setup(path, case) for setup in setups]


def black_hole(mtu):
    """A smaller MTU behind the router, which is not allowed to say so."""
    def setup(path, case):
        run("ip", "-n", "router", "link", "set", f"to-{case.receiver}", "mtu", str(mtu))
        path.nft("chain output { type filter hook output priority 0; icmp type destination-unreachable drop; }")
    return setup


def stop_in_a_rhythm(stopped, every):
    """The serving process does not run for a part of the time."""
    def meanwhile(path, case, server, data_begins, ended):
        if ended.wait(data_begins + 0.8):
            return
        while True:
            server.send_signal(signal.SIGSTOP)
            over = ended.wait(stopped)
            server.send_signal(signal.SIGCONT)
            if over or ended.wait(every - stopped):
                return
    return meanwhile


def outage(at, lasts):
    """Nothing comes through to the receiver for a while."""
    return while_data_flows("", "data_comes", at, lasts)


def while_data_flows(match, comes_by, at, lasts):
    """Drops what matches, from a moment of the flow on."""
    def meanwhile(path, case, server, data_begins, ended):
        if not ended.wait(data_begins + at):
            path.nft(f"chain meanwhile {{ type filter hook forward priority 10; iifname {getattr(case, comes_by)} {match} drop; }}")
            ended.wait(lasts or case.seconds)
            run("ip", "netns", "exec", "router", "nft", "delete", "chain", "inet", "faults", "meanwhile")
    return meanwhile


def other_flow(streams, congestion):
    """Another program's connections through the same bottleneck, from before the measurement until after it."""
    def setup(path, case):
        path.start("far", ["iperf3", "-s", "-p", "5999"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path.wait_for_port("far", 5999)
        path.start("near", ["iperf3", "-c", FAR, "-p", "5999", "-t", "30", "-C", congestion, "-P", str(streams), *(["-R"] if case.reverse else [])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
    return setup


def busy_loops(pin, count):
    """Programs that want the same processor."""
    def setup(path, case):
        for _ in range(count):
            path.start("router", [sys.executable, "-c", "while True: pass"], pin=pin)
    return setup


def held(share):
    return lambda path: {"group": path.quota(share)}


def pinned(pin):
    return lambda path: {"pin": pin}


THROTTLED, PAUSED, FULL = ("throttled",), ("paused",), ("thread_full",)
CASES = (
    [Case("random loss", ("random_loss",), rtt, rate, 3, cc, setup=drop_data(one_in), reverse=reverse, about=f"nft drops one in {one_in}")
     for rtt, rate, cc, one_in, reverse in ((20, 40, "cubic", 150, False), (40, 40, "reno", 250, False), (20, 30, "reno", 100, True))]
    + [Case("acknowledgements lost", ("reverse_path",), rtt, rate, 2, cc, meanwhile=drop_back(percent), about=f"nft drops {percent} % of the way back")
       for rtt, rate, cc, percent in ((20, 30, "cubic", 60), (40, 30, "reno", 70), (10, 20, "reno", 80))]
    + [Case("policer", ("policer",), rtt, 40, 3, cc, setup=police(mbps, burst), reverse=reverse, relative=False, about=f"nft limit rate over {mbps} Mbit/s, burst {burst} kB")
       for rtt, cc, mbps, burst, reverse in ((20, "cubic", 10, 30, False), (10, "cubic", 8, 16, True), (30, "reno", 12, 40, True))]
    + [Case("full path, long queue", RATE, rtt, rate, queue, cc, reverse=reverse, about="tbf, queue of several rate x RTT")
       for rtt, rate, queue, cc, reverse in ((20, 20, 3, "cubic", False), (40, 10, 2, "reno", False), (10, 30, 6, "cubic", True), (0, 8, 20, "reno", True))]
    + [Case("full path, short queue", ("shallow_queue",), rtt, rate, queue, cc, reverse=reverse, about="tbf, queue of a part of rate x RTT")
       for rtt, rate, queue, cc, reverse in ((40, 40, 0.06, "reno", False), (40, 30, 0.08, "cubic", False), (60, 40, 0.05, "reno", True), (30, 40, 0.08, "reno", True))]
    + [Case("receive window, tcp_rmem", ("receive_window",), rtt, 40, 2, "cubic", reverse=reverse, setup=buffers("tcp_rmem", "receiver", most), about=f"tcp_rmem {most}")
       for rtt, most, reverse in ((40, 65536, False), (20, 40000, False), (60, 100000, True), (30, 50000, True))]
    + [Case("receive window, asked for", ("receive_window",), rtt, 40, 2, "cubic", [f"-w{asked}"], reverse=reverse, about=f"-w {asked}") for rtt, asked, reverse in ((40, "48K", False), (20, "20K", True))]
    + [Case("send buffer", ("send_buffer",), rtt, 40, 2, "cubic", reverse=reverse, setup=buffers("tcp_wmem", "sender", most), about=f"tcp_wmem {most}")
       for rtt, most, reverse in ((40, 65536, False), (60, 131072, True), (30, 65536, True))]
    + [Case("window scaling off", ("receive_window",), rtt, 40, 2, cc, setup=off("tcp_window_scaling", end), reverse=reverse, about=f"tcp_window_scaling 0 at the {end}")
       for rtt, cc, end, reverse in ((40, "cubic", "receiver", False), (60, "reno", "sender", False), (40, "cubic", "receiver", True))]
    + [Case("SACK off, losses", ("sack_missing", "random_loss"), rtt, 40, 3, cc, setup=both(off("tcp_sack", end), drop_data(one_in)), about=f"tcp_sack 0, nft drops one in {one_in}")
       for rtt, cc, end, one_in in ((20, "cubic", "receiver", 150), (40, "reno", "sender", 250))]
    + [Case("processor quota, sender", ("cpu",), at="sender", reverse=reverse, **{side: held(share)}, causes={"slow_writer": THROTTLED}, about=f"{share:.0%} of a processor")
       for share, reverse, side in ((0.05, False, "measure"), (0.1, True, "serve"), (0.05, True, "serve"))]
    + [Case("processor quota, receiver", ("cpu",), at="receiver", reverse=reverse, **{side: held(share)}, causes={"slow_reader": THROTTLED}, about=f"{share:.0%} of a processor")
       for share, reverse, side in ((0.02, False, "serve"), (0.03, False, "serve"), (0.03, True, "measure"))]
    + [Case("receiver stopped at times", ("slow_reader",), rtt, rate, 3, setup=buffers("tcp_rmem", "receiver", 300_000), meanwhile=stop_in_a_rhythm(stopped, every), about=f"SIGSTOP for {stopped} s of each {every} s, tcp_rmem 300000")
       for rtt, rate, stopped, every in ((10, 30, 0.4, 0.8), (20, 40, 0.6, 1.0), (0, 100, 0.3, 0.6))]
    + [Case("sender stopped at times", ("slow_writer",), rtt, rate, 3, meanwhile=stop_in_a_rhythm(stopped, every), reverse=True, about=f"SIGSTOP for {stopped} s of each {every} s")
       for rtt, rate, stopped, every in ((10, 30, 0.4, 0.8), (20, 40, 0.6, 1.0))]
    + [Case("MTU black hole", ("mtu_black_hole",), rtt, 40, 2, setup=black_hole(mtu), reverse=reverse, about=f"MTU {mtu} behind the router, ICMP dropped", relative=False)
       for rtt, mtu, reverse in ((20, 1400, False), (40, 1280, True))]
    + [Case("asked rate", ("asked_rate",), rtt, 40, 2, cc, [f"-b{mbps}M"], reverse=reverse, about=f"-b {mbps}M", relative=False)
       for rtt, cc, mbps, reverse in ((20, "cubic", 5, False), (40, "reno", 15, False), (10, "cubic", 25, True))]
    + [Case("cross traffic", ("cross_traffic", "path_rate", "congestion_loss"), rtt, rate, 1, cc, setup=other_flow(streams, other), reverse=reverse, about=f"{streams} connections of iperf3 with {other}", relative=False)
       for rtt, rate, cc, streams, other, reverse in ((20, 30, "cubic", 1, "cubic", False), (40, 30, "reno", 2, "bbr", False), (20, 40, "cubic", 3, "cubic", True))]
    + [Case("processor full", ("cpu",), causes={"slow_reader": FULL, "slow_writer": FULL}, reverse=reverse, about="both ends on one processor, no other limit", serve=pinned(0), measure=pinned(0)) for reverse in (False, True)]
    + [Case("processor shared", ("cpu",), 5, 300, 3, causes={"slow_reader": FULL + PAUSED, "slow_writer": FULL + PAUSED}, reverse=reverse, about="4 busy programs on the server's processor", serve=pinned(1), setup=busy_loops(1, 4)) for reverse in (False, True)]
    + [Case("outage", ("path_changed",), rtt, 30, 2, cc, meanwhile=outage(2, lasts), about=f"nft drops all for {lasts} s", relative=False) for rtt, cc, lasts in ((20, "cubic", 1.0), (40, "reno", 1.5))]
    + [Case("short transfer", ("slow_start",), 60, 40, 2, "cubic", [f"-n{size}"], reverse=reverse, about=f"-n {size}") for size, reverse in (("100K", False), ("200K", True))]
    + [Case("UDP above the rate", ("path_loss", "path_rate"), 20, 10, 1, None, ["-u", f"-b{mbps}M", "--flood"], reverse=reverse, about=f"-u -b {mbps}M", relative=False) for mbps, reverse in ((14, False), (20, True))]
)
