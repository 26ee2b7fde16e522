package bitcask

import (
	"runtime/debug"

	"github.com/stavedb/stave/keydir"
)

// Loading ahead. A look-up waits for memory twice: for the slot of the key, and for the record that proves it. One after
// another that is most of the time of a command on many keys. Here the look-ups of many overlap, because nothing
// depends on what they find: what is loaded in vain costs time, and nothing else.

// PrefetchDepth is how many keys Prefetch loads ahead: few enough to be still in the processor's
// cache when the keys are looked up.
const PrefetchDepth = 128

// Prefetch loads what the index has on the next PrefetchDepth of keys that will be looked up one after another, and the
// first bytes of the records of strings. It skips keys that the transaction has not locked.
func (t *Tx) Prefetch(ns int, keys []string) {
	var room [PrefetchDepth]uint64
	hashes := room[:0]
	for _, key := range keys[:min(len(keys), PrefetchDepth)] {
		if h := t.s.man.Seed.Hash(key); t.locks.locked(h) {
			hashes = append(hashes, h)
		}
	}
	t.prefetch(ns, hashes)
}

// PrefetchAll is Prefetch of the keys that Begin got, unless they are too many, or too few of them differ to gain
// anything.
func (t *Tx) PrefetchAll(ns int) {
	if few := 4; len(t.locks.stripes) >= few && len(t.locks.hashes) <= PrefetchDepth {
		t.prefetch(ns, t.locks.hashes)
	}
}

func (t *Tx) prefetch(ns int, hashes []uint64) {
	if !t.open {
		return
	}
	if sp := t.s.spaces.Of(ns); sp != nil {
		sp.Dir.Prefetch(hashes)
		t.prefetchRecords(sp.Dir, hashes)
	}
}

// prefetchRecords loads the first bytes of the records of strings that have these hashes.
func (t *Tx) prefetchRecords(dir *keydir.Directory, hashes []uint64) {
	var room [PrefetchDepth]keydir.Slot
	slots := room[:0]
	for _, h := range hashes {
		if slot, ok := dir.Find(h, 0); ok {
			slots = append(slots, slot)
		}
	}
	t.loadAhead(slots)
}

// loadAhead loads the first bytes of the records of strings. They may be in a file that has been truncated under us: then the
// read that follows reports it.
func (t *Tx) loadAhead(slots []keydir.Slot) (loaded int) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, isFault := r.(interface{ Addr() uintptr }); !isFault {
				panic(r)
			}
		}
	}()
	segments := t.s.segments.Load()
	for _, slot := range slots {
		if slot.Type != keydir.String || slot.Loc.Pending() {
			continue
		}
		if sg := segments.Find(slot.Loc.Segment()); sg != nil {
			loaded += sg.Touch(slot.Loc)
		}
	}
	return loaded
}
