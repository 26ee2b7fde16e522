package bitcask

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Walking through the strings of a namespace in the order of the log.
//
// The index has no names of strings, so to list keys is to read records. In the order of the index these lie anywhere in the
// log, and each read costs cache misses, or a seek of the disk. So a walk gathers the locations of some stripes, a window,
// and reads their records in the order of the log, page by page. Nothing is locked between two pages: a record counts only if
// the index still leads to it when its page is read. That is so where no writer has locked the stripe since it was gathered;
// elsewhere the index is asked. A key that was overwritten, or moved by a merge, is looked up by its hash, which never changes.

// A page has walkPage strings, or fewer that have walkBytes together.
const (
	walkPage  = 128
	walkBytes = 1 << 20
)

// walkWindow is how many locations a window has, at 16 bytes each and 16 for sorting, and those of its last stripe.
const walkWindow = 1 << 18

// Walk is how far a walk through a namespace has come. The zero value is at its beginning.
type Walk struct {
	stripe int // the next to be gathered
	window []walkKey
	next   int                    // in window
	sorted []walkKey              // room for the next window
	seen   [keydir.Stripes]uint64 // stripe.walk when it was gathered, or neverSeen
	most   int                    // instead of walkWindow, in tests
}

// full reports whether no stripe is to be added to the window.
func (w *Walk) full() bool { return len(w.window) >= cmp.Or(w.most, walkWindow) }

// neverSeen differs from every stripe.unchanged.
const neverSeen = math.MaxUint64

type walkKey struct {
	hash uint64
	loc  keydir.Loc // 0: the key has a deadline, so that it is looked up, for its lock: a reaper takes the deadline before the key
}

// Stripe returns the stripe that the next step of the walk locks, and whether that step is Gather; otherwise it is Page. At the
// end of the walk the stripe is keydir.Stripes.
func (w *Walk) Stripe() (stripe int, gather bool) {
	if w.stripe < keydir.Stripes && w.next == 0 && !w.full() {
		return w.stripe, true
	}
	if w.next < len(w.window) {
		return keydir.StripeOf(w.window[w.next].hash), false
	}
	w.window, w.next = w.window[:0], 0
	return w.stripe, w.stripe < keydir.Stripes
}

// Gather takes the strings of a stripe into the window of a walk, and calls fn for its other keys, as EachKey does. The
// transaction is on all keys of the stripe.
func (t *Tx) Gather(w *Walk, ns int, fn func(key []byte, typ keydir.Type) bool) (err error) {
	if !t.open {
		return ErrTxDone
	}
	if err := t.mayScan(w.stripe); err != nil {
		return err
	}
	if w.seen[w.stripe] = neverSeen; !t.locks.write {
		w.seen[w.stripe] = uint64(t.s.stripes[w.stripe].walk())
	}
	if sp := t.s.spaces.Of(ns); sp != nil {
		timed := uint64(math.MaxUint64) // the hash of the last deadline
		sp.Dir.Scan(w.stripe, 0, func(h uint64, slot keydir.Slot) bool {
			switch {
			case slot.Type.Alongside():
				timed = h
				for i := len(w.window) - 1; i >= 0 && w.window[i].hash == h; i-- {
					w.window[i].loc = 0
				}
			case slot.Type == keydir.String:
				k := walkKey{h, slot.Loc}
				if h == timed {
					k.loc = 0
				}
				w.window = append(w.window, k)
			default:
				more := true
				err = t.withKey(sp, h, slot, func(key []byte) { more = fn(key, slot.Type) })
				return more && err == nil
			}
			return true
		})
	}
	if w.stripe++; w.full() || w.stripe == keydir.Stripes {
		w.sort()
	}
	return err
}

// Page reads the next page of a window: it calls fn with key and value of each string that is where it was, and returns the
// hashes of the others, for EachKey. Key and value are valid within the call.
//
// The transaction is on all keys of any one stripe. A merge, which locks each stripe in which it moves locations, moves all
// locations before it passes through the locks of all stripes, and closes its inputs after that: so no segment that a live
// location leads to is closed meanwhile.
func (t *Tx) Page(w *Walk, ns int, fn func(key, value []byte)) (others []uint64, err error) {
	if !t.open {
		return nil, ErrTxDone
	}
	sp := t.s.spaces.Of(ns)
	page := w.window[w.next:]
	n, size := 0, 0
	for ; n < min(len(page), walkPage) && (n == 0 || size < walkBytes); n++ {
		size += int(page[n].loc.Size())
	}
	page = page[:n]
	w.next += n
	if sp == nil {
		return nil, nil
	}
	live := page[:0]
	for _, k := range page {
		loc, lookup := k.loc, keydir.LookupHit
		i := keydir.StripeOf(k.hash)
		if st := &t.s.stripes[i]; uint64(st.unchanged.Load()) != w.seen[i] {
			if lookup = keydir.LookupRetry; lockFree {
				loc, lookup = sp.Dir.TryGet(k.hash, &st.removed)
			}
		}
		switch {
		case k.loc == 0:
			others = append(others, k.hash)
		case lookup == keydir.LookupHit && loc == k.loc:
			live = append(live, k)
		case lookup != keydir.LookupMiss:
			others = append(others, k.hash)
		}
	}
	segments := t.s.segments.Load()
	for len(live) > 0 {
		some := live
		if end := slices.IndexFunc(live, func(k walkKey) bool { return k.loc.Segment() != live[0].loc.Segment() }); end > 0 {
			some = live[:end]
		}
		live = live[len(some):]
		read := 0
		if sg := segments.Find(some[0].loc.Segment()); sg != nil {
			read = sg.IdentifySome(len(some), func(i int) keydir.Loc { return some[i].loc }, func(rec format.Record) { fn(rec.Key, rec.Value) })
		}
		for _, k := range some[read:] {
			others = append(others, k.hash)
		}
	}
	return others, nil
}

// sort puts the window in the order of the log: a radix sort by those bytes in which locations differ.
func (w *Walk) sort() {
	differ := keydir.Loc(0)
	for _, k := range w.window {
		differ |= k.loc ^ w.window[0].loc
	}
	w.sorted = slices.Grow(w.sorted[:0], len(w.window))[:len(w.window)]
	for shift := 8; shift < 64; shift += 8 { // the lowest byte is a size
		if differ>>shift&0xff == 0 {
			continue
		}
		var next [256]int
		for _, k := range w.window {
			next[k.loc>>shift&0xff]++
		}
		n := 0
		for i, count := range next {
			next[i] = n
			n += count
		}
		for _, k := range w.window {
			at := &next[k.loc>>shift&0xff]
			w.sorted[*at] = k
			*at++
		}
		w.window, w.sorted = w.sorted, w.window
	}
}

// mayScan refuses a transaction that has not locked all keys of a stripe.
func (t *Tx) mayScan(stripe int) error {
	if !t.open {
		return ErrTxDone
	}
	t.materialize()
	if !t.locks.whole || !t.locks.all && t.locks.held[stripe/64]&(1<<(stripe%64)) == 0 {
		return fmt.Errorf("%w: all keys of stripe %d", ErrNotLocked, stripe)
	}
	return nil
}
