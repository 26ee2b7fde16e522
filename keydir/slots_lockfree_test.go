package keydir_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

func TestTryGetSeesWhatFindSees(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	var removed atomic.Uint64
	expect := func(h uint64, loc keydir.Loc, lookup keydir.Lookup) {
		t.Helper()
		if gotLoc, got := d.TryGet(h, &removed); got != lookup || lookup == keydir.LookupHit && gotLoc != loc {
			t.Fatalf("hash %x: got %v %x, want %v %x", h, got, uint64(gotLoc), lookup, uint64(loc))
		}
	}
	h := uint64(5) << 56
	str := func(loc keydir.Loc) keydir.Slot { return keydir.Slot{Type: keydir.String, Loc: loc} }
	deadline := keydir.Slot{Type: keydir.Deadline, Loc: 9}

	expect(h, 0, keydir.LookupMiss)
	d.Insert(h, str(1))
	expect(h, 1, keydir.LookupHit)
	expect(h+8, 0, keydir.LookupMiss)
	expect(h-8, 0, keydir.LookupMiss)
	d.Replace(h, str(1), str(2))
	expect(h, 2, keydir.LookupHit)

	d.Insert(h, deadline) // a read through a deadline must know the time
	expect(h, 0, keydir.LookupRetry)
	d.Delete(h, deadline)
	expect(h, 2, keydir.LookupHit)
	d.Insert(h, str(3)) // another key of the same hash
	expect(h, 0, keydir.LookupRetry)
	d.Delete(h, str(2))
	expect(h, 3, keydir.LookupHit)
	d.NewCollection(h+8, keydir.Hash, "collection")
	expect(h+8, 0, keydir.LookupRetry)

	removed.Store(keydir.RemovedBit(h)) // a removal that may be undone
	d.Delete(h, str(3))
	expect(h, 0, keydir.LookupRetry)
	expect(h+16, 0, keydir.LookupMiss)
	removed.Store(0)
	expect(h, 0, keydir.LookupMiss)
}

// One goroutine changes a stripe in every way while others search it without a lock: for keys that
// stay, keys that are never there, and keys that come, go and move. No search may see a state from
// before it began.
func TestTryGetBesideChanges(t *testing.T) {
	if underRace {
		t.Skip("a lock-free search is a race by definition")
	}
	seed := chance.Seed(t)
	const stripe, keys = 3, 40_000
	r := rand.New(rand.NewPCG(seed, 1))
	hash := make([]uint64, 3*keys)
	for i := range hash {
		hash[i] = stripe<<56 | r.Uint64()>>8&^7
	}
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	// Of the keys, a third stays, a third is never there, a third comes and goes. The
	// state of those is a number that only grows: odd is absent.
	staying, never, moving := hash[:keys], hash[keys:2*keys], hash[2*keys:]
	for i, h := range staying {
		d.Insert(h, keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)})
	}
	begun, done := make([]atomic.Uint64, keys), make([]atomic.Uint64, keys)
	for i := range done {
		begun[i].Store(1)
		done[i].Store(1)
	}
	var removed atomic.Uint64
	var stop atomic.Bool
	var wait sync.WaitGroup
	var sure, unsure atomic.Uint64
	for reader := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(reader)+2))
		wait.Go(func() {
			for !stop.Load() && !t.Failed() {
				i := r.IntN(keys)
				if loc, s := d.TryGet(staying[i], &removed); s == keydir.LookupMiss || s == keydir.LookupHit && loc != keydir.Loc(i+1) {
					t.Errorf("key that stays: %v %x", s, uint64(loc))
				}
				if loc, s := d.TryGet(never[i], &removed); s == keydir.LookupHit {
					t.Errorf("key that is never there: %x", uint64(loc))
				}
				before := done[i].Load()
				loc, s := d.TryGet(moving[i], &removed)
				after := begun[i].Load()
				switch {
				case s == keydir.LookupRetry:
					unsure.Add(1)
				case s == keydir.LookupHit && (uint64(loc) < before || uint64(loc) > after):
					t.Errorf("saw state %d, it was %d to %d", uint64(loc), before, after)
				case s == keydir.LookupMiss && before == after && before&1 == 0:
					t.Errorf("missed a key that was there: state %d", before)
				default:
					sure.Add(1)
				}
			}
		})
	}
	// A table of some thousand slots grows, is split in two, shrinks and is joined.
	end := time.Now().Add(time.Second)
	for wave := 0; time.Now().Before(end) && !t.Failed(); wave++ {
		for i, k := range r.Perm(keys) {
			state := done[k].Load()
			h := moving[k]
			slot := keydir.Slot{Type: keydir.String, Loc: keydir.Loc(state)}
			next := func(n uint64, change func(now keydir.Slot)) {
				begun[k].Store(state + n)
				change(keydir.Slot{Type: keydir.String, Loc: keydir.Loc(state + n)})
				done[k].Store(state + n)
			}
			switch {
			case state&1 != 0 && wave&1 == 0:
				next(1, func(now keydir.Slot) { d.Insert(h, now) })
			case state&1 == 0 && wave&1 == 0:
				next(2, func(now keydir.Slot) { d.Replace(h, slot, now) })
			case state&1 == 0 && i%3 == 0: // removed, and restored
				removed.Store(keydir.RemovedBit(h))
				d.Delete(h, slot)
				d.Insert(h, slot)
				removed.Store(0)
				fallthrough
			case state&1 == 0:
				next(1, func(keydir.Slot) { d.Delete(h, slot) })
			}
		}
	}
	stop.Store(true)
	wait.Wait()
	t.Logf("%d looks were sure, %d were not", sure.Load(), unsure.Load())
	if sure.Load() == 0 {
		t.Error("no look was ever sure")
	}
}

