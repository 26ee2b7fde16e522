package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// What an owner needs that evicts keys, which decides when, and which. Here is what belongs to the index: the bits of
// the keys that have been used (keydir/visits.go), a hand that goes over the keys, and what a key takes.

// TrackVisits begins or ends to note which keys are used. Called again, now and then, it follows their number. One
// goroutine at a time calls it.
func (s *Store) TrackVisits(on bool) {
	s.spaces.Visits.Store(on)
	for _, sp := range s.spaces.Now.Load().ByID {
		sp.Dir.TrackVisits(on)
	}
}

// Visited reports whether a key has been used since a hand was there, as far as that is known. It may not exist.
func (s *Store) Visited(ns int, key string) bool {
	sp := s.spaces.Of(ns)
	return sp != nil && sp.Dir.Visited(s.man.Seed.Hash(key))
}

// AgeVisits is the end of a turn of a hand of another order than Sweep's: see keydir.Directory.AgeVisits.
func (s *Store) AgeVisits() {
	for _, sp := range s.spaces.Now.Load().ByID {
		sp.Dir.AgeVisits()
	}
}

// EntryBytes is what the entries of the index take, without room in its tables, and how many keys and deadlines there are. O(1) a
// namespace.
func (s *Store) EntryBytes() (bytes int64, keys, deadlines int) {
	for _, sp := range s.spaces.Now.Load().Names {
		if sp != nil {
			bytes += sp.Dir.EntryBytes()
			keys += sp.Dir.Len()
			deadlines += sp.Dir.LenDeadlines()
		}
	}
	return bytes, keys, deadlines
}

// sweptAtOnce is how many keys the hand passes under one lock: some ten microseconds, besides the names that it reads.
const sweptAtOnce = 2048

// Sweep moves the hand over keys of a namespace, in one stripe, from the hash from on, as keydir.Directory.Sweep does. It
// calls fn with the names of keys that have not been used since the hand was there, or with everyone set with all, until
// fn returns false. A string's name is read from its record; a damaged one is skipped. It returns where the hand
// stands then: 0 after the last key. It does not wait: a stripe that somebody has locked for writing is skipped.
func (s *Store) Sweep(ns int, from uint64, everyone bool, fn func(key []byte) bool) (next uint64, err error) {
	stripe := keydir.StripeOf(from)
	after := uint64(stripe+1) << 56
	sp := s.spaces.Of(ns)
	if sp == nil {
		return 0, nil
	}
	t := s.newTx(false)
	defer t.Recycle()
	t.locks.whole = true
	t.locks.hold(stripe)
	if !t.locks.tryLock() {
		return after, nil
	}
	if err := t.begun(); err != nil {
		return 0, err
	}
	next = sp.Dir.Sweep(stripe, from, sweptAtOnce, everyone, func(h uint64, slot keydir.Slot) bool {
		more := true
		err = t.withKey(sp, h, slot, func(key []byte) { more = fn(key) })
		if failure.IsDamage(err) {
			err = nil
		}
		return more && err == nil
	})
	return next, err
}

// Weight is what the index gets back when a key is deleted, in bytes, without its deadlines in another index. ok is false if
// the key holds nothing. To ask is not to use the key.
func (t *Tx) Weight(ns int, key string) (bytes int64, ok bool, err error) {
	h, err := t.hash(key)
	if err != nil {
		return 0, false, err
	}
	sp := t.s.spaces.Of(ns)
	if sp == nil {
		return 0, false, nil
	}
	slot, coll, err := t.find(sp, h, key)
	if err != nil && !failure.IsDamage(err) || slot.Type == keydir.None {
		return 0, false, err
	}
	return weight(sp, h, key, coll), true, nil
}

func weight(sp *namespace.Space, h uint64, key string, coll keydir.Collection) int64 {
	n := int64(keydir.EntryBytes)
	if !coll.Valid() {
		return n
	}
	n += int64(coll.Bytes())
	for _, typ := range keydir.Alongside {
		if beside, ok := sp.Dir.FindAlongside(h, key, typ); ok {
			n += keydir.EntryBytes + int64(beside.Bytes())
		}
	}
	return n
}
