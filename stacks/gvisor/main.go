// bdp-stack-gvisor runs gVisor's TCP on one host of bdp's lab, by the contract bdp.stack/1 (docs/stack-contract.md).
//
// gVisor handles segments in goroutines of its own, the processors. They are paused but for the time between an event (a packet, a timer) and
// the moment when their queues are empty, and nothing else runs meanwhile. So the order of all that happens follows from the steps alone.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
)

const (
	control      = 0 // The file descriptor of messages, one each.
	packets      = 1 // That of IP packets.
	messageBytes = 1 << 16
)

// unsupported is what the stack can't have.
type unsupported string

func (u unsupported) Error() string { return string(u) }

type start struct {
	Contract  string      `json:"contract"`
	Host      string      `json:"host"`
	Addresses []address   `json:"addresses"`
	MTU       uint32      `json:"mtu"`
	Seed      uint64      `json:"seed"`
	TCP       tcpSettings `json:"tcp"`
}

type address struct {
	ip     netip.Addr
	prefix int
}

func (a *address) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&a.ip, &a.prefix})
}

type tcpSettings struct {
	Congestion    *string `json:"congestion"`
	SACK          *bool   `json:"sack"`
	WindowScaling *bool   `json:"window_scaling"`
	Timestamps    *bool   `json:"timestamps"`
	InitialWindow *uint32 `json:"initial_window"`
	ECN           *string `json:"ecn"`
	ReceiveBuffer *int    `json:"receive_buffer_bytes"`
	SendBuffer    *int    `json:"send_buffer_bytes"`
}

type step struct {
	NowNS    int64                  `json:"now_ns"`
	Commands []map[string]arguments `json:"commands"`
	Packets  int                    `json:"packets"`
}

// arguments are those of any command.
type arguments struct {
	Socket      uint32         `json:"socket"`
	Port        uint16         `json:"port"`
	From        netip.AddrPort `json:"from"`
	To          netip.AddrPort `json:"to"`
	Bytes       *int64         `json:"bytes"`
	Congestion  *string        `json:"congestion"`
	WindowBytes *int64         `json:"window_bytes"`
	MSSBytes    *int           `json:"mss_bytes"`
	NoDelay     bool           `json:"nodelay"`
}

type report struct {
	Socket        uint32 `json:"socket"`
	State         string `json:"state"`
	SentBytes     int64  `json:"sent_bytes"`
	ReceivedBytes int64  `json:"received_bytes"`
	ReceivedCRC   uint32 `json:"received_crc"`
	Ended         bool   `json:"ended"`
	SRTTNS        int64  `json:"srtt_ns,omitempty"`
}

type done struct {
	Packets int      `json:"packets"`
	NextNS  *int64   `json:"next_ns"`
	Sockets []report `json:"sockets"`
}

func main() {
	// One processor of TCP, and cheap changes between it and this goroutine.
	runtime.GOMAXPROCS(1)
	err := run()
	var cannot unsupported
	switch {
	case errors.As(err, &cannot):
		err = answer("unsupported", string(cannot))
	case err != nil:
		err = answer("failed", err.Error())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bdp-stack-gvisor:", err)
		os.Exit(1)
	}
}

func run() error {
	room := make([]byte, messageBytes)
	var first struct {
		Start *start `json:"start"`
	}
	message, err := receive(control, room)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(message, &first); err != nil {
		return err
	}
	if first.Start == nil || first.Start.Contract != "bdp.stack/1" {
		return errors.New("the first message is no start of the contract bdp.stack/1")
	}
	host, err := newHost(first.Start)
	if err != nil {
		return err
	}
	if err := answer("ready", map[string]string{"version": version()}); err != nil {
		return err
	}
	for {
		message, err := receive(control, room)
		if err != nil || len(message) == 0 || string(message) == `"end"` {
			return err
		}
		var order struct {
			Step step `json:"step"`
		}
		if err := json.Unmarshal(message, &order); err != nil {
			return err
		}
		answered, err := host.step(&order.Step, room)
		if err != nil {
			return err
		}
		if err := answer("done", answered); err != nil {
			return err
		}
	}
}

// version is that of the module that was built in.
func version() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "gvisor.dev/gvisor" {
				return fmt.Sprintf("gvisor %.15s", module.Version)
			}
		}
	}
	return "gvisor"
}

// receive waits for a message; an empty one is the end.
func receive(from int, room []byte) ([]byte, error) {
	for {
		length, err := syscall.Read(from, room)
		if err != syscall.EINTR {
			return room[:max(0, length)], err
		}
	}
}

func send(to int, message []byte) error {
	for {
		_, err := syscall.Write(to, message)
		if err != syscall.EINTR {
			return err
		}
	}
}

func answer(name string, content any) error {
	message, err := json.Marshal(map[string]any{name: content})
	if err != nil {
		return err
	}
	return send(control, message)
}
