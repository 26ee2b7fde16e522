package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/shared"
)

// A wait begins when a handler finds nothing to take: Host.Wait queues a db.Waiter on the keys, and
// the session executes nothing more. It ends in one of three ways, of which the first to come wins:
//
//	a writer fills a key       it does the wait's work in its own commit: Waiter.Done
//	the time is over           poll sees it, when the driver's deadline wakes the session
//	CLIENT UNBLOCK or KILL     another session calls client.EndWait
//
// A waiter that is given up takes nothing afterwards, and one that has been served is answered even
// if its time was over in between: no element is lost, unless with its connection.
//
// A wait without a db.Waiter ends in the last two ways only: that of a command which CLIENT PAUSE postpones (pause.go), and
// WAIT's for replicas, which ends as if its time were over when they have acknowledged enough.

// waiting is the wait of a session.
type waiting struct {
	session *Session
	current *blocked // the command that waits; nil without one
	never   bool     // see NeverWait
}

// blocked is a command that waits, such as BLPOP, while its session executes nothing else.
type blocked struct {
	*clients.Wait
	command *command.Command
	args    [][]byte            // its own, for the slow log
	took    time.Duration       // until it waited
	reply   func(*command.Call) // replies with what the waiter was given
	late    func(*command.Call) // replies when the time is over; nil: with a null array
	forRoom bool                // postponed until there is memory for its reply: see room.go
	held    int                 // memory of its arguments and of its places in the queues of keys
}

// start lets the session wait for a command: it is Host.Wait. The deadline counts from the
// start of the commands that arrived together, not from now. The waiter is queued in the
// transaction of the first attempt, with the keys locked. What the session's user may do may change in the meantime,
// so it is asked again by whoever serves the wait.
func (w *waiting) start(c *command.Call, take db.Wait, timeout time.Duration, reply func(*command.Call)) error {
	s := w.session
	b := &blocked{Wait: clients.NewWait(w.deadline(timeout)), command: c.Command, args: cloneArgs(c.Args), reply: reply}
	do, user, cmd, args := take.Do, s.who.user, c.Command, b.args
	take.Do = func(tx *db.Tx, key string) error {
		if d := user.Rules().Check(cmd, args); d.Verdict != acl.Allowed {
			return &shared.DeniedError{Denial: d} // and what the key holds is there for the next
		}
		return do(tx, key)
	}
	b.held = sizeOf(args) + len(args)*heldByArgument
	for _, keys := range [][]string{take.Keys, take.Others} {
		b.held += len(keys)*heldByWait + sizeOfTexts(keys)
	}
	b.Waiter, b.OfMaster = c.Tx.Enqueue(take, s.client.Wake), c.Command.IsWrite()
	w.begin(b)
	w.endIfReplica()
	return shared.ErrBlocked
}

// NeverWait makes commands that would wait, such as BLPOP, reply at once as if their time were over. It is for a session
// that executes a list of commands, which nobody fills a key for meanwhile.
func (s *Session) NeverWait() { s.wait.never = true }

// deadline is when a wait that begins now is over; zero for never.
func (w *waiting) deadline(timeout time.Duration) time.Time {
	s := w.session
	switch {
	case w.never:
		return s.counts.since
	case timeout > 0:
		return s.counts.since.Add(timeout)
	}
	return time.Time{}
}

// cloneArgs copies arguments out of the parser's buffer.
func cloneArgs(args [][]byte) [][]byte {
	own := make([][]byte, len(args))
	for i, arg := range args {
		own[i] = bytes.Clone(arg)
	}
	return own
}

// long lets the session wait for what its replicas do, until the time is over; a timeout of 0 is no end. late replies then.
func (w *waiting) long(c *command.Call, timeout time.Duration, late func(*command.Call)) error {
	b := &blocked{Wait: clients.NewWait(w.deadline(timeout)), command: c.Command, args: cloneArgs(c.Args), late: late}
	b.OfMaster = true
	w.begin(b)
	w.endIfReplica()
	return shared.ErrBlocked
}

// endIfReplica ends a wait that only a master has: who made the server a replica may have looked for those who wait before
// this one did.
func (w *waiting) endIfReplica() {
	if s := w.session; w.current.OfMaster && s.server.Following.IsReplica() {
		s.client.EndWait(clients.Demoted)
	}
}

// begin begins a wait. A postponed command is not counted among those that wait, as in Redis.
func (w *waiting) begin(b *blocked) {
	s := w.session
	w.current = b
	s.client.Wait.Store(b.Wait)
	if !b.Postponed {
		s.server.Counters.Blocked.Add(1)
	}
}

