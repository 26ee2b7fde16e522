package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
)

// pause is what CLIENT PAUSE has set. A command that it concerns is postponed when it comes: the session
// goes back to it in its parser and waits, as one in BLPOP does, until the pause is over or CLIENT
// UNPAUSE ends it. Commands that run already are not stopped, and neither are expiry and merges.
type pause struct {
	active atomic.Bool // cheap to ask, for every command does; the end may have passed

	mu    sync.Mutex // guards the rest
	until time.Time
	all   bool // every command, and not only those that may write
}

// begin begins a pause. One that is not over becomes longer and stricter, never the reverse, as in Redis.
func (p *pause) begin(until time.Time, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active.Load() && time.Now().Before(p.until) {
		all = all || p.all
		if until.Before(p.until) {
			until = p.until
		}
	}
	p.until, p.all = until, all
	p.active.Store(true)
}

// end ends the pause. Who waits for it is to be woken after that: see endPause.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active.Store(false)
}

// state says until when commands wait, and which; the zero time if there is no pause. Nothing happens at the end of a
// pause but this: the first who asks after it switches active off, and each session that waits has a deadline of its own.
func (p *pause) state() (until time.Time, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active.Load() {
		return time.Time{}, false
	}
	if !time.Now().Before(p.until) {
		p.active.Store(false)
		return time.Time{}, false
	}
	return p.until, p.all
}

// postpone makes the session wait before a command that the pause concerns, and reports whether it did. invalid is set
// for a request that is refused anyway. What arrived before it is executed first. An embedded session is never paused:
// it has nobody who would wake it.
func (s *Session) postpone(cmd *command.Command, args [][]byte, invalid error) bool {
	if invalid != nil || s.client.wake == nil {
		return false
	}
	until, all := s.server.pause.state()
	if until.IsZero() || !all && !s.mayReplicate(cmd, args) {
		return false
	}
	mark := s.parser.Mark()
	if !s.runBatch() || s.closed {
		return true // the parser has gone back to a request before this one
	}
	s.parser.Rewind(mark)
	s.block(&blocked{command: cmd, deadline: until, postponed: true, ended: make(chan struct{}, 1)})
	if until, _ := s.server.pause.state(); until.IsZero() {
		s.client.endWaitOf(timedOut) // endPause may have looked for those who wait before this one did
	}
	return true
}

// mayReplicate reports whether a command is one that a pause of writes concerns: what a replica would get
// of it. Messages are among them, and scripts whose flags do not exclude it.
func (s *Session) mayReplicate(cmd *command.Command, args [][]byte) bool {
	switch cmd.Name {
	case "exec":
		return s.queue != nil && s.queue.replicates
	case "publish", "spublish", "pfcount":
		return true
	case "eval", "evalsha", "fcall":
		return !s.declaresNoWrites(cmd, args)
	}
	return cmd.IsWrite()
}

// endPause ends the pause and wakes who waits for that. No wake-up is lost: the pause ends before the sessions are looked
// at, and a session looks at the pause once more when it can be seen to wait.
func (v *Server) endPause() {
	v.pause.end()
	for _, s := range v.sessions() {
		if b := s.client.blocked.Load(); b != nil && b.postponed {
			s.client.endWaitOf(timedOut)
		}
	}
}
