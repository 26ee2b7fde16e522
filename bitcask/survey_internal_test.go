package bitcask

import (
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestEachSlotSeesEverySlotOnce: also where the lock is let go of, and of keys whose slots share a hash.
func TestEachSlotSeesEverySlotOnce(t *testing.T) {
	const stripe = 7
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, most := range []int{0, 1, surveyHold - 1, surveyHold, surveyHold + 1, 5 * surveyHold} {
		s := openChunks(t, vfs.NewMem())
		want := map[keydir.Slot]int{}
		number := uint32(1)
		for ns := range 3 {
			sp, err := s.spaces.make(ns)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < most; {
				h := rng.Uint64()>>8 | stripe<<56
				if keydir.StripeOf(h) != stripe {
					t.Fatal("another stripe")
				}
				for range 1 + rng.IntN(3) {
					slot := keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(1, number, 1)}
					sp.dir.Insert(h, slot)
					want[slot]++
					number++
					i++
				}
			}
		}
		held, holds := 0, 0
		err := s.eachSlot(stripe, func(slot keydir.Slot) { want[slot]-- }, func(n int) error {
			held, holds = max(held, n), holds+1
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for slot, n := range want {
			if n != 0 {
				t.Fatalf("%d slots a space: %v was seen %d times", most, slot, 1-n)
			}
		}
		if held > surveyHold+3 || most > surveyHold && holds < 3*most/surveyHold {
			t.Errorf("%d slots a space: up to %d with the lock held, in %d pieces", most, held, holds)
		}
		for _, sp := range s.spaces.now.Load().byID { // the slots point to nothing
			sp.dir = keydir.NewDirectory(s.man.seed)
		}
	}
}