// Blocked reports whether the session waits in a command: it executes nothing until Resume finds
// that over. Bytes fed until then are kept.
func (s *Session) Blocked() bool { return s.wait.current != nil }

// Resume ends the wait of a blocked session if there is something, its time is over, or another
// client has ended it, and executes what waited for it. It may be called at any time, also if
// nothing has happened: a wake-up is a hint and not a message.
func (s *Session) Resume() {
	s.unit.enterTerm()
	if s.wait.end() {
		s.executeBuffered()
	}
}

// end ends the wait of a blocked session if it is over, and replies. It reports whether it did.
func (w *waiting) end() bool {
	s := w.session
	b := w.current
	if b == nil {
		return false
	}
	end := b.Poll()
	if end == clients.NotEnded {
		return false
	}
	w.leave()
	s.counts.since = time.Now()
	if b.Postponed { // the parser returns the command again
		return !b.forRoom || s.room.endWait(b.command)
	}
	w.finish(b, end)
	s.counts.flush()
	return true
}

// leave takes the session out of its wait.
func (w *waiting) leave() {
	s := w.session
	if !w.current.Postponed {
		s.server.Counters.Blocked.Add(-1)
	}
	w.current = nil
	s.client.Wait.Store(nil)
}

// abandon ends a wait that has just begun, because what was to be committed with it was not, and reports whether it did:
// a waiter may have been served by then.
func (w *waiting) abandon() bool {
	if !w.current.GiveUp(clients.TimedOut) {
		return false
	}
	w.leave()
	return true
}

// finish replies to a command that has waited. A time-out is a null array, also for commands
// whose reply is a string otherwise, as in Redis. What a waiter was given is part of the writer's
// commit: the reply is held until that is durable. That there was nothing owes nothing more: it was seen when the wait began.
func (w *waiting) finish(b *blocked, end clients.End) {
	s := w.session
	from := s.out.Len()
	s.call = command.Call{Host: &s.host, Command: b.command, Out: &s.out}
	var err error
	switch {
	case end == clients.TimedOut && b.late != nil:
		b.late(&s.call)
	case end == clients.TimedOut:
		s.out.NullArray()
	case end == clients.Unblocked:
		err = command.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
	case end == clients.Demoted:
		if err = s.server.RedirectOf(&s.client); err == nil {
			err = command.Error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
		}
	default:
		var ticket db.Ticket
		ticket, err = b.Waiter.Result()
		var denied *shared.DeniedError
		if errors.As(err, &denied) {
			s.server.NoteDenied(&s.client, denied.Denial, s.multi.queue.context(), s.who.user.Name())
		}
		if err == nil {
			s.unit.unsynced.Hold(ticket, from)
			err = s.catchPanic(func() error {
				b.reply(&s.call)
				return nil
			})
		}
	}
	s.server.NoteSlow(&s.client, b.took+time.Since(s.counts.since), b.command, b.args, 0)
	s.finish(b.command, from, err)
	s.server.NoteLarge(&s.client, b.command, b.args, s.out.Len()-from)
}

// Wait waits until a blocked session can continue, or ctx ends. It is for drivers that have nothing
// else to do. An embedded shell uses it: nothing arrives while it waits.
func (s *Session) Wait(ctx context.Context) {
	for s.wait.current != nil {
		s.wait.once(ctx, 0)
	}
}

// once is Wait for one command that waits, for most at most if that is not 0. What is executed after it may have
// replied, and may wait again.
func (w *waiting) once(ctx context.Context, most time.Duration) {
	s := w.session
	b := w.current
	var timer <-chan time.Time
	switch {
	case !b.Deadline.IsZero() && (most == 0 || time.Until(b.Deadline) < most):
		timer = time.After(time.Until(b.Deadline))
	case most > 0:
		timer = time.After(most)
	}
	select {
	case <-b.Done():
	case <-timer:
	case <-b.Ended:
	case <-ctx.Done():
		s.Close()
		return
	}
	if s.client.Killed.Load() {
		s.Close()
		return
	}
	s.Resume()
}

// Close ends the session: it gives up its wait and its watches. A session that Serve drives is
// closed by it.
func (s *Session) Close() {
	s.closed = true
	if b := s.wait.current; b != nil {
		b.GiveUp(clients.TimedOut) // what it may have been given is lost with the connection, like any unsent reply
		s.wait.leave()
	}
	s.multi.unwatch()
	s.room.leave()
	s.tracked.Stop()
	s.server.Hub.UnsubscribeAll(&s.mail.subscriber)
	s.mail.subscriber.Close()
}
