package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	largestBuffer = 1 << 30
	pieceBytes    = 1 << 17
	backlog       = 128 // With a short one gVisor answers by SYN cookies, which carry neither SACK nor window scaling.
	period        = 251 // The byte at a position of a stream is the remainder by this.
	endless       = math.MaxInt64
)

var pattern = func() (table [pieceBytes + period]byte) {
	for i := range table {
		table[i] = byte(i % period)
	}
	return
}()

// socket is one endpoint, and what is wanted of it.
type socket struct {
	endpoint  tcpip.Endpoint
	now       report
	reported  report // What was said of it last.
	listening bool
	buffer    int64 // Size of the receive buffer that is wanted; 0: gVisor's own, which grows.
	toSend    int64
	toReceive int64
	finish    bool
	finished  bool
	aborted   bool
	room      []byte
}

func (h *host) command(name string, wanted *arguments) error {
	if name == "listen" || name == "connect" {
		return h.open(name == "listen", wanted)
	}
	for _, s := range h.sockets {
		if s.now.Socket == wanted.Socket {
			return s.command(name, wanted)
		}
	}
	return fmt.Errorf("there is no socket %d", wanted.Socket)
}

func (h *host) open(listen bool, wanted *arguments) error {
	protocol := ipv4.ProtocolNumber
	if listen && !h.has(ipv4.ProtocolNumber) || !listen && wanted.To.Addr().Is6() {
		protocol = ipv6.ProtocolNumber
	}
	endpoint, failure := h.stack.NewEndpoint(tcp.ProtocolNumber, protocol, &waiter.Queue{})
	if failure != nil {
		return errors.New(failure.String())
	}
	options := endpoint.SocketOptions()
	options.SetDelayOption(!wanted.NoDelay)
	if wanted.Congestion != nil {
		option := tcpip.CongestionControlOption(*wanted.Congestion)
		if endpoint.SetSockOpt(&option) != nil {
			return unsupported(fmt.Sprintf("the congestion control '%s' (it has reno and cubic)", *wanted.Congestion))
		}
	}
	if wanted.MSSBytes != nil && endpoint.SetSockOptInt(tcpip.MaxSegOption, *wanted.MSSBytes) != nil {
		return unsupported(fmt.Sprintf("segments of %d bytes", *wanted.MSSBytes))
	}
	var buffer int64
	if wanted.WindowBytes != nil {
		// Half of the buffer becomes window; the range of sizes is that of the whole stack.
		size := min(max(2**wanted.WindowBytes, tcp.MinBufferSize), largestBuffer)
		var limits tcpip.TCPReceiveBufferSizeRangeOption
		if err := h.stack.TransportProtocolOption(tcp.ProtocolNumber, &limits); err != nil {
			return errors.New(err.String())
		}
		limits.Max = max(limits.Max, int(size))
		if err := h.set(&limits); err != nil {
			return err
		}
		buffer = size
		options.SetReceiveBufferSize(size, true)
	}
	s := &socket{endpoint: endpoint, buffer: buffer, now: report{Socket: wanted.Socket, State: "connecting"}, listening: listen, room: make([]byte, pieceBytes)}
	h.sockets = append(h.sockets, s)
	if listen {
		s.now.State = "listening"
		if failure = endpoint.Bind(tcpip.FullAddress{NIC: nic, Port: wanted.Port}); failure == nil {
			failure = endpoint.Listen(backlog)
		}
	} else if failure = endpoint.Bind(full(wanted.From)); failure == nil {
		failure = endpoint.Connect(full(wanted.To))
		if _, started := failure.(*tcpip.ErrConnectStarted); started {
			failure = nil
		}
	}
	if failure != nil {
		return errors.New(failure.String())
	}
	return nil
}

// has says whether the host has an address of the protocol.
func (h *host) has(protocol tcpip.NetworkProtocolNumber) bool {
	address, err := h.stack.GetMainNICAddress(nic, protocol)
	return err == nil && address.PrefixLen > 0
}

func full(end netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(end.Addr().AsSlice()), Port: end.Port()}
}

func (s *socket) command(name string, wanted *arguments) error {
	more := func(left *int64) {
		if wanted.Bytes == nil || *wanted.Bytes > endless-*left {
			*left = endless
		} else {
			*left += *wanted.Bytes
		}
	}
	switch name {
	case "send":
		more(&s.toSend)
	case "receive":
		more(&s.toReceive)
	case "finish":
		s.finish = true
	case "abort":
		s.aborted = true
		s.endpoint.Abort()
	default:
		return fmt.Errorf("there is no command '%s'", name)
	}
	return nil
}

// exchange gives the stack what it takes, and takes what it has.
func (s *socket) exchange() {
	if s.listening {
		accepted, _, err := s.endpoint.Accept(nil)
		if err != nil {
			return
		}
		s.endpoint.Close()
		s.endpoint, s.listening = accepted, false
		if s.buffer > 0 {
			// An accepted endpoint begins with the size of the listening one, but grows.
			s.endpoint.SocketOptions().SetReceiveBufferSize(s.buffer, true)
		}
	}
	if s.aborted {
		return
	}
	for s.toSend > 0 {
		begin := s.now.SentBytes % period
		piece := pattern[begin : begin+min(s.toSend, pieceBytes)]
		taken, err := s.endpoint.Write(bytes.NewReader(piece), tcpip.WriteOptions{})
		if err != nil || taken == 0 {
			break
		}
		s.now.SentBytes += taken
		if s.toSend != endless {
			s.toSend -= taken
		}
	}
	for !s.now.Ended {
		into := tcpip.SliceWriter(s.room[:min(max(s.toReceive, 1), pieceBytes)])
		read, err := s.endpoint.Read(&into, tcpip.ReadOptions{Peek: s.toReceive == 0})
		_, s.now.Ended = err.(*tcpip.ErrClosedForReceive)
		if err != nil || s.toReceive == 0 || read.Count == 0 {
			break
		}
		s.now.ReceivedBytes += int64(read.Count)
		s.now.ReceivedCRC = crc32.Update(s.now.ReceivedCRC, crc32.IEEETable, s.room[:read.Count])
		if s.toReceive != endless {
			s.toReceive -= int64(read.Count)
		}
		s.endpoint.ModerateRecvBuf(read.Count)
	}
	if s.finish && !s.finished && s.toSend == 0 && s.state() == "open" {
		s.finished = s.endpoint.Shutdown(tcpip.ShutdownWrite) == nil
	}
}

func (s *socket) state() string {
	state := tcp.EndpointState(s.endpoint.State())
	switch {
	case s.listening:
		return "listening"
	case s.aborted || state == tcp.StateError || s.now.State == "lost":
		return "lost"
	case state == tcp.StateSynSent || state == tcp.StateSynRecv || state == tcp.StateConnecting:
		return "connecting"
	case state == tcp.StateTimeWait:
		return "closed"
	case state == tcp.StateFinWait2 && s.now.Ended:
		// Both ended and acknowledged: where gVisor retransmits a FIN of LAST-ACK it goes on as if it had closed first, and stays here.
		return "closed"
	case state == tcp.StateClose && s.finished && (s.now.Ended || s.now.State == "closed"):
		return "closed"
	case state == tcp.StateClose:
		return "lost"
	}
	return "open"
}

// look is what there is to be known of it.
func (s *socket) look() report {
	s.now.State = s.state()
	var info tcpip.TCPInfoOption
	if s.now.State == "open" && s.endpoint.GetSockOpt(&info) == nil {
		s.now.SRTTNS = int64(info.RTT)
	}
	return s.now
}
