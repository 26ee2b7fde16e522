package bitcask

import "github.com/stavedb/stave/keydir"

// Reading a string without a lock. Nothing here waits for anyone: not for a writer of the same stripe, a rotation or a
// merge. What it cannot prove it leaves to the locked path, which is the authority for everything.
//
// A value is right if all of this holds:
//
//   - The keydir had one slot for the hash, of a string, and no removal that may yet
//     be rolled back (keydir.Directory.TryGet). A put that may yet be rolled back has a
//     pending location, which leads to no segment. Of a stripe that was not loaded yet when
//     the search began, the INDEX says the same (lazyIndex.find).
//   - The record there verifies and has the name of the key.
//   - The segment was still listed after the value had been copied. A segment is always
//     unlisted before it is unmapped, so the copy is of the segment and not of what the
//     kernel put in its place.
//   - The namespace still has the space of the search.
//
// So at some moment of the call the committed value was this one, or there was none.

// tryGet appends the value of a string to dst, if keep is set, and returns what the lookup found.
func (s *Store) tryGet(dst []byte, ns int, h uint64, key string, keep bool) ([]byte, keydir.Lookup) {
	spaces := s.spaces.Now.Load()
	if ns < 0 || ns >= len(spaces.Names) || spaces.Names[ns] == nil {
		return dst, keydir.LookupRetry
	}
	sp := spaces.Names[ns]
	loc, lookup := sp.Dir.TryGet(h, &s.stripes[keydir.StripeOf(h)].removed)
	if lookup == keydir.LookupRetry && s.lazy != nil {
		loc, lookup = s.lazy.find(sp.ID, h)
	}
	switch lookup {
	case keydir.LookupRetry:
		return dst, keydir.LookupRetry
	case keydir.LookupHit:
		sg := s.segments.Load().Find(loc.Segment())
		if sg == nil {
			return dst, keydir.LookupRetry
		}
		out, ok := sg.TryGet(dst, loc, sp.ID, key, keep)
		if !ok || s.segments.Load().Find(loc.Segment()) != sg {
			return dst, keydir.LookupRetry
		}
		dst = out
		if keep { // TryHas asks about a key and does not use it
			sp.Dir.Visit(h)
		}
	}
	if s.spaces.Now.Load() != spaces || s.closed.Load() {
		return dst, keydir.LookupRetry
	}
	return dst, lookup
}

// TryGet appends the value of a string of any namespace to dst, without a lock and without waiting. After LookupRetry,
// only a transaction can determine what the key holds; that is always so for collections and for keys with a deadline.
func (s *Store) TryGet(dst []byte, ns int, key string) ([]byte, keydir.Lookup) {
	if !lockFree || len(key) > MaxKey {
		return dst, keydir.LookupRetry
	}
	return s.tryGet(dst, ns, s.man.Seed.Hash(key), key, true)
}

// TryHas is TryGet without the value.
func (s *Store) TryHas(ns int, key string) keydir.Lookup {
	if !lockFree || len(key) > MaxKey {
		return keydir.LookupRetry
	}
	_, lookup := s.tryGet(nil, ns, s.man.Seed.Hash(key), key, false)
	return lookup
}
