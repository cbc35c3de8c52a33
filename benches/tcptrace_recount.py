"""Figures of benches/tcptrace-judge counted once more from the packets of a capture, apart from bdp: duplicate acknowledgements as RFC 5681 defines them, and
what was outstanding on average over the time of a connection.

Reads pcap and pcapng of one section as little-endian machines write them, of raw IP, with no extension headers. Ports that are used twice are not told apart.
"""
import ipaddress
import struct

FIN, SYN, RST, ACK = 1, 2, 4, 16


def recount(path):
    """Figures by field, and whether the sequence numbers cross a multiple of 2^30, of each direction (from, to) of a capture, whose ends are written as bdp writes them."""
    ways = {}
    for at_us, packet in packets(path):
        head = tcp(packet)
        if not head:
            continue
        source, destination, *segment = head
        own = ways.setdefault((source, destination), Way())
        other = ways.setdefault((destination, source), Way())
        pass_by(at_us, own, other, *segment)
        for way in (own, other):
            way.began_us, way.ended_us = way.began_us if way.began_us is not None else at_us, at_us
    return {(written(a), written(b)): way.figures() for (a, b), way in ways.items()}


class Way:
    """What one end sent."""

    def __init__(self):
        self.began_us = self.ended_us = None
        self.near = self.begin = self.end = self.data_end = self.acked = self.scale = None
        self.last_ack = self.last_window = None
        self.in_a_row = self.duplicates = self.triples = self.area = self.since_us = 0

    def unwrapped(self, number):
        if self.near is None:
            self.near = (1 << 32) + number
        return self.near + (number - self.near + (1 << 31)) % (1 << 32) - (1 << 31)

    def pass_time(self, at_us):
        if None not in (self.data_end, self.acked):
            self.area += max(0, self.data_end - self.acked) * (at_us - self.since_us)
        self.since_us = at_us

    def figures(self):
        self.pass_time(self.ended_us)
        took = self.ended_us - self.began_us
        return {"duplicate acks": self.duplicates, "triple dupacks": self.triples, "wavg owin": self.area // took if took else None, "crosses": self.begin is not None and self.begin >> 30 != self.end >> 30}


def pass_by(at_us, own, other, seq, ack, flags, window, payload, scale):
    own.scale = own.scale if scale is None else scale
    is_scaled = None not in (own.scale, other.scale) and not flags & SYN
    window = window << own.scale if is_scaled else window
    length = payload + bool(flags & SYN) + bool(flags & FIN)
    begin = own.unwrapped(seq)
    if length and other.last_window != 0:
        own.pass_time(at_us)
        own.near = max(own.near, begin + length)
        own.begin = begin if own.begin is None else min(own.begin, begin)
        own.end = max(own.end or 0, begin + length)
        own.data_end = max(own.data_end or 0, begin + length - bool(flags & FIN))
    if flags & ACK:
        number = other.unwrapped(ack)
        is_repeated = length == 0 and not flags & RST and (own.last_ack, own.last_window) == (ack, window)
        if is_repeated and (other.end or 0) > number:
            other.duplicates += 1
            other.in_a_row += 1
            other.triples += other.in_a_row == 3
        else:
            other.in_a_row = 0
        if not flags & RST:
            other.pass_time(at_us)
            other.acked = max(other.acked or 0, number)
            own.last_ack = ack
    if flags & (ACK | SYN) and not flags & RST:
        own.last_window = window


def tcp(packet):
    """Ends, sequence number, acknowledgement, flags, window, bytes of payload and window scale; None of what is not TCP."""
    if packet[0] >> 4 == 4:
        header, protocol, whole = (packet[0] & 15) * 4, packet[9], struct.unpack_from(">H", packet, 2)[0]
        addresses = packet[12:16], packet[16:20]
    else:
        header, protocol, whole = 40, packet[6], 40 + struct.unpack_from(">H", packet, 4)[0]
        addresses = packet[8:24], packet[24:40]
    if protocol != 6 or len(packet) < header + 20:
        return None
    source, destination, seq, ack, offset, flags, window = struct.unpack_from(">HHIIBBH", packet, header)
    behind = header + (offset >> 4) * 4
    return (addresses[0], source), (addresses[1], destination), seq, ack, flags, window, whole - behind, window_scale(packet[header + 20 : behind])


def window_scale(options):
    while options and options[0] != 0:
        if options[0] == 1:
            options = options[1:]
            continue
        if len(options) < 2 or options[1] < 2:
            return None
        if options[0] == 3 and len(options) > 2:
            return min(options[2], 14)
        options = options[options[1] :]
    return None


def written(end):
    return f"{ipaddress.ip_address(end[0])}:{end[1]}"


def packets(path):
    with open(path, "rb") as file:
        data = file.read()
    magic = struct.unpack_from("<I", data)[0]
    if magic in (0xA1B2C3D4, 0xA1B23C4D):
        at, unit = 24, 1 if magic == 0xA1B2C3D4 else 1000
        while at + 16 <= len(data):
            seconds, part, kept, _ = struct.unpack_from("<IIII", data, at)
            yield seconds * 10**6 + part // unit, data[at + 16 : at + 16 + kept]
            at += 16 + kept
        return
    at, units = 0, []
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 1:
            units.append(resolution(data[at + 16 : at + length - 4]))
        elif kind == 6:
            interface, high, low, kept = struct.unpack_from("<IIII", data, at + 8)
            yield (high << 32 | low) * 10**6 // units[interface], data[at + 28 : at + 28 + kept]
        at += length


def resolution(options):
    """Units of time per second, of an interface's options."""
    while len(options) >= 4:
        kind, length = struct.unpack_from("<HH", options)
        if kind == 9:
            return 2 ** (options[4] & 127) if options[4] & 128 else 10 ** options[4]
        options = options[4 + (length + 3) // 4 * 4 :]
    return 10**6