// Stripes grow and shrink by turns, their tables are cut in two and joined, and each writes the pages that the other
// has given up, while readers without a lock look at the few keys that stay.
func TestTryGetBesidePagesThatMove(t *testing.T) {
	if underRace {
		t.Skip("a lock-free search is a race by definition")
	}
	seed := chance.Seed(t)
	const stripes, stay, all = 3, 300, 25_000
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	slot := func(stripe, i int) keydir.Slot {
		return keydir.Slot{Type: keydir.String, Loc: keydir.Loc(stripe<<20 | i + 1)}
	}
	var hash [stripes][]uint64
	for s := range hash {
		r := rand.New(rand.NewPCG(seed, uint64(s)))
		for i := range all {
			hash[s] = append(hash[s], uint64(s)<<56|r.Uint64()>>8&^7)
			if i < stay {
				d.Insert(hash[s][i], slot(s, i))
			}
		}
	}
	var removed, sure atomic.Uint64
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for reader := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(stripes+reader)))
		readers.Go(func() {
			for !stop.Load() {
				s, i := r.IntN(stripes), r.IntN(stay)
				switch loc, lookup := d.TryGet(hash[s][i], &removed); {
				case lookup == keydir.LookupMiss || lookup == keydir.LookupHit && loc != slot(s, i).Loc:
					t.Errorf("key that stays: %v %x", lookup, uint64(loc))
					return
				case lookup == keydir.LookupHit:
					sure.Add(1)
				}
			}
		})
	}
	var waves atomic.Uint64
	end := time.Now().Add(time.Second)
	for s := range stripes {
		writers.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				for i := stay; i < all; i++ {
					d.Insert(hash[s][i], slot(s, i))
				}
				for i := stay; i < all; i++ {
					d.Delete(hash[s][i], slot(s, i))
				}
				waves.Add(1)
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	t.Logf("%d looks were sure, stripes grew and shrank %d times", sure.Load(), waves.Load())
	if sure.Load() == 0 || waves.Load() <= stripes {
		t.Error("too few to tell")
	}
	check(t, d)
	for s := range hash {
		for i := range stay {
			d.Delete(hash[s][i], slot(s, i))
		}
	}
	if d.Bytes() != 0 {
		t.Errorf("an empty directory takes %d bytes", d.Bytes())
	}
}
