package server

import (
	"sync"
	"time"

	"github.com/stavedb/stave/db"
)

// Wait is the wait of a command, as others may end it.
type Wait struct {
	waiter    *db.Waiter    // nil: nothing that a writer could give
	deadline  time.Time     // zero: none
	postponed bool          // the command has not begun: it is executed when the wait is over
	ended     chan struct{} // for who waits in Session.Wait: another session has ended it

	mu  sync.Mutex // guards end, and that only one gives up the waiter
	end waitEnd
}

// newWait returns a wait without a waiter. A deadline of zero is none.
func newWait(deadline time.Time) *Wait {
	return &Wait{deadline: deadline, ended: make(chan struct{}, 1)}
}

// newPostponement returns the wait of a command that has not begun.
func newPostponement(deadline time.Time) *Wait {
	w := newWait(deadline)
	w.postponed = true
	return w
}

// waitEnd is how a wait has ended.
type waitEnd int

const (
	notEnded waitEnd = iota
	served
	timedOut // or CLIENT UNBLOCK has ended it as if it were
	unblockedError
)

// poll ends the wait if there is something, or its time is over, and says how it has ended. Cancel
// decides a race with a writer: if it comes too late, the writer is serving this client, and Done
// follows within the writer's transaction. So the wait for it is short, and no lock is held but mu,
// which no writer takes.
func (b *Wait) poll() waitEnd {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != notEnded {
		return b.end
	}
	select {
	case <-b.done():
		b.end = served
	default:
		if b.deadline.IsZero() || time.Now().Before(b.deadline) {
			break
		}
		if b.cancel() {
			b.end = timedOut
		} else {
			<-b.done() // it is just being served
			b.end = served
		}
	}
	return b.end
}

// done is closed when the waiter has been served. Without a waiter that never happens.
func (b *Wait) done() <-chan struct{} {
	if b.waiter == nil {
		return nil
	}
	return b.waiter.Done()
}

// cancel gives the waiter up. It reports false if that comes too late.
func (b *Wait) cancel() bool { return b.waiter == nil || b.waiter.Cancel() }

// giveUp ends the wait unless there is something, and says whether it did. Of several that try, one
// succeeds.
func (b *Wait) giveUp(how waitEnd) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != notEnded || !b.cancel() {
		return false
	}
	b.end = how
	return true
}

// endWait ends the wait of the client's command, and says whether it waited. It is called from the goroutine of another
// session, and touches nothing of this one but what is atomic or has a lock.
func (c *client) endWait(how waitEnd) bool {
	b := c.wait.Load()
	if b == nil || !b.giveUp(how) {
		return false
	}
	b.ended <- struct{}{} // never full: only the one that gives it up comes here
	c.wake()
	return true
}

// isPostponed reports whether a command of the client waits that has not begun.
func (c *client) isPostponed() bool {
	b := c.wait.Load()
	return b != nil && b.postponed
}
