package bitcask

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// EachKey calls fn for the keys of one stripe of a namespace in order of their hash, from the first
// hash that is at least from, until fn returns false. The transaction is on all keys of the stripe. key is
// valid within the call, and fn changes nothing. Since the order never changes, a scan that resumes
// where it stopped misses no key that was there throughout.
func (t *Tx) EachKey(ns, stripe int, from uint64, fn func(h uint64, key []byte, typ keydir.Type) bool) (err error) {
	if err := t.mayScan(stripe); err != nil {
		return err
	}
	sp := t.s.spaces.Of(ns)
	if sp == nil {
		return nil
	}
	var hashes [scanAhead]uint64
	var slots [scanAhead]keydir.Slot
	n := 0
	visit := func() (more bool) {
		t.loadAhead(slots[:n])
		more = true
		for i := 0; i < n && more && err == nil; i++ {
			err = t.withKey(sp, hashes[i], slots[i], func(key []byte) { more = fn(hashes[i], key, slots[i].Type) })
		}
		n = 0
		return more && err == nil
	}
	sp.Dir.Scan(stripe, from, func(h uint64, slot keydir.Slot) bool {
		if !slot.Type.Alongside() {
			hashes[n], slots[n] = h, slot
			n++
		}
		return n < scanAhead || visit()
	})
	if n > 0 {
		visit()
	}
	return err
}

// scanAhead is how many records EachKey has loaded before it reads the first of them: a scan that ends loads a few in vain.
const scanAhead = 16

// withKey calls fn with the name of the key of a slot: it is in RAM for collections, in its record for strings. It does not call fn for a
// collection that the transaction has emptied, which is in the index until the commit and is no key any more.
func (t *Tx) withKey(sp *namespace.Space, h uint64, slot keydir.Slot, fn func(key []byte)) error {
	if slot.Type != keydir.String {
		if coll := sp.Dir.CollectionOf(h, slot); !coll.Empty() {
			fn([]byte(coll.Key()))
		}
		return nil
	}
	if slot.Loc.Pending() {
		fn(t.recs.At(int(slot.Loc.Offset())).key(t.buf))
		return nil
	}
	sg, err := t.s.segmentOf(slot.Loc)
	if err != nil {
		return err
	}
	return sg.Identify(slot.Loc, func(rec format.Record) { fn(rec.Key) })
}

// RandomKey returns a key of a namespace, each with the same chance, with random as the source of chance. ok is false if
// none was found. O(1): a few stripes are locked, one at a time; about fifty of them where there are few keys.
func (s *Store) RandomKey(ns int, random func() uint64) (key string, ok bool, err error) {
	sp := s.spaces.Of(ns)
	if sp == nil || sp.Dir.Len() == 0 {
		return "", false, nil
	}
	return drawKey(sp, random, func(stripe int) (slot drawnSlot, err error) {
		t, err := s.BeginStripe(false, stripe)
		defer t.Recycle()
		if err != nil {
			return slot, err
		}
		return t.drawSlot(sp, stripe, random)
	})
}

// RandomKey is RandomKey of the store in a transaction that holds all keys.
func (t *Tx) RandomKey(ns int, random func() uint64) (key string, ok bool, err error) {
	if !t.open {
		return "", false, ErrTxDone
	}
	t.materialize()
	if !t.locks.whole || !t.locks.all {
		return "", false, fmt.Errorf("%w: all keys, for a random one", ErrNotLocked)
	}
	sp := t.s.spaces.Of(ns)
	if sp == nil || sp.Dir.Len() == 0 {
		return "", false, nil
	}
	return drawKey(sp, random, func(stripe int) (drawnSlot, error) { return t.drawSlot(sp, stripe, random) })
}

// drawnSlot is a slot drawn from a stripe.
type drawnSlot struct {
	key    string
	isKey  bool // and not that of a deadline, or what else stands alongside a key
	stripe int  // how many slots its stripe has
}

