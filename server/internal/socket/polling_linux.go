package socket

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// polling decides whether a goroutine asks the kernel again and again for a while before it sleeps. Who sends to one that
// sleeps has to wake it, which takes processor time of a client on the same machine, and time of all others. Polling is
// worth its own processor time if the goroutine is busy most of the time anyway and serves several connections. With one
// the client sleeps while the server works, and both are better off on one processor, in turns. Hypervisors do the same for
// processors of guests ("halt polling", https://docs.kernel.org/virt/kvm/halt-polling.html). The zero value never polls.
type polling struct {
	on     bool
	credit int       // grows with each poll that finds something; one in vain takes pollInVain of it
	until  time.Time // not on before that

	// What follows is counted anew in each period.
	began       time.Time
	number      uint32        // of the period
	idle        time.Duration // while nothing was ready
	seen        []uint32      // by descriptor, the last period in which it was ready
	connections int           // that were ready, each counted once
}

const (
	pollPeriod      = time.Millisecond // at least
	pollConnections = 4                // at least
	pollMostIdle    = 3                // idle for one part in so many, at most: polling takes half of what the rest does, at most

	// One poll in so many may be in vain. If more are, somebody else needs the processor, most likely a client, and there is
	// no polling for a while.
	pollInVain = 200
	mostCredit = 5 * pollInVain
	pollLater  = 20 * time.Millisecond

	pollFor   = 50 * time.Microsecond // before it sleeps
	pollEvery = 2 * time.Microsecond  // more often, and it would be in the way of who sends: both take the kernel's locks
)

// note notes what was ready, at what time, and for how long nothing was before. handover says that other goroutines have
// work of this one, and need the processor for that.
func (p *polling) note(ready []unix.EpollEvent, now time.Time, idle time.Duration, handover bool) {
	p.idle += idle
	for i := range ready {
		fd := int(ready[i].Fd)
		if fd >= len(p.seen) {
			p.seen = append(p.seen, make([]uint32, fd+1-len(p.seen))...)
		}
		if p.seen[fd] != p.number {
			p.seen[fd] = p.number
			p.connections++
		}
	}
	took := now.Sub(p.began)
	if took < pollPeriod {
		return
	}
	p.on = !handover && !now.Before(p.until) && p.connections >= pollConnections && p.idle*pollMostIdle < took && runtime.GOMAXPROCS(0) > 1
	p.began, p.idle, p.connections = now, 0, 0
	p.number++
}

// tried notes whether a poll has found something.
func (p *polling) tried(found bool, now time.Time) {
	if found {
		p.credit = min(p.credit+1, mostCredit)
		return
	}
	if p.credit -= pollInVain; p.credit < 0 {
		p.on, p.credit, p.until = false, 0, now.Add(pollLater)
	}
}

// pause returns when pollEvery has passed since a time, without giving up the processor, and tells the time then.
func pause(since time.Time) (now time.Time) {
	for now = time.Now(); now.Sub(since) < pollEvery; now = time.Now() {
	}
	return now
}
