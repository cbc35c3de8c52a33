#!/usr/bin/env python3
"""A small TCP for bdp over IPv4, in the standard library alone: the contract bdp.stack/1 (docs/stack-contract.md).

Positions in a stream do not wrap: 0 is the SYN, 1 the first byte, then the FIN; only near() knows the 32 bits of the wire.
Time is what the last step said, and randomness comes from the seed, so that the same case gives the same packets."""
import ipaddress, json, random, socket, struct, zlib

FIN, SYN, RST, ACK = 1, 2, 4, 16
SECOND, WINDOW, PATTERN = 10**9, 65535, bytes(range(251)) * 300  # byte p of a stream is p % 251

class Unsupported(Exception): pass

def checksum(data):  # 65536 is 1 modulo 65535, so that this is the sum of all 16-bit words
    return 65535 - int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 65535

def near(wire, first, at):  # the position nearest to `at` that has this number on the wire
    return at + (wire - first - at + 2**31) % 2**32 - 2**31

class Connection:
    def __init__(self, stack, order, own=None, peer=None):
        if order.get("congestion", "reno") != "reno":
            raise Unsupported(f"the congestion control '{order['congestion']}' (it has reno)")
        self.stack, self.own, self.peer, self.state = stack, own, peer, "connecting" if peer else "listening"
        self.id, self.window = order["socket"], min(order.get("window_bytes", WINDOW), WINDOW)
        self.mss, self.nodelay = min(order.get("mss_bytes", WINDOW), stack.mtu - 40), order.get("nodelay", False)
        # Sending: all below `una` is acknowledged, `nxt` is next, all below `top` was sent once; `recover` is that of RFC 6582.
        self.first, self.una, self.nxt, self.top, self.recover = stack.random.getrandbits(32), 0, 0, 0, 0
        self.to_send, self.finish, self.room, self.duplicates, self.recovering = 0, False, self.mss, 0, False
        self.cwnd, self.ssthresh = stack.tcp.get("initial_window", 10) * self.mss, float("inf")
        self.srtt, self.rttvar, self.rto, self.timed, self.due, self.tries = 0, 0, SECOND, None, None, 0
        # Receiving: all below `expected` has come, `early` holds what came behind a gap, `unread` what nobody has read.
        self.irs, self.expected, self.early, self.end, self.unread, self.to_read = None, 0, {}, None, b"", 0
        self.offered, self.received, self.crc = self.window, 0, 0

    def report(self):
        return {"socket": self.id, "state": self.state, "sent_bytes": max(0, min(self.top - 1, self.to_send)), "cwnd_bytes": int(self.cwnd),
                "received_bytes": self.received, "received_crc": self.crc, "ended": self.expected - 1 == self.end and not self.unread}

    def send(self, flags, at, data=b""):
        self.offered, self.owes = self.window - len(self.unread), False
        ack, flags = (0, flags) if self.irs is None else (self.irs + self.expected, flags | ACK)
        options = struct.pack("!BBH", 2, 4, self.mss) if flags & SYN else b""
        self.stack.send(self.own, self.peer, self.first + at, ack, flags, self.offered, options, data)

    def segment(self, at, room):  # sends what stands at a position, and returns its length; 0: nothing may go
        size = min(self.mss, 1 + self.to_send - at, int(room))
        fin = self.finish and at + size == 1 + self.to_send
        part = size < self.mss and at > self.una and not (at + size == 1 + self.to_send and (self.nodelay or self.finish))
        if at > 0 and (size + fin <= 0 or part):  # part of a segment waits while others are under way (Nagle)
            return 0
        self.send(SYN if at == 0 else FIN * fin, at, PATTERN[(at - 1) % 251:][:size] if at > 0 else b"")
        size = size + fin if at > 0 else 1
        self.timed = None if at < self.top else self.timed or (at + size, self.stack.now)  # Karn's rule
        self.top, self.due = max(self.top, at + size), self.due or self.stack.now + self.rto
        return size

    def transmit(self):  # all that the windows allow
        while self.nxt < (1 + self.to_send + self.finish if self.una > 0 else 1):
            size = self.segment(self.nxt, self.una + min(self.cwnd, self.room) - self.nxt)
            if size == 0:
                if self.nxt == self.una:  # the window is closed: the timer probes it
                    self.due = self.due or self.stack.now + self.rto
                break
            self.nxt += size

    def timeout(self):
        self.tries, self.due, self.rto = self.tries + 1, None, min(2 * self.rto, 60 * SECOND)
        if self.tries > 12:
            self.state = "lost"
        elif self.una > 0 and self.room == 0:
            self.segment(self.una, 1)
            self.tries = 0  # who closes the window is there
        else:
            if self.una > 0:
                self.ssthresh, self.cwnd = max((self.top - self.una) / 2, 2 * self.mss), self.mss
            self.nxt, self.recover, self.duplicates, self.recovering = self.una, self.top, 0, False
            self.transmit()

    def acknowledge(self, ack, window, pure):  # RFC 5681, 6298 and 6582
        if ack > self.una:
            fresh, self.una, self.nxt, self.tries, self.duplicates = ack - self.una, ack, max(self.nxt, ack), 0, 0
            if self.timed and ack >= self.timed[0]:
                rtt, self.timed = self.stack.now - self.timed[1], None
                self.rttvar += (abs(self.srtt - rtt) - self.rttvar) / 4 if self.srtt else rtt / 2
                self.srtt += (rtt - self.srtt) / 8 if self.srtt else rtt
                self.rto = int(min(max(self.srtt + 4 * self.rttvar, SECOND), 60 * SECOND))
            self.due = self.stack.now + self.rto if ack < self.top else None
            if self.recovering and ack < self.recover:  # a partial one: the next segment is lost as well
                self.segment(ack, self.mss)
                self.cwnd = max(self.cwnd - fresh, 0) + self.mss
            elif self.recovering:
                self.recovering, self.cwnd = False, self.ssthresh
            else:
                self.cwnd += min(fresh, self.mss) if self.cwnd < self.ssthresh else self.mss**2 / self.cwnd
        elif ack == self.una < self.top and pure and window == self.room:
            self.duplicates += 1
            if self.recovering:
                self.cwnd += self.mss
            elif self.duplicates == 3 and ack >= self.recover:
                self.ssthresh = max((self.top - self.una) // 2, 2 * self.mss)
                self.cwnd, self.recovering, self.recover = self.ssthresh + 3 * self.mss, True, self.top
                self.segment(ack, self.mss)
        self.room = window

    def arrive(self, seq, ack, flags, window, options, data):
        at = 0 if self.irs is None else near(seq, self.irs, self.expected)
        ack = near(ack, self.first, self.una) if flags & ACK else self.una
        if flags & RST:
            if self.irs is None and flags & ACK and ack == 1 or self.irs is not None and at == self.expected:
                self.state = "lost"
            return
        if self.irs is None:
            if not flags & SYN or not 0 <= ack <= self.top:
                return
            self.irs, self.expected, self.owes, at = seq, 1, True, 1
            while options and options[0] != 0:
                if options[0] == 2:
                    self.mss = min(self.mss, int.from_bytes(options[2:4], "big"))
                options = options[1 if options[0] == 1 else max(2, options[1]):]
            if not flags & ACK:  # the SYN of a client, or of one that opens as well
                self.state, self.nxt, self.due = "connecting", 0, None
        elif flags & SYN or not self.expected - WINDOW <= at <= self.expected + self.offered:
            return self.send(0, self.nxt)
        if ack <= self.top:
            self.acknowledge(ack, window, not data and not flags & (SYN | FIN))
        if self.una > 0 and self.state == "connecting":
            self.state = "open"
        if data or flags & FIN:
            self.owes, self.end = True, at + len(data) if flags & FIN else self.end
            self.early[at] = max(self.early.get(at, b""), data[:max(0, self.expected + self.offered - at)], key=len)
            while self.early and min(self.early) <= self.expected:
                at = min(self.early)
                fresh = self.early.pop(at)[self.expected - at:]
                self.unread, self.expected = self.unread + fresh, self.expected + len(fresh)
            self.expected += self.expected == self.end

    def rest(self):  # behind each packet and command
        fresh, self.unread = self.unread[:self.to_read], self.unread[self.to_read:]
        self.to_read, self.received, self.crc = self.to_read - len(fresh), self.received + len(fresh), zlib.crc32(fresh, self.crc)
        if self.state in ("connecting", "open") and self.peer:
            self.transmit()
        if self.peer and (self.owes or self.window - len(self.unread) >= self.offered + min(2 * self.mss, self.window / 2)):
            self.send(0, self.nxt)  # an acknowledgement, or the window has opened far enough to say so
        if self.expected - 1 == self.end and self.finish and self.una == 2 + self.to_send:
            self.state, self.due = "closed", None

class Stack:
    def __init__(self, control, packets, start):
        self.packets, self.tcp, self.mtu, self.random = packets, start["tcp"], start["mtu"], random.Random(start["seed"])
        self.now, self.listeners, self.connections, self.sockets = 0, {}, {}, {}
        for name in "sack", "timestamps", "window_scaling", "ecn":
            if self.tcp.get(name) not in (None, False, "off"):
                raise Unsupported(name)
        if any(":" in address for address, _ in start["addresses"]):
            raise Unsupported("IPv6")
        control.send(json.dumps({"ready": {"version": "example 1"}}).encode())

    def send(self, own, peer, seq, ack, flags, window, options=b"", data=b""):
        tcp = struct.pack("!HHIIBBHI", own[1], peer[1], seq % 2**32, ack % 2**32, 80 + len(options) * 4, flags, window, 0) + options + data
        tcp = tcp[:16] + struct.pack("!H", checksum(own[0] + peer[0] + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
        ip = struct.pack("!BBHIBBH", 69, 0, 20 + len(tcp), 0x4000, 64, 6, 0) + own[0] + peer[0]
        self.packets.send(ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp)
        self.sent += 1

    def arrive(self, packet):
        tcp, peer, own = packet[(packet[0] & 15) * 4:], packet[12:16], packet[16:20]
        if packet[0] >> 4 != 4 or packet[9] != 6 or checksum(peer + own + struct.pack("!HH", 6, len(tcp)) + tcp) % 65535:
            return
        theirs, ours, seq, ack, length, flags, window = struct.unpack("!HHIIBBH", tcp[:16])
        data, own, peer = tcp[(length >> 4) * 4:], (own, ours), (peer, theirs)
        if (own, peer) not in self.connections and ours in self.listeners and flags & (SYN | ACK | RST) == SYN:
            connection = self.connections[own, peer] = self.listeners.pop(ours)
            connection.own, connection.peer = own, peer
        connection = self.connections.get((own, peer))
        if connection and connection.state != "lost":
            connection.owes = False
            connection.arrive(seq, ack, flags, window, tcp[20:(length >> 4) * 4], data)
            if connection.state != "lost":
                connection.rest()
        elif not flags & RST:
            end = seq + len(data) + (flags & SYN > 0) + (flags & FIN)
            self.send(own, peer, *((ack, 0, RST) if flags & ACK else (0, end, RST | ACK)), 0)

    def command(self, name, order):
        end = lambda text: (ipaddress.ip_address(text.split(":")[0]).packed, int(text.split(":")[1]))
        if name == "listen":
            self.listeners[order["port"]] = self.sockets[order["socket"]] = Connection(self, order)
        elif name == "connect":
            own, peer = end(order["from"]), end(order["to"])
            self.connections[own, peer] = self.sockets[order["socket"]] = Connection(self, order, own, peer)
        connection, bytes_ = self.sockets[order["socket"]], order.get("bytes") if order.get("bytes") is not None else 1 << 60
        connection.owes = False
        if name == "send":
            connection.to_send += bytes_
        elif name == "receive":
            connection.to_read += bytes_
        elif name == "finish":
            connection.finish = True
        elif name == "abort" and connection.state != "lost":
            if connection.irs is not None:
                connection.send(RST, connection.nxt)
            connection.state = "lost"
        if connection.state != "lost":
            connection.rest()

    def step(self, now_ns, commands, packets):
        self.now, self.sent, before = now_ns, 0, {id: connection.report() for id, connection in self.sockets.items()}
        for command in commands:
            self.command(*list(command.items())[0])
        for _ in range(packets):
            self.arrive(self.packets.recv(1 << 16))
        for connection in self.sockets.values():
            if connection.due and connection.due <= now_ns and connection.state != "lost":
                connection.timeout()
        due = [connection.due for connection in self.sockets.values() if connection.due and connection.state != "lost"]
        reports = {id: connection.report() for id, connection in self.sockets.items()}
        changed = [report for id, report in reports.items() if report != before.get(id)]
        return {"done": {"packets": self.sent, "next_ns": min(due, default=None), "sockets": changed}}

control, packets = socket.socket(fileno=0), socket.socket(fileno=1)
try:
    stack = Stack(control, packets, json.loads(control.recv(1 << 16))["start"])
    while (message := control.recv(1 << 16)) and (order := json.loads(message)) != "end":
        control.send(json.dumps(stack.step(**order["step"])).encode())
except Unsupported as what:
    control.send(json.dumps({"unsupported": str(what)}).encode())
