"""What an expert has today to say what limits a TCP flow, as functions of a sender's samples of TCP_INFO; docs/accuracy.md has the sources.

Each judge gives a class and the figures behind it, or None where it cannot say. `contains` lists the findings of bdp that a class covers: it is right where
the fault is among them. Written from what was published, and not from anybody's code.
"""
import statistics

NETWORK = ("ceiling", "path_rate", "shallow_queue", "half_duplex", "cross_traffic", "ecn_marks", "congestion_loss", "random_loss", "sack_missing", "policer",
           "reordering", "reverse_path", "mtu_black_hole", "path_changed", "slow_start")
LOSSES = ("congestion_loss", "shallow_queue", "random_loss", "policer", "sack_missing", "cross_traffic", "ecn_marks")


class Samples:
    """What TCP_INFO shows of a flow after its omit."""

    def __init__(self, flow):
        self.flow = flow
        self.is_udp = bool(flow.get("udp"))
        self.mss = flow.get("mss_bytes") or 1448
        every = flow.get("sent") or []
        self.every = every
        self.sent = [s for s in every if s["at_ns"] >= flow["omit_ns"]]
        self.seconds = (self.sent[-1]["at_ns"] - self.sent[0]["at_ns"]) / 1e9 if len(self.sent) > 1 else 0
        self.tells = not self.is_udp and self.seconds > 0 and all(s.get("busy_ns") is not None for s in self.sent)

    def grew(self, member, samples=None):
        samples = samples or self.sent
        return (samples[-1].get(member) or 0) - (samples[0].get(member) or 0)

    def shares(self):
        """Of the time: nothing to send, receive window, send buffer, and the rest, which is the congestion window's."""
        total = self.seconds * 1e9
        busy, window, buffer = (min(total, self.grew(m)) / total for m in ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns"))
        return {"idle": max(0, 1 - busy), "window": window, "buffer": buffer, "network": max(0, busy - window - buffer)}

    def series(self, member):
        return [s[member] for s in self.sent if s.get(member) is not None]

    def pairs(self):
        return list(zip(self.sent, self.sent[1:]))


def percent(share):
    return f"{100 * share:.0f} %"


class Chronographs:
    """The shares of time that Linux counts (tcp_info: busy, rwnd_limited, sndbuf_limited): the one that is more than half."""

    name = "chronographs"
    contains = {"receive window": ("receive_window", "slow_reader"), "send buffer": ("send_buffer",), "application": ("slow_writer", "nagle", "asked_rate"), "network": NETWORK}

    @staticmethod
    def judge(samples):
        if not samples.tells:
            return None, "no such counts of datagrams"
        shares = samples.shares()
        words = {"idle": "application", "window": "receive window", "buffer": "send buffer", "network": "network"}
        most = max(shares, key=shares.get)
        if shares[most] < 0.5:
            return None, "no share is more than half"
        return words[most], f"{percent(shares[most])} of the time"


class Ndt:
    """The Network Diagnostic Tool (Carlson, PAM 2003; its Test Methodology): limitation times of web100, and its test for excessive loss.

    Its tests for duplex compare with a test of its own that has a small window, or count how often the state changed: neither is in TCP_INFO. Its test for a
    faulty link holds loss that was divided by the time against 15, and so never fires, as its authors note; it is left out.
    """

    name = "NDT"
    contains = {
        "receiver limited": ("receive_window", "slow_reader"), "sender limited": ("send_buffer", "slow_writer", "nagle", "asked_rate"),
        "network limited": NETWORK, "excessive loss": (*LOSSES, "half_duplex"),
    }

    @staticmethod
    def judge(samples):
        if not samples.tells:
            return None, "it sends no datagrams"
        shares = samples.shares()
        segments = max(1, samples.grew("acked_bytes") / samples.mss)
        events = sum(e["at_ns"] >= samples.flow["omit_ns"] for e in samples.flow.get("loss_episodes") or [])
        loss = events / segments
        if samples.flow["goodput_bps"] < 4e6 and loss > 0.01:
            return "excessive loss", f"{100 * loss:.1f} % of congestion signals at {samples.flow['goodput_bps'] / 1e6:.1f} Mbit/s"
        states = {"receiver limited": (shares["window"], 0.015), "sender limited": (shares["idle"] + shares["buffer"], 0.015), "network limited": (shares["network"], 0.005)}
        most = max(states, key=lambda s: states[s][0])
        return (most, f"{percent(states[most][0])} of the time") if states[most][0] > states[most][1] else (None, "no state lasted")


class TRat:
    """T-RAT (Zhang, Breslau, Paxson and Shenker, SIGCOMM 2002), by samples in place of flights: it reads packets, and sees each flight and the gaps in it."""

    name = "T-RAT"
    contains = {
        "receiver window": ("receive_window", "slow_reader"), "sender window": ("send_buffer",), "opportunity": ("slow_start",), "application": ("slow_writer", "nagle", "asked_rate"),
        "bandwidth": ("path_rate", "ceiling", "half_duplex"), "congestion": LOSSES, "transport": ("slow_start",),
    }

    @classmethod
    def judge(cls, samples):
        if not samples.tells:
            return None, "it knows no datagrams"
        sent, mss = samples.sent, samples.mss
        lost = samples.grew("retransmits", samples.every) > 0
        in_slow_start = lambda s: s.get("ssthresh") is None or (s.get("cwnd") or 0) < s["ssthresh"]
        if samples.grew("acked_bytes", samples.every) < 13 * mss or not lost and all(map(in_slow_start, sent)) and samples.flow["duration_ns"] / 1e9 < 40 * (sent[-1].get("srtt_ns") or 0) / 1e9:
            return "opportunity", "it never left slow start, or had too few segments"
        time = dict.fromkeys(("application", "receiver window", "bandwidth", "congestion", "sender window", "transport"), 0)
        largest = max(samples.series("snd_wnd_bytes"), default=0)
        steady, constant, grows = cls.is_spaced(samples), cls.is_constant(samples), cls.grows(samples)
        bandwidth = steady or cls.same_before_losses(samples)
        for a, b in samples.pairs():
            took = b["at_ns"] - a["at_ns"]
            lost = cls.lost_lately(samples, b)
            if took - (b["busy_ns"] - a["busy_ns"]) >= 0.5 * took or cls.sends_small(samples, a, b):
                time["application"] += took
            elif largest and all((s.get("unacked") or 0) * mss > largest - 3 * mss for s in (a, b)):
                time["receiver window"] += took
            elif bandwidth:
                time["bandwidth"] += took
            elif lost:
                time["congestion"] += took
            elif constant:
                time["sender window"] += took
            elif grows:
                time["transport"] += took
        most = max(time, key=time.get)
        share = time[most] / (samples.seconds * 1e9)
        return (most, f"{percent(share)} of the time") if share >= 0.5 else (None, "unknown: no class holds for half of the time")

    @staticmethod
    def lost_lately(samples, at):
        """A loss among the last 256 segments, the stretch that it classifies at a time."""
        before = [s for s in samples.every if (s.get("delivered") or 0) <= (at.get("delivered") or 0) - 256]
        return (at.get("retransmits") or 0) > ((before[-1].get("retransmits") or 0) if before else 0)

    @staticmethod
    def sends_small(samples, a, b):
        """Segments that are not full, and room for more: it looks for a small segment before a gap."""
        segments = (b.get("delivered") or 0) - (a.get("delivered") or 0)
        room = (b.get("unacked") or 0) < 0.8 * (b.get("cwnd") or 0)
        return room and segments > 0 and (b.get("acked_bytes") or 0) - (a.get("acked_bytes") or 0) < 0.95 * samples.mss * segments

    @staticmethod
    def is_spaced(samples):
        """Segments at even distances: here a delivery rate that keeps within a factor of two while round trips are above their least."""
        rates = sorted(samples.series("delivery_rate_bps"))
        rtts, least = samples.series("srtt_ns"), min(samples.series("min_rtt_ns"), default=0)
        if len(rates) < 10 or not rtts or not least:
            return False
        return rates[int(0.95 * (len(rates) - 1))] < 2 * max(1, rates[int(0.05 * (len(rates) - 1))]) and statistics.median(rtts) > 1.2 * least

    @staticmethod
    def same_before_losses(samples):
        """As much in flight before each of three losses in a row."""
        flights = [e["unacked"] for e in samples.flow.get("loss_episodes") or [] if e["at_ns"] >= samples.flow["omit_ns"] and e.get("unacked")]
        same = lambda three: max(three) - min(three) <= max(2, 0.2 * statistics.mean(three))
        return len(flights) >= 3 and sum(same(flights[i:i + 3]) for i in range(len(flights) - 2)) > (len(flights) - 2) / 2

    @staticmethod
    def is_constant(samples):
        """Four fifths of the flights are of one size."""
        flights = samples.series("unacked")
        middle = statistics.median(flights) if flights else 0
        return middle > 0 and sum(middle - 2 <= f <= middle + 1 for f in flights) >= 0.8 * len(flights)

    @staticmethod
    def grows(samples):
        flights = samples.series("unacked")
        third = len(flights) // 3
        return third > 0 and statistics.mean(flights[-third:]) > 1.2 * max(1, statistics.mean(flights[:third]))


class Tapo:
    """TAPO (Zhou et al., CoNEXT 2015): stalls longer than 2 smoothed round trips or the retransmission timeout, and what they came of.

    It reads packets; between two samples shorter stalls are not seen, and which packet ended one is not known.
    """

    name = "TAPO"
    contains = {
        "server idle": ("slow_writer",), "zero window": ("slow_reader", "receive_window"), "timeout, small window": (*LOSSES, "mtu_black_hole"), "timeout, tail": (*LOSSES, "mtu_black_hole"),
        "timeout, all lost": ("path_changed", "mtu_black_hole"), "acknowledgements late or lost": ("reverse_path",), "packet delay": ("path_changed", "reverse_path", "half_duplex"),
    }

    @classmethod
    def judge(cls, samples):
        if not samples.tells:
            return None, "it knows no datagrams"
        stalls, began = {}, None
        for a, b in samples.pairs():
            still = all(a.get(m) == b.get(m) for m in ("acked_bytes", "delivered")) and (a.get("retransmits") == b.get("retransmits") or (b.get("cwnd") or 9) <= 2)
            if still and began is None:
                began = a
            if began is not None and (not still or b is samples.sent[-1]):
                took = (b if still else a)["at_ns"] - began["at_ns"]
                srtt = began.get("srtt_ns") or 0
                if took > min(2 * srtt, max(200e6, srtt + 200e6)):
                    what = cls.cause(samples, began, a, b)
                    stalls[what] = stalls.get(what, 0) + took
                began = None
        total = sum(stalls.values()) / (samples.seconds * 1e9)
        if total < 0.1:
            return None, f"stalls take {percent(total)} of the time"
        most = max(stalls, key=stalls.get)
        return most, f"{percent(stalls[most] / (samples.seconds * 1e9))} of the time in such stalls"

    @staticmethod
    def cause(samples, began, last, after):
        again = (after.get("retransmits") or 0) - (began.get("retransmits") or 0)
        needless = (after.get("needless_retransmits") or 0) - (began.get("needless_retransmits") or 0)
        if (last.get("snd_wnd_bytes") or 0) < samples.mss:
            return "zero window"
        if not last.get("unacked"):
            return "server idle"
        if not again:
            return "packet delay"
        if needless >= again:
            return "acknowledgements late or lost"
        if (after.get("lost") or last.get("lost") or 0) >= (last.get("unacked") or 0):
            return "timeout, all lost"
        if (began.get("unacked") or 0) < 4:
            return "timeout, small window"
        return "timeout, tail" if not last.get("not_sent_bytes") else "timeout, all lost"


JUDGES = (Chronographs, Ndt, TRat, Tapo)


# Why a class comes out where the fault is another, by judge and class, and by finding where that matters.
_BUSY = "a byte in flight counts as busy: a program that writes a little all the time never shows as idle"
_COUNTS_LITTLE = "the count starts where data waits that the window alone holds back at that moment: of a window that ACKs open again and again it misses most"
_SMALL = {
    "receive_window": _COUNTS_LITTLE, "slow_reader": "while the window is closed and all is acknowledged, nothing counts as limited by it", "slow_writer": _BUSY, "nagle": _BUSY,
    "send_buffer": "the count starts only where a write had failed before the last segment left: writes that take just the room that is free go uncounted",
}
_SPACED = "evenly spaced segments, or as much in flight before each loss, mean a threshold of the path: a bottleneck's rate, a policer's and a full way back look the same"
_GROWS = "no loss among the last 256 segments, and the flight grows: what made the window small lies further back"
_REASONS = {
    ("chronographs", "network"): _SMALL, ("NDT", "network limited"): _SMALL,
    ("NDT", "excessive loss"): "more than 1 % of congestion signals below 4 Mbit/s, whatever they cost",
    ("T-RAT", "bandwidth"): _SPACED, ("T-RAT", "transport"): _GROWS,
    ("T-RAT", "congestion"): "any loss is congestion",
    ("T-RAT", "opportunity"): "no loss and no end of slow start: nothing held it back but its length",
    ("T-RAT", "sender window"): "a flight of constant size, which a program of constant rate has as well",
    ("TAPO", "timeout, all lost"): "all in flight was lost, be it an outage or one burst", ("TAPO", "packet delay"): "a gap without retransmission is taken for delay of packets",
}


def reason(judge, said, truth):
    """Why this judge says so of a fault that is another's; None where it is right."""
    why = _REASONS.get((judge, said))
    return next((why[finding] for finding in truth if finding in why), None) if isinstance(why, dict) else why
