package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	randv2 "math/rand/v2"
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const nic tcpip.NICID = 1

// host is the stack, its clock, its link, and what is wanted of its sockets.
type host struct {
	clock   *clock
	stack   *stack.Stack
	link    *link
	sockets []*socket
}

// link collects what the stack sends. Of channel.Endpoint it takes all but the queue.
type link struct {
	*channel.Endpoint
	sent [][]byte
}

func (l *link) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	for _, packet := range list.AsSlice() {
		view := packet.ToView()
		l.sent = append(l.sent, append([]byte(nil), view.AsSlice()...))
		view.Release()
	}
	return list.Len(), nil
}

func newHost(settings *start) (*host, error) {
	wanted := &settings.TCP
	switch {
	case wanted.WindowScaling != nil && !*wanted.WindowScaling:
		return nil, unsupported("disabling window scaling")
	case wanted.Timestamps != nil && !*wanted.Timestamps:
		return nil, unsupported("disabling timestamps")
	case wanted.InitialWindow != nil && *wanted.InitialWindow != tcp.InitialCwnd:
		return nil, unsupported(fmt.Sprintf("an initial window of %d segments (it has %d)", *wanted.InitialWindow, tcp.InitialCwnd))
	case wanted.ECN != nil && *wanted.ECN != "off":
		return nil, unsupported("ECN")
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], settings.Seed)
	h := &host{clock: &clock{}, link: &link{Endpoint: channel.New(0, settings.MTU, "")}}
	h.stack = stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			ipv4.NewProtocol,
			// Without neighbours there is no address to look for twice and no router to ask.
			ipv6.NewProtocolWithOptions(ipv6.Options{}),
		},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
		Clock:              h.clock,
		RandSource:         rand.NewSource(int64(settings.Seed)),
		SecureRNG:          randv2.NewChaCha8(seed),
	})
	h.stack.Pause()
	sack := tcpip.TCPSACKEnabled(wanted.SACK == nil || *wanted.SACK)
	if err := h.set(&sack); err != nil {
		return nil, err
	}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: tcp.DefaultReceiveBufferSize, Max: largestBuffer}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: tcp.DefaultSendBufferSize, Max: largestBuffer}
	for _, one := range []struct {
		wanted      *int
		usual, most *int
	}{{wanted.ReceiveBuffer, &receive.Default, &receive.Max}, {wanted.SendBuffer, &send.Default, &send.Max}} {
		*one.most = tcp.MaxBufferSize
		if one.wanted != nil {
			*one.most = max(*one.wanted, tcp.MinBufferSize)
			*one.usual = min(*one.usual, *one.most)
		}
	}
	if err := errors.Join(h.set(&receive), h.set(&send), h.congestion(wanted.Congestion)); err != nil {
		return nil, err
	}
	if err := h.stack.CreateNIC(nic, h.link); err != nil {
		return nil, errors.New(err.String())
	}
	for _, own := range settings.Addresses {
		protocol := tcpip.ProtocolAddress{Protocol: number(own.ip), AddressWithPrefix: tcpip.AddressWithPrefix{
			Address: tcpip.AddrFromSlice(own.ip.AsSlice()), PrefixLen: own.prefix}}
		if err := h.stack.AddProtocolAddress(nic, protocol, stack.AddressProperties{}); err != nil {
			return nil, errors.New(err.String())
		}
	}
	h.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	return h, nil
}

func number(ip netip.Addr) tcpip.NetworkProtocolNumber {
	if ip.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

func (h *host) set(option tcpip.SettableTransportProtocolOption) error {
	if err := h.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
		return fmt.Errorf("%T: %s", option, err)
	}
	return nil
}

func (h *host) congestion(wanted *string) error {
	if wanted == nil {
		return nil
	}
	if *wanted != "reno" && *wanted != "cubic" {
		return unsupported(fmt.Sprintf("the congestion control '%s' (it has reno and cubic)", *wanted))
	}
	option := tcpip.CongestionControlOption(*wanted)
	return h.set(&option)
}

// settle lets the processors of TCP work until their queues are empty. They answer a pause only then.
func (h *host) settle() {
	h.stack.Resume()
	h.stack.Pause()
	for _, s := range h.sockets {
		s.exchange()
	}
}

func (h *host) step(order *step, room []byte) (*done, error) {
	h.clock.nowNS = order.NowNS
	for _, command := range order.Commands {
		for name, arguments := range command {
			if err := h.command(name, &arguments); err != nil {
				return nil, err
			}
			h.settle()
		}
	}
	for range order.Packets {
		packet, err := receive(packets, room)
		if err != nil {
			return nil, err
		}
		if len(packet) == 0 {
			return nil, errors.New("the socket of packets was closed")
		}
		h.inject(packet)
		h.settle()
	}
	for due := h.clock.due(); due != nil; due = h.clock.due() {
		due.call()
		h.settle()
	}
	answer := &done{Packets: len(h.link.sent), Sockets: []report{}}
	for _, packet := range h.link.sent {
		if err := send(packets, packet); err != nil {
			return nil, err
		}
	}
	h.link.sent = h.link.sent[:0]
	if next, ok := h.clock.next(); ok {
		answer.NextNS = &next
	}
	for _, s := range h.sockets {
		if now := s.look(); now != s.reported {
			s.reported = now
			answer.Sockets = append(answer.Sockets, now)
		}
	}
	return answer, nil
}

func (h *host) inject(packet []byte) {
	protocol := header.IPv4ProtocolNumber
	if packet[0]>>4 == 6 {
		protocol = header.IPv6ProtocolNumber
	}
	arrived := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	h.link.InjectInbound(protocol, arrived)
	arrived.DecRef()
}
