package server

import (
	"time"

	"github.com/stavedb/stave/server/internal/stats"
)

// figures are the bytes that a client's buffers take, and what they lead to.
type figures struct {
	stats.Client

	tooMuch *time.Timer // ends the connection unless it is stopped; for the session's driver only
}

// noteFigures notes what CLIENT LIST shows, for a session that is not in the middle of a command, or lists itself. The
// driver calls it after it has sent, so that others see what is left; a figure that has not changed is not written
// (stats.Set), because most rounds change none.
func (s *Session) noteFigures() {
	f := &s.client.figures
	query, free := s.parser.Buffered(), s.parser.Free()
	stats.Set(&f.Query, query)
	stats.Set(&f.QueryFree, free)
	stats.Set(&f.Arguments, s.parser.Held()-query-free)
	queued := 0
	if s.queue != nil {
		queued = s.queue.held
	}
	stats.Set(&f.Queued, queued)
	pending, parts, partBytes := s.out.Waiting()
	stats.Set(&f.Pending, pending)
	stats.Set(&f.Parts, parts)
	stats.Set(&f.PartBytes, partBytes)
	stats.Set(&f.Reply, s.out.Held()-partBytes)
	f.Input.Note(query+free, s.statsSince)
	f.Output.Note(s.out.Held(), s.statsSince)
}

// limitOutput ends the connection of a client that does not take its replies, as client-output-buffer-limit has it: at
// once if more than the hard limit waits for it, and after some seconds of more than the soft limit. Subscribers have
// limits of their own: see pubsub.Limits.
func (s *Session) limitOutput() {
	t := &s.server.tunables
	hard, soft := t.outputHard.Load(), t.outputSoft.Load()
	f := &s.client.figures
	if hard == 0 && soft == 0 && f.tooMuch == nil {
		return
	}
	n := int64(s.out.Len())
	switch {
	case s.client.kind() != "normal":
		f.forgive()
	case hard > 0 && n > hard:
		s.server.endForOutput(&s.client)
	case soft == 0 || n <= soft:
		f.forgive()
	case f.tooMuch == nil:
		f.tooMuch = time.AfterFunc(time.Duration(t.outputSeconds.Load())*time.Second, func() { s.server.endForOutput(&s.client) })
	}
}

// forgive stops the timer of the soft limit, when the output is below it or the client is of another class by now. A
// timer that has fired already ends the connection all the same: the limit was exceeded for its whole time.
func (f *figures) forgive() {
	if f.tooMuch != nil {
		f.tooMuch.Stop()
		f.tooMuch = nil
	}
}

// endForOutput ends the connection, unless it is being ended already, and counts that. It may be called from any
// goroutine: the driver's, or that of the timer. An embedded session has no kill: whoever drives it takes the replies.
func (v *Server) endForOutput(c *client) {
	if c.killOnce(&v.counters.Flooded) {
		v.options.Logger.Warn("a client does not take its replies; connection closed", "client", c.tracking.ID)
	}
}

// recentBuffers are the largest buffers that a client has had in the last seconds. Those of clients that have left
// meanwhile are kept in v.left.
func (v *Server) recentBuffers() (input, output int64) {
	now := time.Now()
	input, output = v.left.Recent(now)
	for _, s := range v.sessions() {
		in, out := s.client.figures.Recent(now)
		input, output = max(input, in), max(output, out)
	}
	return input, output
}

// leave keeps the peaks of a client that leaves.
func (f *figures) leave(v *Server) {
	f.forgive()
	now := time.Now()
	input, output := f.Recent(now)
	v.left.Input.Note(int(input), now)
	v.left.Output.Note(int(output), now)
}
