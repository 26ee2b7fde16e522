package session

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/socket"
)

// A command that takes long ends soon after nobody waits for it any more: its client has gone or was killed, or the
// grace period of a shutdown is over. Nothing interrupts it from outside. The walks within it ask now and then
// (serverside.DB.SetInterrupt), the session then looks at its connection, and the command ends with an error, as if it had
// never begun.
//
// Whether a client has gone cannot be told from the end of what it sends: it may have closed that side only, and wait
// for the reply. Such a command has halfClosedGrace more; one that writes goes on to its end, for a client may well
// send a write and leave. A reset, or a Unix socket whose other end is closed, is no such doubt, and a client that has
// closed its connection answers a reply with a reset: so replies do not wait for slow commands that follow them
// (Session.Paused).
//
// What a client had sent before it left is executed, as in Redis, but for what only reads. Of the writes a prefix is
// executed: with one that takes long and is given up the session ends.

const (
	// probeEvery is how often a command that takes long looks at its connection. One that takes less does not.
	probeEvery = 100 * time.Millisecond
	// halfClosedGrace is how long a command goes on that writes nothing and whose client has ended what it sends.
	halfClosedGrace = 2 * time.Second
)

// errAbandoned ends a command that nobody waits for. It reaches only a client that has closed the side that it sends
// on.
var errAbandoned = errors.New("the command was given up, for its client has closed the connection or the server shuts down")

// presence is whether anybody waits for the command that a session executes.
type presence struct {
	client *clients.Client
	giveUp context.Context // of DoContext; nil: none

	request             uint64    // the number of the command: how many have come
	reads               bool      // it only reads
	writesFor           uint64    // request when the last transaction began that writes
	probedFor           uint64    // request when it asked last
	probedAt, halfSince time.Time // of that command: see ask
	abandoned           error     // nobody waits for the command; it stays until the next one
	gone                bool      // the client has left; what it has sent is executed, without replies
}

// interrupted is what a command of the session asks now and then. It is called from whatever goroutine executes it.
func (s *Session) interrupted() error { return s.presence.ask(&s.closed) }

// ask looks whether anybody waits for the command, at times, and returns why it is to end. closed is the session's.
func (p *presence) ask(closed *bool) error {
	now := time.Now()
	if p.probedFor != p.request || p.probedAt.IsZero() {
		p.probedFor, p.probedAt, p.halfSince = p.request, now, time.Time{}
		if !*closed {
			p.abandoned = nil
		}
	}
	if p.abandoned != nil || now.Sub(p.probedAt) < probeEvery {
		return p.abandoned
	}
	p.probedAt = now
	switch {
	case p.giveUp != nil && p.giveUp.Err() != nil:
		p.abandoned = p.giveUp.Err() // an embedded session goes on with the next command
	case p.hasGone():
		p.abandoned, p.gone = errAbandoned, true
		*closed = !p.reads || p.client.Killed.Load()
	case !p.halfSince.IsZero() && now.Sub(p.halfSince) >= halfClosedGrace && p.writesFor != p.request:
		p.abandoned = errAbandoned // and so does one whose client has sent more before it left
	}
	return p.abandoned
}

// outlives reports whether the session goes on, without replies, after they could not be sent: if the client has left.
// One that is there and does not read them is disconnected.
func (p *presence) outlives(err error, closed bool) bool {
	p.gone = !closed && !p.client.Killed.Load() && !errors.Is(err, os.ErrDeadlineExceeded)
	return p.gone
}

// gaveUp is the error of the command that runs, if it has asked and was told that nobody waits for it.
func (p *presence) gaveUp() error {
	if p.probedFor != p.request {
		return nil // it was another command
	}
	return p.abandoned
}

// hasGone says whether nobody waits for the replies of the session, and notes since when it is in doubt.
func (p *presence) hasGone() bool {
	if p.client.Killed.Load() {
		return true
	}
	if !p.client.CanProbe() {
		return false
	}
	state := p.client.Probe()
	if state == socket.Half && p.halfSince.IsZero() {
		p.halfSince = p.probedAt
	}
	return state == socket.Broken
}
