package socket

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// polling decides whether a goroutine polls before it sleeps (busy polling). A sender has to wake a goroutine that sleeps:
// that takes processor time of a client on the same machine, and delays the reply to any client. Polling takes processor
// time, too, so a goroutine polls only if it is busy most of the time anyway, serves several connections, and seldom
// polls in vain. A single client sleeps while the server works, and both are fastest in turns on one processor.
// Hypervisors do the same for processors of guests ("halt polling", https://docs.kernel.org/virt/kvm/halt-polling.html).
// The zero value never polls.
type polling struct {
	on        bool
	credit    int       // grows with each poll that finds something; a poll in vain costs pollInVain
	notBefore time.Time // when it may be on again

	// The rest is counted anew in each period.
	began       time.Time
	number      uint32        // of the period
	idle        time.Duration // while nothing was ready
	seen        []uint32      // by descriptor, the last period in which it was ready
	connections int           // that were ready, each counted once
}

const (
	pollPeriod      = time.Millisecond // at least
	pollConnections = 4                // at least
	pollMostIdle    = 3                // at most a third of the period is idle, so polling adds at most half to the other work

	// One poll in pollInVain may find nothing. If more do, somebody else needs the processor, most likely a client, and
	// nothing is polled for pollLater.
	pollInVain = 200
	mostCredit = 5 * pollInVain
	pollLater  = 20 * time.Millisecond

	pollFor   = 50 * time.Microsecond // before it sleeps
	pollEvery = 2 * time.Microsecond  // more often, and it would delay senders, which take the same locks of the kernel
)

// note records the result of a wait: the events, the time, and how long nothing was ready. handover is set if other
// goroutines work for this one, and need the processor.
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
	p.on = !handover && !now.Before(p.notBefore) && p.connections >= pollConnections && p.idle*pollMostIdle < took && runtime.GOMAXPROCS(0) > 1
	p.began, p.idle, p.connections = now, 0, 0
	p.number++
}

// tried records whether a poll has found something.
func (p *polling) tried(found bool, now time.Time) {
	if found {
		p.credit = min(p.credit+1, mostCredit)
		return
	}
	if p.credit -= pollInVain; p.credit < 0 {
		p.on, p.credit, p.notBefore = false, 0, now.Add(pollLater)
	}
}

// spinWait returns when pollEvery has passed since a time, and returns the time.
func spinWait(since time.Time) (now time.Time) {
	for now = time.Now(); now.Sub(since) < pollEvery; now = time.Now() {
	}
	return now
}
