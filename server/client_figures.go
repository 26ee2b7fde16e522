package server

import (
	"sync/atomic"
	"time"
)

// figures are the bytes that a client's buffers take, as CLIENT LIST shows them to others. The session notes them
// before it sends replies and afterwards; most often nothing has changed then, and nothing is written.
type figures struct {
	query, queryFree  atomic.Int64 // what has arrived and was not executed, and the room after it
	arguments, queued atomic.Int64 // what the parser and MULTI have taken apart
	reply             atomic.Int64 // size of the buffer of replies
	pending           atomic.Int64 // bytes in it
	parts, partBytes  atomic.Int64 // buffers of long replies, and their size
	input, output     peak         // of the buffers

	tooMuch *time.Timer // ends the connection unless it is stopped; for the session's driver only
}

// peakPeriod is how long CLIENT LIST and INFO remember the largest size of a buffer.
const peakPeriod = 5 * time.Second

// peak is the largest size of something in the last seconds.
type peak struct{ bytes, at atomic.Int64 }

// note takes the size that is the present one.
func (p *peak) note(n int, now time.Time) {
	if bytes := p.bytes.Load(); int64(n) > bytes || int64(n) < bytes && now.UnixNano()-p.at.Load() > int64(peakPeriod) {
		p.bytes.Store(int64(n))
		p.at.Store(now.UnixNano())
	}
}

// recent is the peak, or what is known to be there now if it is long ago.
func (p *peak) recent(present int64, now time.Time) int64 {
	if bytes := p.bytes.Load(); now.UnixNano()-p.at.Load() <= int64(peakPeriod) {
		return max(bytes, present)
	}
	return present
}

// set stores a figure that has changed.
func set(to *atomic.Int64, n int) {
	if to.Load() != int64(n) {
		to.Store(int64(n))
	}
}

// noteFigures notes what CLIENT LIST shows, for a session that is not in the middle of a command, or lists itself.
func (s *Session) noteFigures() {
	f := &s.client.figures
	query, free := s.parser.Buffered(), s.parser.Free()
	set(&f.query, query)
	set(&f.queryFree, free)
	set(&f.arguments, s.parser.Held()-query-free)
	queued := 0
	if s.queue != nil {
		queued = s.queue.held
	}
	set(&f.queued, queued)
	pending, parts, partBytes := s.out.Waiting()
	set(&f.pending, pending)
	set(&f.parts, parts)
	set(&f.partBytes, partBytes)
	set(&f.reply, s.out.Held()-partBytes)
	f.input.note(query+free, s.statsSince)
	f.output.note(s.out.Held(), s.statsSince)
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
		s.endForOutput()
	case soft == 0 || n <= soft:
		f.forgive()
	case f.tooMuch == nil:
		f.tooMuch = time.AfterFunc(time.Duration(t.outputSeconds.Load())*time.Second, s.endForOutput)
	}
}

// forgive stops the timer of the soft limit.
func (f *figures) forgive() {
	if f.tooMuch != nil {
		f.tooMuch.Stop()
		f.tooMuch = nil
	}
}

// endForOutput may be called from any goroutine.
func (s *Session) endForOutput() {
	if s.client.kill == nil || s.client.killed.Load() {
		return
	}
	s.server.counters.Flooded.Add(1)
	s.server.options.Logger.Warn("a client does not take its replies; connection closed", "client", s.id)
	s.client.kill()
}

// recentBuffers are the largest buffers that a client has had in the last seconds. Those of clients that have left
// meanwhile are kept in v.left.
func (v *Server) recentBuffers() (input, output int64) {
	now := time.Now()
	input, output = v.left.input.recent(0, now), v.left.output.recent(0, now)
	for _, s := range v.sessions() {
		f := &s.client.figures
		input = max(input, f.input.recent(f.query.Load()+f.queryFree.Load(), now))
		output = max(output, f.output.recent(f.reply.Load()+f.partBytes.Load(), now))
	}
	return input, output
}

// leave keeps the peaks of a client that leaves.
func (f *figures) leave(v *Server) {
	f.forgive()
	now := time.Now()
	v.left.input.note(int(f.input.recent(f.query.Load()+f.queryFree.Load(), now)), now)
	v.left.output.note(int(f.output.recent(f.reply.Load()+f.partBytes.Load(), now)), now)
}
