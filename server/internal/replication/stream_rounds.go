package replication

import "sync/atomic"

// wakeSize is how many bytes wait for the end of a round at most.
const wakeSize = 32 << 10

// Rounds decide when the feeders of a stream are woken. A round of an event loop commits several times, and its replies leave at its
// end: its replicas are served then, or when much is there for them, and not after each commit. Whatever is added while no loop is in
// a round wakes them at once.
type Rounds struct {
	stream  *Stream
	running atomic.Int32 // loops that are in a round
	due     atomic.Bool  // the feeders are to be woken; set with the stream locked
	woken   int64        // the offset at which they were woken last; guarded by the stream
}

// Begin begins a round.
func (r *Rounds) Begin() { r.running.Add(1) }

// End ends one.
func (r *Rounds) End() {
	if r.running.Add(-1); r.due.Load() { // in this order: see added
		r.stream.mu.Lock()
		defer r.stream.mu.Unlock()
		r.wake()
	}
}

// added is called, with the stream locked, when that has got more. Either it finds that the last round is over, or the end of that
// finds what is due.
func (r *Rounds) added() {
	r.due.Store(true)
	if r.running.Load() == 0 || r.stream.offset-r.woken >= wakeSize {
		r.wake()
	}
}

func (r *Rounds) wake() {
	r.due.Store(false)
	r.woken = r.stream.offset
	for _, f := range r.stream.feeders {
		f.wake()
	}
}
