// Package nap is the sleep of a background loop that has nothing to do. Such a loop would otherwise look for work many times a
// second, for as long as the process lives, and keep the processor from sleeping. What makes work stirs it, which costs one
// atomic load unless the loop sleeps.
package nap

import (
	"sync/atomic"
	"time"
)

// Nap is one loop's sleep; the zero value is ready. Stir is safe for concurrent use, Sleep is for the loop alone.
type Nap struct {
	until atomic.Int64  // work before this moment ends the sleep; 0: the loop does not sleep
	wake  chan struct{} // made by the first Sleep
}

// Stir ends a sleep that lasts beyond a moment, on whatever clock Sleep is told its own in. Any is before every moment.
func (n *Nap) Stir(moment int64) {
	if until := n.until.Load(); until != 0 && moment < until {
		select {
		case n.wake <- struct{}{}:
		default: // it wakes already
		}
	}
}

// Any is the moment of work that does not wait.
const Any = -1 << 63

// Sleep waits for d, which ends at a moment, or until the loop is stirred, which it reports, or stop is closed. Work that was made
// before Sleep has begun does not stir; hasWork finds it.
func (n *Nap) Sleep(stop <-chan struct{}, d time.Duration, moment int64, hasWork func() bool) (stirred bool) {
	if n.wake == nil {
		n.wake = make(chan struct{}, 1)
	}
	select {
	case <-n.wake: // from the end of an earlier sleep
	default:
	}
	n.until.Store(moment)
	defer n.until.Store(0)
	if hasWork() {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-n.wake:
		return true
	case <-stop:
	case <-timer.C:
	}
	return false
}
