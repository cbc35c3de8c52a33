#!/usr/bin/env python3
"""A small TCP for bdp, in the standard library alone: the contract bdp.stack/1 (docs/stack-contract.md).

    bdp lab run SCENARIO --set stack='exec:python3 stacks/example/stack.py'

Positions in a stream are plain numbers that do not wrap: 0 is the SYN, 1 the first byte, then the FIN. Only `near` knows the 32 bits of
the wire. Time is what the last step said, and randomness comes from the seed, so that the same case gives the same packets."""
import ipaddress, json, random, socket, struct, zlib

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SECOND, WINDOW, PATTERN = 10**9, 65535, bytes(range(251)) * 300  # the byte at p is p % 251
TRIES = 12


class Unsupported(Exception):
    pass


def checksum(data):  # 65536 = 1 modulo 65535, so that this is the sum of all 16-bit words
    return 65535 - int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 65535


def near(wire, first, at):  # the position nearest to `at` that has this number on the wire
    return at + (wire - first - at + 2**31) % 2**32 - 2**31


class Connection:
    def __init__(self, stack, order, own=None, peer=None):
        self.stack, self.own, self.peer = stack, own, peer  # (address, port) each
        self.report = {"socket": order["socket"], "state": "connecting" if peer else "listening", "sent_bytes": 0,
                       "received_bytes": 0, "received_crc": 0, "ended": False}
        self.mss = min(order.get("mss_bytes") or WINDOW, stack.mtu - (40 if stack.addresses[0].version == 4 else 60))
        self.most, self.nodelay = min(order.get("window_bytes") or WINDOW, WINDOW), order.get("nodelay", False)
        if order.get("congestion") not in (None, "reno"):
            raise Unsupported(f"the congestion control '{order['congestion']}' (it has reno)")
        # What it sends: acknowledged below `una`, next is `nxt`, sent once below `top`; `recover` as in RFC 6582.
        self.first, self.una, self.nxt, self.top, self.recover = stack.random.getrandbits(32), 0, 0, 0, 0
        self.to_send, self.finish, self.room, self.duplicates, self.recovering = 0, False, self.mss, 0, False
        self.cwnd, self.ssthresh = (stack.tcp.get("initial_window") or 10) * self.mss, float("inf")
        self.srtt, self.rttvar, self.rto, self.timed, self.due, self.tries = None, 0, SECOND, None, None, 0
        # What it receives: all below `expected` came, `early` holds what came behind a gap.
        self.irs, self.expected, self.early, self.fin_at, self.buffer, self.to_read = None, 0, {}, None, bytearray(), 0
        self.offered = self.most

    def dead(self):
        return self.report["state"] in ("closed", "lost")

    def send(self, flags, at, data=b""):
        self.offered = max(0, self.most - len(self.buffer))
        options = struct.pack("!BBH", 2, 4, self.mss) if flags & SYN else b""
        ack = (self.irs + self.expected) % 2**32 if self.irs is not None else 0
        flags |= ACK if self.irs is not None else 0
        self.stack.send(self.own, self.peer, (self.first + at) % 2**32, ack, flags, self.offered, options, data)
        self.owes = False

    def segment(self, at, least_room=0):  # sends what stands at a position, and gives its length; 0: nothing may go
        last = 1 + self.to_send
        if at == 0:
            size, flags = 1, SYN
            self.send(SYN, 0)
        else:
            left, room = last - at, max(least_room, self.una + min(self.cwnd, self.room) - at)
            size = int(min(self.mss, left, room))
            whole = size == self.mss or at == self.una or size == left and (self.nodelay or self.finish)
            if size < 0 or size == 0 and (left > 0 or not self.finish) or not whole:
                return 0  # no room, nothing to send, or less than a segment while others are under way
            fin = self.finish and size == left
            begin = (at - 1) % 251
            self.send(PSH | FIN if fin else PSH if size == left else 0, at, PATTERN[begin:begin + size])
            size += fin
        if at == self.top and self.timed is None:
            self.timed = (at + size, self.stack.now)
        elif at < self.top:
            self.timed = None  # Karn: what was sent twice measures nothing
        self.top = max(self.top, at + size)
        self.due = self.due or self.stack.now + self.rto
        return size

    def transmit(self):
        end = 1 + self.to_send + self.finish
        while not self.dead() and self.peer and self.nxt < (end if self.una > 0 else 1):
            size = self.segment(self.nxt)
            if size == 0:
                if self.nxt == self.una < end:  # the window is closed: the timer probes it
                    self.due = self.due or self.stack.now + self.rto
                break
            self.nxt += size
        self.report["sent_bytes"] = max(0, min(self.top - 1, self.to_send))

    def timeout(self):
        self.tries += 1
        if self.tries > TRIES:
            self.report["state"] = "lost"
            return
        self.due, self.rto = None, min(2 * self.rto, 60 * SECOND)
        if self.una > 0 and self.room == 0:
            self.segment(self.una, least_room=1)
            self.tries = 0  # who answers with a closed window is there
            return
        if self.una > 0:
            self.ssthresh, self.cwnd = max((self.top - self.una) // 2, 2 * self.mss), self.mss
        self.nxt, self.recover, self.duplicates, self.recovering = self.una, self.top, 0, False
        self.transmit()

    def measure(self, rtt):  # RFC 6298
        if self.srtt is None:
            self.srtt, self.rttvar = rtt, rtt / 2
        else:
            self.rttvar += (abs(self.srtt - rtt) - self.rttvar) / 4
            self.srtt += (rtt - self.srtt) / 8
        self.rto = int(min(max(self.srtt + 4 * self.rttvar, SECOND), 60 * SECOND))

    def acknowledged(self, ack, window, pure):  # RFC 5681 and 6582
        if ack > self.una:
            fresh, self.una, self.nxt, self.tries, self.duplicates = ack - self.una, ack, max(self.nxt, ack), 0, 0
            if self.timed and ack >= self.timed[0]:
                self.measure(self.stack.now - self.timed[1])
                self.timed = None
            self.due = self.stack.now + self.rto if ack < self.top else None
            if self.recovering and ack < self.recover:  # a partial one: the next is lost as well
                self.segment(ack, least_room=self.mss)
                self.cwnd = max(self.cwnd - fresh + self.mss, self.mss)
            elif self.recovering:
                self.recovering, self.cwnd = False, self.ssthresh
            else:
                self.cwnd += min(fresh, self.mss) if self.cwnd < self.ssthresh else self.mss * self.mss // self.cwnd
        elif ack == self.una < self.top and pure and window == self.room:
            self.duplicates += 1
            if self.recovering:
                self.cwnd += self.mss
            elif self.duplicates == 3 and ack >= self.recover:
                self.ssthresh = max((self.top - self.una) // 2, 2 * self.mss)
                self.cwnd, self.recovering, self.recover = self.ssthresh + 3 * self.mss, True, self.top
                self.segment(ack, least_room=self.mss)
        self.room = window

    def arrive(self, seq, ack, flags, window, options, data):
        self.owes = False
        at = near(seq, self.irs, self.expected) if self.irs is not None else 0
        ack = near(ack, self.first, self.una) if flags & ACK else self.una
        if flags & RST:  # it has to fit what is expected (RFC 5961)
            if self.irs is None and flags & ACK and ack == 1 or self.irs is not None and at == self.expected:
                self.report["state"] = "lost"
            return
        if self.irs is None:
            if not flags & SYN or not 0 <= ack <= self.top:
                return
            self.irs, self.expected, self.owes = seq, 1, True
            while options and options[0] != 0:
                length = 1 if options[0] == 1 else max(2, options[1])
                if options[0] == 2:
                    self.mss = min(self.mss, struct.unpack("!H", options[2:4])[0])
                options = options[length:]
            if self.report["state"] == "listening" or not flags & ACK:  # or both ends have opened
                self.report["state"], self.nxt, self.due = "connecting", 0, None
            at += 1
        elif flags & SYN or not self.expected - WINDOW <= at <= self.expected + self.offered:
            return self.send(0, self.nxt)
        if ack <= self.top:
            self.acknowledged(ack, window, not data and not flags & (SYN | FIN))
        if self.una > 0 and self.report["state"] == "connecting":
            self.report["state"] = "open"
        if data or flags & FIN:
            self.owes = True
            if flags & FIN:
                self.fin_at = at + len(data)
            self.early[at] = max(self.early.get(at, b""), data[:max(0, self.expected + self.offered - at)], key=len)
            while any(at <= self.expected for at in self.early):
                at = min(self.early)
                fresh = self.early.pop(at)[self.expected - at:]
                self.buffer += fresh
                self.expected += len(fresh)
            self.expected += self.expected == self.fin_at
        self.read()

    def read(self):
        fresh = bytes(self.buffer[:min(len(self.buffer), self.to_read)])
        del self.buffer[:len(fresh)]
        self.to_read -= len(fresh)
        self.report["received_bytes"] += len(fresh)
        self.report["received_crc"] = zlib.crc32(fresh, self.report["received_crc"])
        self.report["ended"] = self.fin_at is not None and self.expected > self.fin_at and not self.buffer
        if self.most - len(self.buffer) >= self.offered + min(2 * self.mss, self.most / 2):
            self.owes = True  # the window has opened far enough to say so

    def rest(self):  # behind every packet and command
        if self.dead() or not self.peer:
            return
        self.transmit()
        if self.owes:
            self.send(0, self.nxt)
        if self.fin_at is not None and self.expected > self.fin_at and self.finish and self.una == 2 + self.to_send:
            self.report["state"] = "closed"
        self.report["cwnd_bytes"], self.report["srtt_ns"] = int(self.cwnd), None if self.srtt is None else int(self.srtt)


class Stack:
    def __init__(self, control, packets, start):
        self.control, self.packets, self.tcp, self.mtu = control, packets, start["tcp"], start["mtu"]
        self.addresses = [ipaddress.ip_address(address) for address, _ in start["addresses"]]
        self.random, self.now, self.listeners, self.connections, self.sockets = random.Random(start["seed"]), 0, {}, {}, {}
        for setting in "sack", "timestamps", "window_scaling":
            if self.tcp.get(setting):
                raise Unsupported(setting)
        if self.tcp.get("ecn", "off") != "off":
            raise Unsupported("ECN")
        control.send(json.dumps({"ready": {"version": "example 1"}}).encode())

    def send(self, own, peer, seq, ack, flags, window, options=b"", data=b""):
        tcp = struct.pack("!HHIIBBHHH", own[1], peer[1], seq, ack, 5 + len(options) // 4 << 4, flags, window, 0, 0) + options + data
        pseudo = own[0].packed + peer[0].packed + struct.pack("!II", len(tcp), 6)
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        if own[0].version == 4:
            ip = struct.pack("!BBHHHBBH4s4s", 69, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, own[0].packed, peer[0].packed)
            ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        else:
            ip = struct.pack("!IHBB16s16s", 6 << 28, len(tcp), 6, 64, own[0].packed, peer[0].packed)
        self.packets.send(ip + tcp)
        self.sent += 1

    def arrive(self, packet):
        if packet[0] >> 4 == 4:
            header, protocol, addresses = (packet[0] & 15) * 4, packet[9], packet[12:20]
            packet = packet[:struct.unpack("!H", packet[2:4])[0]]
        else:
            header, protocol, addresses = 40, packet[6], packet[8:40]
        peer, own = (ipaddress.ip_address(addresses[half:half + len(addresses) // 2]) for half in (0, len(addresses) // 2))
        tcp = packet[header:]
        if protocol != 6 or own not in self.addresses or checksum(addresses + struct.pack("!II", len(tcp), 6) + tcp) % 65535:
            return
        theirs, ours, seq, ack, length, flags, window = struct.unpack("!HHIIBBH", tcp[:16])
        data, key = tcp[(length >> 4) * 4:], (own, ours, peer, theirs)
        connection = self.connections.get(key)
        if connection is None and ours in self.listeners and flags & (SYN | ACK | RST) == SYN:
            connection = self.connections[key] = self.listeners.pop(ours)
            connection.own, connection.peer = (own, ours), (peer, theirs)
        if connection is not None and connection.report["state"] != "lost":
            connection.arrive(seq, ack, flags, window, tcp[20:(length >> 4) * 4], data)
            connection.rest()
            if connection.report["state"] == "closed" and connection.owes:
                connection.send(0, connection.nxt)  # its FIN again: our last acknowledgement was lost
        elif not flags & RST:
            reach = (seq + len(data) + (flags & SYN > 0) + (flags & FIN)) % 2**32
            self.send((own, ours), (peer, theirs), *((ack, 0, RST) if flags & ACK else (0, reach, RST | ACK)), 0)

    def command(self, name, order):
        def end(text):
            address, port = text.rsplit(":", 1)
            return ipaddress.ip_address(address.strip("[]")), int(port)

        if name == "listen":
            self.listeners[order["port"]] = self.sockets[order["socket"]] = Connection(self, order)
            return
        if name == "connect":
            own, peer = end(order["from"]), end(order["to"])
            self.sockets[order["socket"]] = self.connections[(*own, *peer)] = Connection(self, order, own, peer)
        connection = self.sockets[order["socket"]]
        connection.owes = False
        if name == "send":
            connection.to_send += order["bytes"] if order["bytes"] is not None else 1 << 60
        elif name == "receive":
            connection.to_read += order["bytes"] if order["bytes"] is not None else 1 << 60
            connection.read()
        elif name == "finish":
            connection.finish = True
        elif name == "abort" and not connection.dead():
            if connection.irs is not None:
                connection.send(RST, connection.nxt)
            connection.report["state"] = "lost"
        connection.rest()

    def step(self, now_ns, commands, packets):
        before = {id: dict(connection.report) for id, connection in self.sockets.items()}
        self.now, self.sent = now_ns, 0
        for command in commands:
            for name, order in command.items():
                self.command(name, order)
        for _ in range(packets):
            self.arrive(self.packets.recv(1 << 16))
        alive = [connection for connection in self.sockets.values() if not connection.dead()]
        for connection in alive:
            if connection.due and connection.due <= now_ns:
                connection.timeout()
        due = [connection.due for connection in alive if connection.due and not connection.dead()]
        changed = [connection.report for id, connection in self.sockets.items() if connection.report != before.get(id)]
        return {"done": {"packets": self.sent, "next_ns": min(due, default=None), "sockets": changed}}


def main():
    control, packets = socket.socket(fileno=0), socket.socket(fileno=1)
    try:
        stack = Stack(control, packets, json.loads(control.recv(1 << 16))["start"])
        while (message := control.recv(1 << 16)) and (order := json.loads(message)) != "end":
            control.send(json.dumps(stack.step(**order["step"])).encode())
    except Unsupported as what:
        control.send(json.dumps({"unsupported": str(what)}).encode())


main()
