package bitcask

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
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
