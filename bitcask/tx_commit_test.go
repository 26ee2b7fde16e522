package bitcask_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestCommitsOfManyElements: whatever share of a collection a commit writes, some of it twice or only to delete it again,
// alone or in turns with another collection, each element is found where its record is, and as many bytes count as live as
// after a replay.
func TestCommitsOfManyElements(t *testing.T) {
	rng := chance.Rand(t)
	types := []keydir.Type{keydir.Hash, keydir.Set, keydir.ZSet}
	for round := range 6 {
		mem := vfs.NewMem()
		s := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: mem, YieldEvery: 1}))
		all := []map[string]uint64{{}, {}}
		kinds := []keydir.Type{types[rng.IntN(3)], types[rng.IntN(3)]}
		for range 5 {
			tx, err := s.Begin(true, "key0", "key1")
			if err != nil {
				t.Fatal(err)
			}
			run := []int{1, 300, 3000}[rng.IntN(3)]
			which := 0
			for i := range rng.IntN(6000) {
				if i%run == 0 {
					which = rng.IntN(2)
				}
				key, name, number := fmt.Sprint("key", which), fmt.Sprint(rng.IntN(4000)), rng.Uint64()
				coll, err := tx.Collection(0, key, kinds[which])
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case rng.IntN(8) == 0 && coll.Len() > 1:
					_, err = tx.DeleteElem(0, key, coll, name)
					delete(all[which], name)
				case kinds[which] == keydir.ZSet:
					err = tx.PutScored(0, key, coll, name, number)
					all[which][name] = number
				default:
					err = tx.PutElem(0, key, coll, name, fmt.Append(nil, number))
					all[which][name] = number
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			wantElements(t, tx, kinds, all)
			tx.Recycle()
		}
		live := s.Stats().LiveBytes
		check(t, s)
		again := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: mem.Clone(), NoIndex: true, NoHints: true}))
		if n := again.Stats().LiveBytes; n != live {
			t.Errorf("round %d: %d bytes are live, %d after a replay", round, live, n)
		}
	}
}

// wantElements compares the values, or scores, of two collections.
func wantElements(t *testing.T, tx *bitcask.Tx, types []keydir.Type, all []map[string]uint64) {
	t.Helper()
	for i, want := range all {
		if len(want) == 0 {
			continue
		}
		key := fmt.Sprint("key", i)
		coll, err := tx.Collection(0, key, types[i])
		if err != nil || coll.Len() != len(want) {
			t.Fatalf("%s has %d elements, want %d: %v", key, coll.Len(), len(want), err)
		}
		for name, number := range want {
			loc, _ := coll.Get(name)
			value, err := tx.Value(nil, 0, key, name, types[i], loc)
			if err != nil || types[i] != keydir.ZSet && string(value) != fmt.Sprint(number) {
				t.Fatalf("%s of %s is %q, want %d: %v", name, key, value, number, err)
			}
			if loc.Pending() || loc == 0 {
				t.Fatalf("%s of %s is at %v", name, key, loc)
			}
		}
	}
}
