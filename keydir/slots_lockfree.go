package keydir

import "sync/atomic"

// Lock-free reads: searches without the stripe's lock, validated by a sequence lock. A
// stripe counts its changes: the version is odd while slots are inserted, removed or moved.
// A search that sees the same even version before and after has seen what a holder of the
// lock would have seen. Words cannot tear. Another stripe may reuse a released page at once,
// but pages are released within a change: a search that reads the other stripe's words finds
// the version changed, because it changed before the page passed through the lock of the
// pagePool. So a search that a change overtakes may go wrong, notices that, and retries.
//
// In terms of the Go memory model this is a data race. It is harmless on a machine where
// a load of an aligned 64-bit word is one load, copy moves whole words (the garbage
// collector relies on that for pointers), and the orders named below hold. bitcask
// says on which platforms it relies on that.

// tableView is what lock-free readers know of a stripe's tables.
type tableView struct {
	depth  uint8
	arrays []atomic.Pointer[slotArray] // of tables[i]
}

// beginChange starts a change. The load orders the version before the change's plain stores
// on processors where a store alone would not (arm64).
func (st *stripe) beginChange() {
	st.version.Add(1)
	st.version.Load()
}

func (st *stripe) endChange() { st.version.Add(1) }

// publish makes all tables visible to lock-free readers.
func (st *stripe) publish() {
	view := &tableView{depth: st.depth, arrays: make([]atomic.Pointer[slotArray], len(st.tables))}
	for i := 0; i < len(st.tables); {
		first, end := st.span(i)
		a := st.tables[i].slotArray
		st.tables[i].resized = false
		for k := first; k < end; k++ {
			view.arrays[k].Store(&a)
		}
		i = end
	}
	st.published.Store(view)
}

// publishTable publishes the slotArray of the table at index i if it has changed.
func (st *stripe) publishTable(i int) {
	t := st.tables[i]
	if !t.resized {
		return
	}
	a := t.slotArray
	t.resized = false
	view := st.published.Load()
	first, end := st.span(i)
	for k := first; k < end; k++ {
		view.arrays[k].Store(&a)
	}
}

// Lookup is the result of a TryGet. A hit is a candidate: its record has yet to prove the key.
type Lookup uint8

const (
	LookupRetry Lookup = iota // take the lock and use Find
	LookupMiss                // no slot has the hash
	LookupHit                 // one slot has the hash, of a string; in chunks, or not committed, if the location is pending
)

// RemovedBit is the bit of a hash in TryGet's word of removed slots.
func RemovedBit(h uint64) uint64 { return 1 << (h >> 3 & 63) }

// TryGet is Find for callers that do not hold the lock of the hash's stripe. It returns
// LookupRetry for what is not simple (collections, deadlines, hashes that collide) and for
// what may be rolled back: before a holder of the lock removes a slot that it may restore,
// it sets the hash's RemovedBit in removed; it clears the bit when the removal is final
// or rolled back.
func (d *Directory) TryGet(h uint64, removed *atomic.Uint64) (Loc, Lookup) {
	const tries = 4 // a change takes less time than to wait for its writer
	st := d.stripe(h)
	if st == nil {
		return 0, LookupMiss
	}
	for range tries {
		version := st.version.Load()
		if version&1 != 0 {
			continue
		}
		view := st.published.Load()
		a := view.arrays[h<<stripeBits>>(64-view.depth)].Load()
		loc, lookup := a.tryGet(h)
		doubt := removed.Load()&RemovedBit(h) != 0 // before the version: undoing a removal changes that first
		if st.version.Load() != version {
			continue
		}
		if doubt {
			return 0, LookupRetry
		}
		return loc, lookup
	}
	return 0, LookupRetry
}

// tryGet is TryGet in one table, whose words may change during the call: the caller checks the version.
func (a *slotArray) tryGet(h uint64) (Loc, Lookup) {
	pos := a.seek(h)
	word, loc := a.at(pos)
	if word == 0 || word>>3 != h>>3 {
		return 0, LookupMiss
	}
	if Type(word&typeMask) != String {
		return 0, LookupRetry
	}
	if next, _ := a.at(pos + 1); next>>3 == h>>3 {
		return 0, LookupRetry
	}
	return Loc(loc), LookupHit
}
