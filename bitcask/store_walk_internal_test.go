package bitcask

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestWalkOrder: windows of any size, in few segments or many, are put in the order of the log, with all that they had.
func TestWalkOrder(t *testing.T) {
	rng := chance.Rand(t)
	var w Walk
	for range 200 {
		segments, offsets := uint64(1)<<rng.IntN(24), uint64(1)<<rng.IntN(33)
		hashes := map[keydir.Loc]uint64{}
		w.window = w.window[:0]
		for range rng.IntN(1000) {
			loc := keydir.MakeLoc(uint32(rng.Uint64N(segments)), uint32(rng.Uint64N(offsets)), 100)
			if _, ok := hashes[loc]; !ok {
				hashes[loc] = rng.Uint64()
				w.window = append(w.window, walkKey{hashes[loc], loc})
			}
		}
		w.sort()
		if len(w.window) != len(hashes) || !slices.IsSortedFunc(w.window, func(a, b walkKey) int { return cmp.Compare(a.loc, b.loc) }) {
			t.Fatalf("%d locations of %d segments and %d offsets: %x", len(hashes), segments, offsets, w.window)
		}
		for _, k := range w.window {
			if hashes[k.loc] != k.hash {
				t.Errorf("%x has the hash %x, not %x", k.loc, k.hash, hashes[k.loc])
			}
		}
	}
}

// TestWalkLooksUpTimedKeys: a page shows no key with a deadline, without its lock: a reaper has taken the deadline of an expired
// key before it takes the key.
func TestWalkLooksUpTimedKeys(t *testing.T) {
	s := openChunks(t, vfs.NewMem())
	const n = 200
	for i := range n {
		commitTo(t, s, fmt.Sprint(i), func(tx *Tx) {
			if err := tx.PutString(0, fmt.Sprint(i), []byte("v")); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := tx.SetDeadline(0, fmt.Sprint(i), 1); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	var w Walk
	shown, others := map[string]bool{}, 0
	for stripe, gather := w.Stripe(); stripe < keydir.Stripes; stripe, gather = w.Stripe() {
		tx, err := s.BeginStripe(false, stripe)
		if err != nil {
			t.Fatal(err)
		}
		if gather {
			err = tx.Gather(&w, 0, func([]byte, keydir.Type) bool { return true })
		} else {
			var later []uint64
			later, err = tx.Page(&w, 0, func(key, _ []byte) { shown[string(key)] = true })
			others += len(later)
		}
		tx.End()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if shown[fmt.Sprint(i)] != (i%2 != 0) {
			t.Errorf("%d: shown %t", i, shown[fmt.Sprint(i)])
		}
	}
	if others != n/2 {
		t.Errorf("%d keys to be looked up, not %d", others, n/2)
	}
}
