package mergeselect

import (
	"testing"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// TestSurveySeesEverySlotOnce: also where the lock is released, and of keys whose slots share a hash.
func TestSurveySeesEverySlotOnce(t *testing.T) {
	const stripe = 7
	rng := chance.Rand(t)
	hold := Usual.Hold
	for _, most := range []int{0, 1, hold - 1, hold, hold + 1, 5 * hold} {
		ix := &Index{Spaces: new(namespace.Table), Lock: func(int, bool) error { return nil }, Unlock: func(int, bool) {}}
		ix.Spaces.Init(keydir.Seed{})
		sp, err := ix.Spaces.MakeSpace(0)
		if err != nil {
			t.Fatal(err)
		}
		want := map[keydir.Loc]int{}
		for len(want) < most {
			h := rng.Uint64()>>8 | stripe<<56
			for range 1 + rng.IntN(3) {
				slot := keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(1, uint32(len(want)), 1)}
				sp.Dir.Insert(h, slot)
				want[slot.Loc]++
			}
		}
		sv := &liveScan{index: ix, bounds: Usual}
		held, holds := 0, 0
		for from, more := uint64(0), true; more; holds++ {
			var err error
			if from, more, err = sv.hold(sp, stripe, from); err != nil {
				t.Fatal(err)
			}
			held = max(held, len(sv.locs))
			for _, loc := range sv.locs {
				want[loc]--
			}
		}
		for loc, n := range want {
			if n != 0 {
				t.Fatalf("%d slots: %v was seen %d times", most, loc, 1-n)
			}
		}
		if held > hold+3 || holds < most/(hold+3) {
			t.Errorf("%d slots: up to %d with the lock held, in %d pieces", most, held, holds)
		}
	}
}
