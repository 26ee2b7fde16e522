package session

import (
	"context"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/replication"
)

// Link is a session as its driver works with it: what moves its bytes, a goroutine or an event loop. Only one driver has
// it at a time; a session goes to another one between two commands, by Attach.
type Link struct{ *Session }

// Connection is what a driver knows of the connection of a new session.
type Connection struct {
	Remote, Local   string
	IsTLS, IsRemote bool            // it is encrypted; it comes from another machine
	HasSlot         bool            // it takes one of the places for those that have not authenticated
	Context         context.Context // ends with the transport: for commands that take long
}

// Connect makes the session that of a connection, of whose client nothing is known yet.
func (s *Session) Connect(c Connection) Link {
	s.host.Context = c.Context
	s.out.SetBudget(&s.server.Replies.Budget)
	s.client.Remote, s.client.Local = c.Remote, c.Local
	s.who.hasSlot, s.isTLS, s.isRemote = c.HasSlot, c.IsTLS, c.IsRemote
	s.who.startUnknown(c.IsTLS)
	return Link{s}
}

// Client is what others see of it.
func (l Link) Client() *clients.Client { return &l.client }

// Attach gives the session a driver, with the descriptor of its connection.
func (l Link) Attach(fd int, d *clients.Driver) {
	l.client.FD, l.now.Driven = fd, true
	l.client.Attach(d)
}

// Release gives back what the session takes of what is shared, when its connection has ended.
func (l Link) Release() {
	l.who.releaseSlot()
	l.server.KeepPeaks(&l.client.Figures)
	l.out.Close()
	l.server.Counters.ClientBytes.Add(-l.client.BufferBytes.Swap(0))
	l.server.Clients.Remove(&l.client)
}

// EndHandshake gives back the place that a handshake took, unless the client has still to authenticate.
func (l Link) EndHandshake() {
	if l.who.authenticated {
		l.who.releaseSlot()
	}
}

// AuthenticateBy is when the connection is closed unless it has authenticated; zero for never.
func (l Link) AuthenticateBy() time.Time { return l.who.authenticateBy() }

// Follows is what the client has asked for that is a replica from here on; nil for others. When the replies have left its
// driver feeds it.
func (l Link) Follows() *replication.Ask { return l.follows }

// LeaveLoop makes the session one of its own, for another driver.
func (l Link) LeaveLoop() { l.inLoop, l.part.batch = false, NewBatch() }

// Listens reports whether the client has subscribed to something.
func (l Link) Listens() bool { return l.mail.subscriber.Listens() }

// Take takes bytes that arrived; BeginRound executes them.
func (l Link) Take(in []byte) { l.parser.Feed(in) }

// IsFull reports whether the client has sent so much ahead that no more is read of it while a command waits.
func (l Link) IsFull() bool { return l.parser.Ahead() >= l.server.PauseAt }

// Waits is the wait of the command that the session waits in; nil if it does not.
func (l Link) Waits() *clients.Wait {
	if l.wait.current == nil {
		return nil
	}
	return l.wait.current.Wait
}

// WaitsForRoom reports whether the session waits for memory for a reply.
func (l Link) WaitsForRoom() bool { return l.room.place != nil }

// WaitOnce waits for the end of one wait, for most at most.
func (l Link) WaitOnce(ctx context.Context, most time.Duration) { l.wait.once(ctx, most) }

// HasGone reports whether the client has left. What it has sent is executed, without replies.
func (l Link) HasGone() bool { return l.presence.gone }

// Outlives reports whether the session goes on after its replies could not be sent.
func (l Link) Outlives(err error) bool { return l.presence.outlives(err, l.closed) }

// Unsent is how many bytes of replies wait to be sent.
func (l Link) Unsent() int { return l.out.Len() }

// ClosesQuickly reports whether Close takes little time.
func (l Link) ClosesQuickly() bool {
	return dispatch.FreesQuickly(&l.mail.subscriber, int(l.client.Watched.Load()))
}

// Sent drops output that has been sent; nothing is executed.
func (l Link) Sent(n int) { l.discard(n) }

// NoteSent notes what is left of the replies, for others to see, and ends the connection of a client that does not take
// them.
func (l Link) NoteSent() {
	l.noteFigures()
	l.server.LimitOutput(&l.client, l.out.Len())
}

// Account notes that the session and its driver hold so many bytes, and reports whether that is too much for all clients
// together.
func (l Link) Account(held int) (tooMuch bool) {
	l.client.Unread.Note(l.out.Taken(), 0)
	l.NoteSent()
	return l.server.AccountMemory(&l.client, held)
}

// Undurable is the newest commit that the replies must not leave before, 0 for none, and the round of the group that they need.
func (l Link) Undurable() (t db.Ticket, round int64) {
	return l.unit.unsynced.Ticket, l.unit.unsynced.Round
}

// IsPending reports whether the replies may not leave yet, and may later.
func (l Link) IsPending() bool { return l.unit.unsynced.IsPending(l.server) }

// Outcome says whether they may leave when they are not pending, or the wait for their commit, or a later one, has ended with err.
func (l Link) Outcome(err error) error { return l.unit.unsynced.Outcome(l.server, err) }

// EndDurable lets the replies leave, or withdraws them if err says that the commits could not be made durable.
func (l Link) EndDurable(err error) { l.unit.endDurable(err) }

// Owes notes whether the client owes the rest of a command, and returns since when; zero if it does
// not. A client that finishes its commands owes each for its own time.
func (l Link) Owes(now time.Time) (since time.Time) {
	switch {
	case !l.Partial():
		l.owedSince = time.Time{}
	case l.owedSince.IsZero() || l.owedRequest != l.presence.request:
		l.owedSince, l.owedRequest = now, l.presence.request
	}
	return l.owedSince
}

// uploadRate is how many bytes a second a large command is given beyond PartialTimeout.
const uploadRate = 64 << 10

// PartialDeadline is when the rest of the command must have arrived that the client owes since then.
func (l Link) PartialDeadline(since time.Time) time.Time {
	return since.Add(l.server.Options.PartialTimeout + time.Duration(l.parser.Buffered())*time.Second/uploadRate)
}
