package keydir_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// Readers change nothing, so any number may read at a time. The race detector sees to it.
func TestReadersRunTogether(t *testing.T) {
	seed := keydir.Seed{1, 2}
	d := keydir.NewDirectory(seed)
	var keys []string
	for _, n := range []int{0, 1, 10, 1000} {
		for _, typ := range []keydir.Type{keydir.Hash, keydir.Set, keydir.ZSet, keydir.List} {
			key := fmt.Sprint(typ, n)
			keys = append(keys, key)
			f := d.NewCollection(seed.Hash(key), typ, key)
			for i := range n {
				switch typ {
				case keydir.ZSet:
					f.PutScored(fmt.Sprint(i), uint64(i), 1)
				case keydir.List:
					f.PutAt(int64(i), 1)
				default:
					f.Put(fmt.Sprint(i), 1)
				}
			}
		}
	}
	var wait sync.WaitGroup
	for reader := range 4 {
		wait.Go(func() {
			for range 20 {
				for _, key := range keys {
					f, ok := d.FindCollection(seed.Hash(key), key)
					if !ok {
						t.Errorf("collection %q is lost", key)
						return
					}
					readAll(f)
				}
				for stripe := range keydir.Stripes {
					d.Scan(stripe, 0, func(h uint64, s keydir.Slot) bool { d.Find(h, 0); return true })
					d.RandomSlot(stripe, uint64(reader))
					d.StripeLen(stripe)
				}
				d.Len()
				d.LenDeadlines()
				d.Bytes()
			}
		})
	}
	wait.Wait()
}

// readAll calls every method of a collection that reads.
func readAll(f keydir.Collection) {
	f.Type()
	f.Key()
	f.Meta()
	f.Each(func([]byte, keydir.Loc) bool { return true })
	if f.Type() == keydir.List {
		head, tail := f.Bounds()
		f.LocAt(head)
		f.LocAt(tail)
		return
	}
	f.Get("5")
	f.Scan(1<<63, func(uint64, []byte, keydir.Loc) bool { return true })
	if n := f.Len(); n > 0 {
		f.At(n / 2)
	}
	if f.Type() == keydir.ZSet {
		f.Score("5")
		f.Rank(5, "5")
		f.AscendRank(3, func([]byte, uint64) bool { return true })
		f.DescendRank(3, func([]byte, uint64) bool { return true })
	}
}

// Stripes have nothing in common but counters.
func TestStripesRunTogether(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	var wait sync.WaitGroup
	for writer := range 4 {
		wait.Go(func() {
			h := uint64(writer) << 56
			for i := range 300 {
				d.Insert(h+uint64(i)<<40, keydir.Slot{Type: keydir.String, Loc: 1})
				f := d.NewCollection(h, keydir.ZSet, fmt.Sprint(i))
				for k := range i {
					f.PutScored(fmt.Sprint(k), uint64(k), 1)
				}
				if i%2 == 0 {
					d.DropCollection(h, f)
				}
				d.Len()
				d.Bytes()
			}
		})
	}
	wait.Wait()
	check(t, d)
}

// A dropped collection is its holder's own: it may be walked while its stripe changes.
func TestDroppedNeedsNoLock(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	var wait sync.WaitGroup
	for i := range 40 {
		f := d.NewCollection(1, keydir.Hash, "key")
		n := 10 + i*20
		for k := range n {
			f.Put(fmt.Sprint(k), keydir.Loc(k+1))
		}
		x := d.DropCollection(1, f)
		wait.Go(func() {
			got := 0
			x.Each(func(keydir.Loc) bool { got++; return true })
			if got != n || x.Len() != n {
				t.Errorf("dropped %d elements of %d", got, n)
			}
		})
	}
	wait.Wait()
	check(t, d)
}
