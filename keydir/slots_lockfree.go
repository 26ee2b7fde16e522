package keydir

import "sync/atomic"

// Lock-free reads: searches without the stripe's lock. A region counts its changes: the version is odd
// while slots are inserted, removed or moved. A search that saw the same even version
// before and after saw what a holder of the lock would have seen. Words cannot tear. Pages
// that a region gives up may be another one's at once; it gives them up within a change,
// so whoever has read what the other wrote finds the version changed: it was, before the
// page went through the lock of the slabs. So a search that is overtaken goes astray, finds
// that out and is made again.
//
// In terms of the Go memory model this is a race. It is not one for the machine where
// a load of an aligned 64-bit word is one load, copy moves whole words (the garbage
// collector relies on that for pointers), and the orders named below hold. bitcask
// says on which platforms it relies on that.

// layout is what readers without a lock know of a region's tables.
type layout struct {
	depth   uint8
	extents []atomic.Pointer[extent] // of tables[i]
}

// begin starts a change. The load orders the version before the change's plain stores
// on processors where a store alone would not (arm64).
func (r *region) begin() {
	r.version.Add(1)
	r.version.Load()
}

func (r *region) end() { r.version.Add(1) }

// publish shows readers the tables as they are.
func (r *region) publish() {
	l := &layout{depth: r.depth, extents: make([]atomic.Pointer[extent], len(r.tables))}
	for i := 0; i < len(r.tables); {
		first, end := r.span(i)
		s := r.tables[i].extent
		r.tables[i].grown = false
		for k := first; k < end; k++ {
			l.extents[k].Store(&s)
		}
		i = end
	}
	r.seen.Store(l)
}

// show publishes the extent of the table at index i if it has changed.
func (r *region) show(i int) {
	t := r.tables[i]
	if !t.grown {
		return
	}
	s := t.extent
	t.grown = false
	l := r.seen.Load()
	first, end := r.span(i)
	for k := first; k < end; k++ {
		l.extents[k].Store(&s)
	}
}

// Lookup is the result of a TryGet.
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
	r := d.at(h)
	if r == nil {
		return 0, LookupMiss
	}
	for range tries {
		version := r.version.Load()
		if version&1 != 0 {
			continue
		}
		l := r.seen.Load()
		s := l.extents[h<<stripeBits>>(64-l.depth)].Load()
		loc, lookup := s.tryGet(h)
		doubt := removed.Load()&RemovedBit(h) != 0 // before the version: undoing a removal changes that first
		if r.version.Load() != version {
			continue
		}
		if doubt {
			return 0, LookupRetry
		}
		return loc, lookup
	}
	return 0, LookupRetry
}

func (s *extent) tryGet(h uint64) (Loc, Lookup) {
	pos := s.seek(h)
	word, loc := s.at(pos)
	if word == 0 || word>>3 != h>>3 {
		return 0, LookupMiss
	}
	if Type(word&typeMask) != String {
		return 0, LookupRetry
	}
	if next, _ := s.at(pos + 1); next>>3 == h>>3 {
		return 0, LookupRetry
	}
	return Loc(loc), LookupHit
}
