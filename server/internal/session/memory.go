package session

import (
	"github.com/stavedb/stave/server/internal/arena"
	"github.com/stavedb/stave/server/internal/stats"
)

// Held returns the memory of what the session holds in bytes: buffers, messages, what MULTI has queued, what a command
// that waits has kept, subscriptions, watched keys and names. The sum over all sessions is what Options.ClientMemory
// bounds. Whatever text of a client a field of a session keeps after its command counts here or has a bound:
// TestWhatOutlivesACommand has the list.
func (s *Session) Held() int {
	n := s.parser.Held() + s.out.Held() + s.mail.subscriber.Held() + s.client.Tracking.Mode().Size() + s.client.Texts()
	if s.multi.queue != nil {
		n += s.multi.queue.held
	}
	if s.multi.watch != nil {
		n += s.multi.watchedBytes
	}
	if s.wait.current != nil {
		n += s.wait.current.held
	}
	return n
}

// What the session keeps takes in memory besides the bytes of names and arguments, about: slices, maps, and what
// growing them leaves unused.
const (
	heldByRequest  = 48 // a queued command
	heldByArgument = 24 // an argument of it
	heldByKey      = 56 // a key that it names
	heldByWatch    = 330
	heldByWait     = 220 // a key that a command waits for
)

// release frees what commands that have ended have left of large arguments, unless the session goes back to one of them.
func (s *Session) release() {
	if len(s.part.batch.requests) == 0 {
		s.parser.Release()
	}
	clear(s.unit.keys[:cap(s.unit.keys)])
	s.unit.keys = arena.Kept(s.unit.keys)
}

// noteFigures notes what CLIENT LIST shows, for a session that is not in the middle of a command, or lists itself. The
// driver calls it after it has sent, so that others see what is left; a figure that has not changed is not written
// (stats.Set), because most rounds change none.
func (s *Session) noteFigures() {
	f := &s.client.Figures
	query, free := s.parser.Buffered(), s.parser.Free()
	stats.Set(&f.Query, query)
	stats.Set(&f.QueryFree, free)
	stats.Set(&f.Arguments, s.parser.Held()-query-free)
	queued := 0
	if s.multi.queue != nil {
		queued = s.multi.queue.held
	}
	stats.Set(&f.Queued, queued)
	pending, parts, partBytes := s.out.Waiting()
	stats.Set(&f.Pending, pending)
	stats.Set(&f.Parts, parts)
	stats.Set(&f.PartBytes, partBytes)
	stats.Set(&f.Reply, s.out.Held()-partBytes)
	f.Input.Note(query+free, s.counts.since)
	f.Output.Note(s.out.Held(), s.counts.since)
}
