package script

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// A run takes room for what it holds before it has it: for its values, and for the replies of its commands, which these
// are made of. Go does not report what a run holds, so that is an estimate. The run claims what its library functions
// allocate, and something for each instruction. What it has claimed is cut to what the heap can have of it: the heap less
// what others have taken room for, and less the floor, which is what nobody takes room for, such as an index.

const (
	roomFrom = 1 << 20  // bytes for which a run takes no room
	roomStep = 1 << 20  // bytes that it claims between two looks at the heap
	perStep  = 64       // bytes that an instruction is taken to allocate
	mostLent = 32 << 20 // bytes that all runs together may have without room, of those claimed for instructions
)

// account is what a run has claimed and taken.
type account struct {
	replies   resp.Budget // what m.out takes of it
	claimed   int         // bytes that values take, about
	guessed   int         // of them: those that are claimed for instructions only
	lent      int         // bytes of mostLent that it has
	due       int         // how much is claimed and taken when the heap is looked at again
	collected time.Time   // the heap is not collected before that, for this run
}

// floor is how much of the heap nobody takes room for, as the last collection of garbage has left it. The zero floor
// knows of no collection.
type floor struct {
	mu    sync.Mutex // guards the rest
	cycle uint64     // collections so far
	bytes int64
	most  int64 // bytes that had room at one time since the last collection
}

// above returns how many bytes there are on the heap above the floor. most is the most bytes that had room at one time
// since the last call. The collection may have found them all alive: they are no part of the floor.
func (f *floor) above(most int64) int64 {
	s := [3]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s[:])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = max(f.most, most)
	objects := int64(s[0].Value.Uint64())
	if cycle := s[2].Value.Uint64(); cycle != f.cycle {
		f.bytes = max(0, min(objects, int64(s[1].Value.Uint64()))-f.most)
		f.cycle, f.most = cycle, most
	}
	return max(0, objects-f.bytes)
}

// openAccount makes the replies of commands take room by the account, in a new machine.
func (m *machine) openAccount() {
	m.room.replies.Allowance, m.room.replies.Whole = resp.PartSize, true
	m.room.replies.Lend = m.takeRoom
	m.out.SetBudget(&m.room.replies)
}

// begin empties the account for a run.
func (r *account) begin() {
	r.claimed, r.guessed, r.due, r.collected = 0, 0, roomFrom, time.Time{}
}

// claim precedes the allocation of n bytes. Without room it stops the run and reports false.
func (m *machine) claim(n int) bool {
	r := &m.room
	if r.claimed+int(r.replies.Taken())+n >= r.due && !m.takeRoom(n) {
		return false
	}
	r.claimed += n
	return true
}

// claimSteps claims what n instructions are taken to have allocated.
func (m *machine) claimSteps(n int) bool {
	r := &m.room
	r.claimed += perStep * n
	r.guessed += perStep * n
	return m.claim(0)
}

// takeRoom takes room for n bytes besides what the run holds, and gives back what it has for garbage. Without room it
// stops the run and reports false.
func (m *machine) takeRoom(n int) bool {
	if m.run == nil || m.run.Host.Hold == nil {
		return true
	}
	h, r := &m.run.Host, &m.room
	wanted := h.Wanted != nil && h.Wanted() // then others get what may be the room of garbage
	if m.hold(n, wanted) {
		switch {
		case !wanted:
			m.lend(0)
		case r.lent < r.guessed && m.run.Steps == 0 && m.lasted(time.Now()) >= longAfter:
			m.collect() // the next look knows of less
		}
		return true
	}
	if m.run.Steps > 0 {
		m.stop(ErrSteps) // to be repeated where it may take its time
		return false
	}
	short := m.lasted(time.Now()) < longAfter
	switch {
	case !wanted && (short || r.lent > 0) && m.hold(n, true): // what is on the heap may be of others, and a short run only computes
		return true
	case !short && m.collect() && m.hold(n, wanted):
		return true
	}
	m.stop(h.NoRoom(r.due))
	return false
}

// hold takes room for all that the run has and n bytes more, or if it lends, for all but what can be lent for its instructions.
func (m *machine) hold(n int, lends bool) bool {
	total := m.held() + n
	m.room.due = total + roomFrom + roomStep
	if lends {
		total -= m.lend(m.room.guessed)
	}
	return m.run.Host.Hold(max(0, total))
}

// collect collects garbage, for a sixth of the time at most, and reports whether it did.
func (m *machine) collect() bool {
	began := time.Now()
	if began.Before(m.room.collected) {
		return false
	}
	runtime.GC()
	m.room.collected = time.Now().Add(5 * time.Since(began))
	return true
}

// lend lets the run have n bytes for which there is no room, or as many of them as there are, in place of those that it has, and
// returns how many. All runs together get no more than mostLent.
func (m *machine) lend(n int) int {
	r := &m.room
	for {
		all := m.engine.lent.Load()
		others := all - int64(r.lent)
		most := min(n, int(mostLent-others))
		if m.engine.lent.CompareAndSwap(all, others+int64(most)) {
			r.lent = most
			return most
		}
	}
}

// held is how many bytes the run has, about, but for those without room. Garbage is taken to be of its instructions.
func (m *machine) held() int {
	r := &m.room
	replies := int(r.replies.Taken())
	others, most := m.run.Host.Taken()
	own := m.engine.floor.above(most) - others - int64(replies)
	garbage := r.claimed - int(max(0, min(int64(r.claimed), own)))
	r.claimed -= garbage
	r.guessed = max(0, r.guessed-garbage)
	return max(0, r.claimed+replies-roomFrom)
}

// takeArguments claims what the keys and the arguments of the run take as values.
func (m *machine) takeArguments() error {
	n := 0
	for _, list := range [][][]byte{m.run.Keys, m.run.Args} {
		for _, s := range list {
			n += len(s) + perStep
		}
	}
	if !m.claim(n) {
		return m.failure(caught{})
	}
	return nil
}
