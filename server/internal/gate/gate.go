// Package gate holds the replies of a server that is primary of a group until nothing they show can be lost any more: see
// package internal/group, whose invariant S1 it keeps.
//
// A commit is known here by its ticket, the sequence number after it in the log of the store, as it is to who waits for the disk.
// It has an end in the stream for replicas. The group confirms an offset of the stream (Confirm): all commits that end there or
// before are shown from then on. A reply owes a ticket: of the commit that it reports, or of the newest commit of any key that it
// has looked at (Owed), and may leave when that one is shown.
//
// The newest commit of each key is kept by the hash of its name, in a table of a fixed size: keys with the same hash owe more
// than they need to. What names no keys owes the newest commit of all.
//
// Held are the replies to commands of keys, errors among them, and to those that look at all keys; of EXEC, scripts and libraries; of
// waits that a write ends; and all messages: of channels, notifications, invalidations, and what MONITOR shows. Not held are figures
// (INFO, /metrics, the dashboard) and what operators ask for, backups, the stream for replicas, what a program reads that embeds the
// store, and what a server shows while it follows another one.
//
//	G1  Whoever sees a commit in the store finds it in the table, and not shown unless it is confirmed: Wrote is called before
//	    the commit can be seen, and hides the commit before it changes the table.
//	G2  What was done in a term is not shown in another one (Term). Tickets do not mix them up either: that of a new term is greater than
//	    all of before. If nothing was written since the newest of before, it may be that one, whose commits Begin has confirmed once
//	    more; Follow, which confirms nothing, needs a greater one after a term of a primary.
//	G3  What the store has when a term begins is owed by everybody until the group has confirmed all of it.
//	G4  Nothing leaves without the lease, and nothing that was not shown when the term ended. A lease that comes back in a term was
//	    never anybody else's: what is held meanwhile leaves then.
//
// One message may leave that should not: of a script or an EXEC that only reads, has begun in a term that ends before it does, and lasts
// until the server is primary again. It is owed as of when it is delivered, so it may tell a client that has subscribed since of a write
// that was lost.
package gate

import (
	"errors"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Slots is the size of the table.
const Slots = 1 << 16

// ErrUnknown is the end of a wait whose ticket is never shown, or not in time. The writes may be there after all.
var ErrUnknown = errors.New("gate: the outcome of writes is not known")

// Gate is what a primary knows of commits that are not confirmed. Its methods may be called by any goroutine; those that the
// log calls wait for nothing.
type Gate struct {
	now func() time.Duration

	term     atomic.Uint64 // how many have begun, those of other primaries that it follows among them
	first    atomic.Uint64 // ticket of the term; smaller ones are of before
	all      atomic.Uint64 // the newest commit that concerns all keys
	newest   atomic.Uint64 // commit
	hidden   atomic.Uint64 // tickets from here on are not shown
	lease    atomic.Int64  // until then, by now
	serves   atomic.Bool   // the term has begun, and not ended
	writes   atomic.Bool   // as many members are in sync as a write needs
	patience atomic.Int64  // of Wait
	rounds   atomic.Int64  // all in sync have acknowledged the stream of the term up to there

	slots [Slots]atomic.Uint64 // the newest commit of a key with this hash

	mu      sync.Mutex    // guards the rest; held while what is above is written
	leads   bool          // the newest term is one of a primary
	pending []commit      // not confirmed, in the order of the log
	changed chan struct{} // closed when a wait may be over; nil while nobody waits
}

// commit is one that is not confirmed.
type commit struct {
	ticket uint64
	end    int64 // its end in the stream
}

// DefaultPatience is how long a reply is owed; after that its client is told that the outcome is not known.
const DefaultPatience = 5 * time.Second

// New returns the gate of a server that is no primary yet. now is the clock of leases: see group.Now.
func New(now func() time.Duration) *Gate {
	g := &Gate{now: now}
	g.patience.Store(int64(DefaultPatience))
	return g
}

// SetPatience sets how long a reply is owed.
func (g *Gate) SetPatience(d time.Duration) { g.patience.Store(int64(d)) }

// Begin begins a term, and ends the one before. The ticket is that of the newest commit, see G2, and stands for all that the store has;
// that ends in the stream at the offset. It is called when no commit is on its way from the log to the stream.
func (g *Gate) Begin(ticket uint64, end int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begin(ticket, true)
	g.pending = []commit{{ticket, end}}
	g.hidden.Store(ticket)
	g.serves.Store(true)
}

// Follow begins the time in which the server follows other primaries, unless it does already: all that it has is shown. The ticket is
// as for Begin.
func (g *Gate) Follow(ticket uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lease.Load() == math.MaxInt64 && !g.serves.Load() {
		return
	}
	g.begin(ticket, false)
	g.lease.Store(math.MaxInt64)
	g.hidden.Store(math.MaxUint64)
	g.rounds.Store(math.MaxInt64)
}

func (g *Gate) begin(ticket uint64, leads bool) {
	if newest := g.newest.Load(); ticket < newest || ticket == newest && g.leads && !leads {
		panic("BUG: gate: a term begins with a ticket of before")
	}
	g.end()
	g.leads = leads
	g.term.Add(1)
	g.rounds.Store(0)
	g.first.Store(ticket) // before hidden: see isShown
	g.all.Store(ticket)
	g.newest.Store(ticket)
}

// End ends the term, or Follow: what is not shown by now never is, nor are commits that come nevertheless.
func (g *Gate) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end()
}

