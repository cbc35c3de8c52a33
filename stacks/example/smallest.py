#!/usr/bin/env python3
"""The smallest TCP that follows the contract bdp.stack/1 (docs/stack-contract.md): a fixed window, and go-back-N a second after a loss.

A place to begin: stack.py beside it has congestion control. Positions in a stream: 0 is the SYN, 1 the first byte, then comes the FIN."""
import ipaddress, json, random, socket, struct, zlib

FIN, SYN, RST, ACK, SECOND, WINDOW, PATTERN = 1, 2, 4, 16, 10**9, 65535, bytes(range(251)) * 300

def checksum(data):  # 65536 is 1 modulo 65535, so that this is the sum of all 16-bit words
    return 65535 - int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 65535

def ahead(a, b):  # how far one number of 32 bits is ahead of another
    return (a - b + 2**31) % 2**32 - 2**31

class Connection:
    def __init__(self, stack, order, own=None, peer=None):
        self.stack, self.own, self.peer, self.state = stack, own, peer, "connecting" if peer else "listening"
        self.id, self.mss = order["socket"], min(order.get("mss_bytes", WINDOW), stack.mtu - 40)
        self.first, self.una, self.nxt, self.top = stack.random.getrandbits(32), 0, 0, 0  # acknowledged, next, ever sent
        self.to_send, self.finish, self.room, self.due, self.tries = 0, False, WINDOW, None, 0
        self.irs, self.expected, self.window, self.ended = None, 0, min(order.get("window_bytes", WINDOW), WINDOW), False
        self.unread, self.to_read, self.received, self.crc = b"", 0, 0, 0

    def report(self):
        return {"socket": self.id, "state": self.state, "sent_bytes": max(0, min(self.top - 1, self.to_send)), "received_crc": self.crc,
                "received_bytes": self.received, "ended": self.ended and not self.unread}

    def send(self, flags, at, data=b""):
        ack, flags = (0, flags) if self.irs is None else ((self.irs + self.expected) % 2**32, flags | ACK)
        (own, source), (peer, port), options = self.own, self.peer, struct.pack("!BBH", 2, 4, self.mss) if flags & SYN else b""
        tcp = struct.pack("!HHIIBBHI", source, port, (self.first + at) % 2**32, ack, 80 + len(options) * 4, flags,
                          self.window - len(self.unread), 0) + options + data
        tcp = tcp[:16] + struct.pack("!H", checksum(own + peer + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
        ip = struct.pack("!BBHIBBH", 69, 0, 20 + len(tcp), 0x4000, 64, 6, 0) + own + peer
        self.stack.packets.send(ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp)
        self.stack.sent += 1

    def go_on(self):  # reads, sends what the window allows, and sees to the timer
        fresh, self.unread = self.unread[:self.to_read], self.unread[self.to_read:]
        self.to_read, self.received, self.crc = self.to_read - len(fresh), self.received + len(fresh), zlib.crc32(fresh, self.crc)
        last = 1 + self.to_send + self.finish if self.una else 1
        while self.peer and self.nxt < last:
            size = max(0, min(self.mss, 1 + self.to_send - self.nxt, self.una + self.room - self.nxt)) if self.nxt else 1
            fin = self.una > 0 and self.finish and self.nxt + size == 1 + self.to_send
            if size + fin == 0:
                break
            self.send(FIN * fin if self.nxt else SYN, self.nxt, PATTERN[(self.nxt - 1) % 251:][:size] if self.nxt else b"")
            self.nxt += size + fin
            self.top = max(self.top, self.nxt)
        self.due = (self.due or self.stack.now + SECOND) if self.peer and self.una < last and self.tries < 12 else None
        if self.ended and not self.unread and self.finish and self.una == 2 + self.to_send:
            self.state = "closed"

    def timeout(self):
        self.due, self.nxt, self.tries, self.room = None, self.una, self.tries + 1, max(self.room, 1)  # a closed window is probed
        self.state = "lost" if self.tries == 12 else self.state
        self.go_on()

    def arrive(self, seq, ack, flags, window, options, data):
        if flags & RST or self.irs is None and not flags & SYN:
            self.state = "lost" if flags & RST and (self.irs is None or seq == (self.irs + self.expected) % 2**32) else self.state
            return
        if self.irs is None:
            self.irs, self.expected = seq, 1
            while options and options[0] != 0:
                self.mss = min(self.mss, int.from_bytes(options[2:4], "big")) if options[0] == 2 else self.mss
                options = options[1 if options[0] == 1 else max(2, options[1]):]
        una = self.una + ahead(ack, self.first + self.una)
        if flags & ACK and self.una <= una <= self.top:
            self.due, self.tries = (None, 0) if una > self.una or not window else (self.due, self.tries)
            self.una, self.nxt, self.room, self.state = una, max(self.nxt, una), window, "open" if una and self.state == "connecting" else self.state
        old = -ahead(seq + (flags & SYN > 0), self.irs + self.expected)  # so many of its bytes were there before
        if 0 <= old <= len(data) and not self.ended:
            fresh = data[old:][:self.window - len(self.unread)]
            self.ended = flags & FIN > 0 and old + len(fresh) == len(data)
            self.unread, self.expected = self.unread + fresh, self.expected + len(fresh) + self.ended
        self.go_on()
        if (data or flags & (SYN | FIN)) and self.top:
            self.send(0, self.nxt)

class Stack:
    def __init__(self, packets, start):
        self.packets, self.mtu, self.random, self.now, self.sent = packets, start["mtu"], random.Random(start["seed"]), 0, 0
        self.sockets, self.reported = {}, {}

    def step(self, now_ns, commands, packets):
        self.now, self.sent = now_ns, 0
        for (name, order), in (command.items() for command in commands):
            end = lambda text: (ipaddress.ip_address(text.split(":")[0]).packed, int(text.split(":")[1]))
            if name == "listen":
                self.sockets[order["socket"]] = Connection(self, order, (b"", order["port"]))
                self.sockets[order["socket"]].peer, self.sockets[order["socket"]].state = None, "listening"
            elif name == "connect":
                self.sockets[order["socket"]] = Connection(self, order, end(order["from"]), end(order["to"]))
            connection, amount = self.sockets[order["socket"]], order.get("bytes") if order.get("bytes") is not None else 1 << 60
            connection.to_send += amount if name == "send" else 0
            connection.to_read += amount if name == "receive" else 0
            connection.finish |= name == "finish"
            if name in ("abort", "receive") and connection.irs is not None:
                connection.send(RST if name == "abort" else 0, connection.nxt)  # or the window, which may be open again
            connection.state = "lost" if name == "abort" else connection.state
            if connection.state != "lost":
                connection.go_on()
        for packet in (self.packets.recv(1 << 16) for _ in range(packets)):
            self.arrive(packet[12:16], packet[16:20], packet[(packet[0] & 15) * 4:])
        for connection in self.sockets.values():
            if connection.state != "lost" and connection.due and connection.due <= now_ns:
                connection.timeout()
        due = [connection.due for connection in self.sockets.values() if connection.due and connection.state != "lost"]
        reports = {id: connection.report() for id, connection in self.sockets.items()}
        changed, self.reported = [report for id, report in reports.items() if report != self.reported.get(id)], reports
        return {"done": {"packets": self.sent, "next_ns": min(due, default=None), "sockets": changed}}

    def arrive(self, peer, own, tcp):
        if checksum(peer + own + struct.pack("!HH", 6, len(tcp)) + tcp) % 65535:
            return
        theirs, ours, seq, ack, length, flags, window = struct.unpack("!HHIIBBH", tcp[:16])
        for connection in self.sockets.values():
            if connection.state == "listening" and connection.own[1] == ours and flags & SYN:
                connection.own, connection.peer, connection.state = (own, ours), (peer, theirs), "connecting"
            if (connection.own, connection.peer) == ((own, ours), (peer, theirs)) and connection.state != "lost":
                connection.arrive(seq, ack, flags, window, tcp[20:(length >> 4) * 4], tcp[(length >> 4) * 4:])

control, packets = socket.socket(fileno=0), socket.socket(fileno=1)
start = json.loads(control.recv(1 << 16))["start"]
lacks = [name for name in ("congestion", "sack", "timestamps", "window_scaling", "ecn", "initial_window") if start["tcp"].get(name) not in (None, False, "off")]
stack = Stack(packets, start)
control.send(json.dumps({"unsupported": lacks[0]} if lacks else {"ready": {"version": "smallest 1"}}).encode())
while (message := control.recv(1 << 16)) and (order := json.loads(message)) != "end":
    control.send(json.dumps(stack.step(**order["step"])).encode())
