package server

import (
	"errors"
	"os"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/socket"
)

// A command that takes long ends soon after nobody waits for it any more: its client has gone or was killed, or the
// grace period of a shutdown is over. Nothing interrupts it from outside. The walks within it ask now and then
// (db.Tx.SetInterrupt), the session then looks at its connection, and the command ends with an error, as if it had
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

// interrupted is what a command of the session asks now and then. It is called from whatever goroutine executes it.
func (s *Session) interrupted() error {
	now := time.Now()
	if s.probedFor != s.requests || s.probedAt.IsZero() {
		s.probedFor, s.probedAt, s.halfSince = s.requests, now, time.Time{}
		if !s.closed {
			s.abandoned = nil
		}
	}
	if s.abandoned != nil || now.Sub(s.probedAt) < probeEvery {
		return s.abandoned
	}
	s.probedAt = now
	switch {
	case s.giveUp != nil && s.giveUp.Err() != nil:
		s.abandoned = s.giveUp.Err() // an embedded session goes on with the next command
	case s.hasGone():
		s.abandoned, s.gone = errAbandoned, true
		s.closed = !s.reads || s.client.killed.Load()
	case !s.halfSince.IsZero() && now.Sub(s.halfSince) >= halfClosedGrace && s.writesFor != s.requests:
		s.abandoned = errAbandoned // and so does one whose client has sent more before it left
	}
	return s.abandoned
}

// outlives reports whether the session goes on, without replies, after they could not be sent: if the client has left.
// One that is there and does not read them is disconnected.
func (s *Session) outlives(err error) bool {
	s.gone = !s.closed && !s.client.killed.Load() && !errors.Is(err, os.ErrDeadlineExceeded)
	return s.gone
}

// onlyReads says whether nobody misses a command whose client has gone.
func onlyReads(cmd *command.Command) bool {
	return cmd.Flags&command.ReadOnly != 0 || cmd.Group == command.GroupCluster
}

// gaveUp is the error of the command that runs, if it has asked and was told that nobody waits for it.
func (s *Session) gaveUp() error {
	if s.probedFor != s.requests {
		return nil // it was another command
	}
	return s.abandoned
}

// hasGone says whether nobody waits for the replies of the session, and notes since when it is in doubt.
func (s *Session) hasGone() bool {
	if s.client.killed.Load() {
		return true
	}
	if s.probe == nil {
		return false
	}
	state := s.probe()
	if state == socket.Half && s.halfSince.IsZero() {
		s.halfSince = s.probedAt
	}
	return state == socket.Broken
}
