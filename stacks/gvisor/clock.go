package main

import (
	"container/heap"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// clock stands still but when a step moves it, and for a nanosecond at each reading: gVisor's RACK takes segments of one moment for a sign of
// loss, which no two segments of a real clock in nanoseconds are of. Nothing of it is locked: the processors of TCP and the main goroutine never run at once.
type clock struct {
	nowNS  int64
	readNS int64 // What was read last.
	serial uint64
	timers timers
}

// timer is one of the stack's. It is in the clock's heap while it runs: then its place there is not negative.
type timer struct {
	clock  *clock
	call   func()
	dueNS  int64
	serial uint64 // Those that are due at one moment are called in the order in which they were set.
	place  int
}

func (c *clock) Now() time.Time {
	return time.Unix(0, c.nowNS)
}

func (c *clock) NowMonotonic() tcpip.MonotonicTime {
	c.readNS = max(c.readNS+1, c.nowNS)
	return tcpip.MonotonicTime{}.Add(time.Duration(c.readNS))
}

func (c *clock) AfterFunc(after time.Duration, call func()) tcpip.Timer {
	t := &timer{clock: c, call: call, place: -1}
	t.Reset(after)
	return t
}

// due takes the next timer that is due; nil: none is.
func (c *clock) due() *timer {
	if len(c.timers) == 0 || c.timers[0].dueNS > c.nowNS {
		return nil
	}
	return heap.Pop(&c.timers).(*timer)
}

// next is when the next timer is due; false: none runs.
func (c *clock) next() (int64, bool) {
	if len(c.timers) == 0 {
		return 0, false
	}
	return c.timers[0].dueNS, true
}

func (t *timer) Stop() bool {
	if t.place < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.place)
	return true
}

func (t *timer) Reset(after time.Duration) {
	t.Stop()
	t.clock.serial++
	t.dueNS, t.serial = t.clock.nowNS+max(0, int64(after)), t.clock.serial
	heap.Push(&t.clock.timers, t)
}

type timers []*timer

func (t timers) Len() int { return len(t) }

func (t timers) Less(a, b int) bool {
	if t[a].dueNS != t[b].dueNS {
		return t[a].dueNS < t[b].dueNS
	}
	return t[a].serial < t[b].serial
}

func (t timers) Swap(a, b int) {
	t[a], t[b] = t[b], t[a]
	t[a].place, t[b].place = a, b
}

func (t *timers) Push(one any) {
	one.(*timer).place = len(*t)
	*t = append(*t, one.(*timer))
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	one := (*t)[last]
	one.place = -1
	*t = (*t)[:last]
	return one
}
