package clients

import (
	"sync"
	"time"

	"github.com/stavedb/stave/db"
)

// Wait is the wait of a command, as others may end it.
type Wait struct {
	Waiter    *db.Waiter    // nil: nothing that a writer could give
	Deadline  time.Time     // zero: none
	Postponed bool          // the command has not begun: it is executed when the wait is over
	OfMaster  bool          // the command may write when it is served, or waits for replicas
	Ended     chan struct{} // for who waits in Session.Wait: another session has ended it

	mu  sync.Mutex // guards end, and that only one gives up the waiter
	end End
}

// NewWait returns a wait without a waiter. A deadline of zero is none.
func NewWait(deadline time.Time) *Wait {
	return &Wait{Deadline: deadline, Ended: make(chan struct{}, 1)}
}

// NewPostponement returns the wait of a command that has not begun.
func NewPostponement(deadline time.Time) *Wait {
	w := NewWait(deadline)
	w.Postponed = true
	return w
}

// End is how a wait has ended.
type End int

const (
	NotEnded End = iota
	served
	TimedOut // or CLIENT UNBLOCK has ended it as if it were
	Unblocked
	Demoted // the server has become a replica, on which nobody but the master writes
)

// Poll ends the wait if there is something, or its time is over, and says how it has ended. Cancel
// decides a race with a writer: if it comes too late, the writer is serving this client, and Done
// follows within the writer's transaction. So the wait for it is short, and no lock is held but mu,
// which no writer takes.
func (b *Wait) Poll() End {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != NotEnded {
		return b.end
	}
	select {
	case <-b.Done():
		b.end = served
	default:
		if b.Deadline.IsZero() || time.Now().Before(b.Deadline) {
			break
		}
		if b.cancel() {
			b.end = TimedOut
		} else {
			<-b.Done() // it is just being served
			b.end = served
		}
	}
	return b.end
}

// Done is closed when the waiter has been served. Without a waiter that never happens.
func (b *Wait) Done() <-chan struct{} {
	if b.Waiter == nil {
		return nil
	}
	return b.Waiter.Done()
}

// cancel gives the waiter up. It reports false if that comes too late.
func (b *Wait) cancel() bool { return b.Waiter == nil || b.Waiter.Cancel() }

// GiveUp ends the wait unless there is something, and says whether it did. Of several that try, one
// succeeds.
func (b *Wait) GiveUp(how End) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != NotEnded || !b.cancel() {
		return false
	}
	b.end = how
	return true
}

// EndWait ends the wait of the client's command, and says whether it waited. It is called from the goroutine of another
// session, and touches nothing of this one but what is atomic or has a lock.
func (c *Client) EndWait(how End) bool {
	b := c.Wait.Load()
	return b != nil && c.EndThis(b, how)
}

// EndThis is EndWait of a certain wait, which the client may be in no longer.
func (c *Client) EndThis(b *Wait, how End) bool {
	if !b.GiveUp(how) {
		return false
	}
	b.Ended <- struct{}{} // never full: only the one that gives it up comes here
	c.Wake()
	return true
}

// IsPostponed reports whether a command of the client waits that has not begun.
func (c *Client) IsPostponed() bool {
	b := c.Wait.Load()
	return b != nil && b.Postponed
}
