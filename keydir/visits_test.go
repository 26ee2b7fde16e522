package keydir_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// sweepAll is a turn of the hand over a directory, some slots at a time. It returns the hashes that it was given.
func sweepAll(d *keydir.Directory, r *rand.Rand, everyone bool) (taken []uint64) {
	for from := uint64(0); ; {
		batch := 1 + r.IntN(20)
		from = d.Sweep(keydir.StripeOf(from), from, 1+r.IntN(200), everyone, func(h uint64, s keydir.Slot) bool {
			taken = append(taken, h)
			batch--
			return batch > 0
		})
		if from == 0 {
			return taken
		}
	}
}

// The hand goes over keys in the order of their hashes, each once in a turn. It spares those that have been used, for one
// turn, and few of the others.
func TestSweep(t *testing.T) {
	r := chance.Rand(t)
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	d.TrackVisits(true)
	var all, used, others []uint64
	for i := range 20_000 {
		h := r.Uint64() &^ 7
		all = append(all, h)
		d.Insert(h, keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)})
		if i%10 == 0 {
			d.Insert(h, keydir.Slot{Type: keydir.Deadline, Loc: keydir.Loc(i + 1)}) // stands alongside
		}
		if i%500 == 0 {
			d.TrackVisits(true)
		}
	}
	d.TrackVisits(true)
	for i, h := range all {
		if d.Visited(h) {
			t.Fatalf("%x was not used", h)
		}
		if i%3 == 0 {
			used = append(used, h)
		} else {
			others = append(others, h)
		}
	}
	for _, h := range used {
		d.Visit(h)
	}
	slices.Sort(all)
	first := sweepAll(d, r, false)
	if !slices.IsSorted(first) {
		t.Error("not in the order of hashes")
	}
	taken := map[uint64]bool{}
	for _, h := range first {
		if taken[h] {
			t.Errorf("%x twice in a turn", h)
		}
		taken[h] = true
	}
	for _, h := range used {
		if taken[h] {
			t.Errorf("%x was used, and is taken", h)
		}
	}
	if len(first) < len(others)*3/4 {
		t.Errorf("%d of %d that were not used are taken", len(first), len(others))
	}
	if second := sweepAll(d, r, false); !slices.Equal(second, all) {
		t.Errorf("%d of %d are taken that nobody has used for a turn", len(second), len(all))
	}
	d.Visit(all[5])
	if every := sweepAll(d, r, true); !slices.Equal(every, all) || !d.Visited(all[5]) {
		t.Errorf("%d of %d are taken without regard to use, which must stay noted", len(every), len(all))
	}
	d.AgeVisits()
	d.Visit(all[5000])
	if !d.Visited(all[5]) || !d.Visited(all[5000]) || d.Visited(all[10_000]) {
		t.Error("a visit of the turn before is forgotten, or one is noted that was not")
	}
	if d.AgeVisits(); d.Visited(all[5]) || !d.Visited(all[5000]) {
		t.Error("a visit is not two turns old, or is forgotten after one")
	}
	d.TrackVisits(false)
	d.Visit(all[5])
	if d.Visited(all[5]) {
		t.Error("noted, though nobody wants to know")
	}
	if every := sweepAll(d, r, false); !slices.Equal(every, all) {
		t.Error("without visits the hand takes all")
	}
}

// What was used stays so while the number of keys, and with it that of the bits, grows and falls.
func TestVisitsAreResized(t *testing.T) {
	r := chance.Rand(t)
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	var all []uint64
	slot := func(i int) keydir.Slot { return keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)} }
	for i := range 30_000 {
		h := r.Uint64() &^ 7
		all = append(all, h)
		d.Insert(h, slot(i))
		if i%100 == 0 {
			d.TrackVisits(true)
			d.Visit(all[i])
		}
	}
	sizes := map[int64]bool{}
	visited := func() {
		t.Helper()
		for i := 0; i < len(all); i += 100 {
			if !d.Visited(all[i]) {
				t.Fatalf("key %d of %d is not noted any more", i, d.Len())
			}
		}
	}
	visited()
	for i := len(all) - 1; i >= 0; i-- {
		d.Delete(all[i], slot(i))
		if i%1000 == 0 {
			before := d.Bytes()
			d.TrackVisits(true)
			sizes[before-d.Bytes()] = true
			visited()
		}
	}
	if len(sizes) < 4 {
		t.Errorf("the bits were made fewer %d times", len(sizes)-1)
	}
}

// Visits are noted while others are taken back, and the bits replaced: without a lock.
func TestVisitsBesideTheHand(t *testing.T) {
	seed := chance.Seed(t)
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	d.TrackVisits(true)
	var wait sync.WaitGroup
	for reader := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(reader)))
		wait.Go(func() {
			for range 20_000 {
				h := r.Uint64()
				d.Visit(h)
				d.Visited(h)
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range 3000 {
		d.Insert(r.Uint64()&^7, keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)})
		if i%100 == 0 {
			d.TrackVisits(true)
			d.AgeVisits()
		}
	}
	sweepAll(d, r, false)
	wait.Wait()
}

// What entries take falls with each that goes, other than the memory of the tables.
func TestEntryBytes(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	const n = 1000
	hash := func(i int) uint64 { return uint64(i) << 48 }
	for i := range n {
		d.Insert(hash(i), keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)})
	}
	if got := d.EntryBytes(); got != n*keydir.EntryBytes {
		t.Errorf("%d bytes of %d slots", got, n)
	}
	for i := range n {
		d.Delete(hash(i), keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)})
		if got, want := d.EntryBytes(), int64(n-i-1)*keydir.EntryBytes; got != want {
			t.Fatalf("%d bytes, want %d", got, want)
		}
	}
	f := d.NewCollection(hash(1), keydir.Hash, "key")
	for i := range n {
		f.Put(string(rune(i)), 1)
	}
	if got := d.EntryBytes(); got < int64(f.Bytes()) || got > 2*int64(f.Bytes()) {
		t.Errorf("%d bytes with a collection of %d", got, f.Bytes())
	}
	d.DropCollection(hash(1), f)
	if got := d.EntryBytes(); got > 2048 {
		t.Errorf("%d bytes of nothing", got)
	}
}