// drawKey draws a stripe, and a slot of it with draw, and drops that with a chance that makes up for how many slots the stripe has: then
// all slots have the same. Hashes are random, so that no stripe has many more than the mean.
func drawKey(sp *namespace.Space, random func() uint64, draw func(stripe int) (drawnSlot, error)) (key string, ok bool, err error) {
	const tries = 1000
	mean := float64(sp.Dir.Len()+sp.Dir.LenDeadlines()+sp.Dir.LenFieldDeadlines()) / keydir.Stripes
	most := uint64(mean + 5*math.Sqrt(mean) + 3)
	for range tries {
		slot, err := draw(int(random() % keydir.Stripes))
		if err != nil {
			return "", false, err
		}
		if slot.isKey && random()%most < uint64(slot.stripe) {
			return slot.key, true, nil
		}
	}
	first := int(random() % keydir.Stripes) // hardly any are keys, or they come and go
	for i := range keydir.Stripes {
		slot, err := draw((first + i) % keydir.Stripes)
		if err != nil || slot.isKey {
			return slot.key, err == nil, err
		}
	}
	return "", false, nil
}

// drawSlot is one draw of a stripe.
func (t *Tx) drawSlot(sp *namespace.Space, stripe int, random func() uint64) (drawn drawnSlot, err error) {
	if drawn.stripe = sp.Dir.StripeLen(stripe); drawn.stripe == 0 {
		return drawn, nil
	}
	h, slot, found := sp.Dir.RandomSlot(stripe, random())
	if found && !slot.Type.Alongside() {
		err = t.withKey(sp, h, slot, func(k []byte) { drawn.key, drawn.isKey = string(k), true })
	}
	return drawn, err
}

// Len is the number of keys of a namespace, expired but not yet reaped ones included. O(1).
func (s *Store) Len(ns int) int {
	if sp := s.spaces.Of(ns); sp != nil {
		return sp.Dir.Len()
	}
	return 0
}

// Deadlines is the number of keys of a namespace that have a deadline. O(1).
func (s *Store) Deadlines(ns int) int {
	if sp := s.spaces.Of(ns); sp != nil {
		return sp.Dir.LenDeadlines()
	}
	return 0
}

// Namespaces lists the namespaces that hold keys, in order.
func (s *Store) Namespaces() []int { return s.spaces.Used() }

// Space is the number that the records of a namespace carry.
func (s *Store) Space(ns int) uint32 {
	if sp := s.spaces.Of(ns); sp != nil {
		return sp.ID
	}
	return s.spaces.Now.Load().SpaceID(uint32(ns))
}

// NamespaceOf is the namespace that uses a space; false if none does.
func (s *Store) NamespaceOf(space uint32) (int, bool) {
	for ns, sp := range s.spaces.Now.Load().Names {
		if sp != nil && sp.ID == space {
			return ns, true
		}
	}
	return 0, false
}

// EachName calls fn for the keys of a namespace until it returns false: first the collections, whose names are in RAM,
// then the strings in the order of their records in the log, so that a disk is read from its beginning to its end. It
// takes 8 bytes a string for its duration. The transaction holds all keys and has written nothing. key is valid within
// the call.
func (t *Tx) EachName(ns int, fn func(key []byte, typ keydir.Type) bool) (err error) {
	if !t.open {
		return ErrTxDone
	}
	sp := t.s.spaces.Of(ns)
	if sp == nil {
		return nil
	}
	var strings []keydir.Loc
	more := true
	for stripe := 0; stripe < keydir.Stripes && more; stripe++ {
		sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
			switch slot.Type {
			case keydir.Deadline, keydir.FieldDeadlines, keydir.StreamGroups:
			case keydir.String:
				strings = append(strings, slot.Loc)
			default:
				err = t.withKey(sp, h, slot, func(key []byte) { more = fn(key, slot.Type) })
			}
			return more && err == nil
		})
	}
	slices.SortFunc(strings, func(a, b keydir.Loc) int {
		return cmp.Or(cmp.Compare(a.Segment(), b.Segment()), cmp.Compare(a.Offset(), b.Offset()))
	})
	visit := func(key []byte) { more = fn(key, keydir.String) }
	for i := 0; i < len(strings) && more && err == nil; i++ {
		err = t.withKey(sp, 0, keydir.Slot{Type: keydir.String, Loc: strings[i]}, visit)
	}
	return err
}