func (g *Gate) end() {
	g.serves.Store(false)
	g.writes.Store(false)
	g.lease.Store(0)
	g.hidden.Store(min(g.hidden.Load(), g.newest.Load()+1)) // a commit that comes has a greater ticket
	g.pending = nil
	g.notify()
}

// Wrote notes a commit. It is called in the order of the log, before anybody can see the commit. slots are those of the keys that it
// changes; whole says that it concerns all keys, or more than slots has.
func (g *Gate) Wrote(ticket uint64, end int64, slots []uint16, whole bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.serves.Load() {
		if g.pending = append(g.pending, commit{ticket, end}); len(g.pending) == 1 {
			g.hidden.Store(ticket)
		}
	}
	g.newest.Store(ticket)
	if whole {
		g.all.Store(ticket)
		return
	}
	for _, s := range slots {
		g.slots[s].Store(ticket)
	}
}

// Confirm says that all members in sync have the stream up to an offset.
func (g *Gate) Confirm(offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	done := 0
	for done < len(g.pending) && g.pending[done].end <= offset {
		done++
	}
	if done == 0 {
		return
	}
	if g.pending = g.pending[done:]; len(g.pending) > 0 {
		g.hidden.Store(g.pending[0].ticket)
	} else {
		g.hidden.Store(math.MaxUint64)
	}
	g.notify()
}

// Round says that all members in sync have acknowledged the stream up to an offset, at whatever time, and however few they are.
func (g *Gate) Round(offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.serves.Load() && offset > g.rounds.Load() {
		g.rounds.Store(offset)
		g.notify()
	}
}

// HasRound reports whether all in sync have acknowledged a byte of the stream: so they followed this primary after it was written.
func (g *Gate) HasRound(offset int64) bool { return g.rounds.Load() >= offset }

// Extend says until when the primary has the lease, and whether as many members are in sync as a write needs. It lets those go on who
// wait because the lease is over.
func (g *Gate) Extend(until time.Duration, takesWrites bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.serves.Load() {
		wasOver := !g.Answers()
		g.lease.Store(int64(until))
		g.writes.Store(takesWrites)
		if wasOver {
			g.notify()
		}
	}
}

// notify wakes those that wait.
func (g *Gate) notify() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// Term is the number of the term that has begun last, which only this gate knows it by; 0 before the first.
func (g *Gate) Term() uint64 { return g.term.Load() }

// TooFew reports whether fewer members are in sync than a write needs.
func (g *Gate) TooFew() bool { return g.serves.Load() && !g.writes.Load() }

// Answers reports whether the server may answer at all: it has the lease, or follows.
func (g *Gate) Answers() bool {
	until := g.lease.Load()
	return until == math.MaxInt64 || int64(g.now()) < until
}

// seed is that of all hashes in the process.
var seed = maphash.MakeSeed()

// SlotOf is where the table has a key, whatever its database.
func SlotOf(key string) uint16 { return uint16(maphash.String(seed, key)) }

// Owed is the ticket that a look at keys owes, after the look.
func (g *Gate) Owed(keys []string) uint64 {
	owed := g.all.Load()
	for _, key := range keys {
		owed = max(owed, g.slots[SlotOf(key)].Load())
	}
	return owed
}

// Newest is the ticket that a look at everything owes, after the look.
func (g *Gate) Newest() uint64 { return g.newest.Load() }

// Shows reports whether a reply may leave that owes a ticket; one that owes 0 may at any time. It was made in the term of now, which
// the caller asks.
func (g *Gate) Shows(ticket uint64) bool {
	return ticket == 0 || g.isShown(ticket) && g.Answers()
}

// isShown is Shows without the lease. It looks at hidden first: where that is of a new term, so is first, and the ticket of a term
// before is smaller, or shown by the new one too.
func (g *Gate) isShown(ticket uint64) bool {
	return ticket < g.hidden.Load() && ticket >= g.first.Load()
}

// Wait waits until a reply may leave that owes a ticket, or never may, but not longer than the patience: for the confirmation, and for
// the lease while it is over.
func (g *Gate) Wait(ticket uint64) error {
	return g.await(func() bool { return g.Shows(ticket) }, func() bool { return ticket < g.first.Load() })
}

// WaitRound is Wait for HasRound.
func (g *Gate) WaitRound(offset int64) error {
	return g.await(func() bool { return g.HasRound(offset) }, func() bool { return false })
}

// await waits for a condition, unless the term ends, or it never will hold.
func (g *Gate) await(holds, never func() bool) error {
	var late <-chan time.Time
	for !holds() {
		g.mu.Lock()
		if !g.serves.Load() || never() || holds() {
			g.mu.Unlock()
			break
		}
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed := g.changed
		g.mu.Unlock()
		if late == nil {
			timer := time.NewTimer(time.Duration(g.patience.Load()))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-changed:
			continue
		case <-late:
		}
		break
	}
	if holds() {
		return nil
	}
	return ErrUnknown
}
