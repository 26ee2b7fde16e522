package nap

import (
	"sync/atomic"
	"time"
)

// phase is by how much the moments of this process are later than whole multiples of the clock's time, in nanoseconds.
var phase atomic.Int64

// Shift moves the moments of Until for the whole process. A server calls it once, with a random duration, before it opens a
// store: otherwise all servers whose clocks agree would sync their disks at the same moment.
func Shift(d time.Duration) { phase.Store(int64(d)) }

// Until returns the time until the next of the moments at which the loops of this process look for work and which are d
// apart. They are the same for all loops with the same d: a process that looks at ten things each second wakes once a second
// for all of them, not ten times. The time is never longer than d, but for a fiftieth. Any goroutine may call it.
func Until(d time.Duration) time.Duration {
	since := time.Duration((time.Now().UnixNano() - phase.Load()) % int64(d))
	if since < 0 { // before 1970
		since += d
	}
	left := d - since
	if left < d/50 { // the timer of the moment before was early, as the clock has it
		left += d
	}
	return left
}
