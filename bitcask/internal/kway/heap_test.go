package kway_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/kway"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestMergeIsSorted merges sorted lists, which join at different times, as replaying does.
func TestMergeIsSorted(t *testing.T) {
	r := chance.Rand(t)
	for range 200 {
		var want, got []uint64
		var waiting [][]uint64
		for range r.IntN(9) {
			list := draw(r)
			waiting, want = append(waiting, list), append(want, list...)
		}
		slices.Sort(want)
		slices.SortFunc(waiting, func(a, b []uint64) int { return int(a[0]) - int(b[0]) })
		var h kway.Heap[*[]uint64]
		for len(waiting) > 0 || h.Len() > 0 {
			if len(waiting) > 0 && (h.Due(waiting[0][0]) || r.IntN(3) == 0) {
				h.Push(&waiting[0], waiting[0][0])
				waiting = waiting[1:]
				continue
			}
			list, seq := h.First()
			if (*list)[0] != seq || h.Second() < seq {
				t.Fatalf("the first has %d, not %d; the second %d", (*list)[0], seq, h.Second())
			}
			got = append(got, seq)
			if *list = (*list)[1:]; len(*list) == 0 {
				h.Drop()
			} else {
				h.Advance((*list)[0])
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// draw returns a sorted list of one to forty numbers, some of them equal.
func draw(r *rand.Rand) []uint64 {
	list := make([]uint64, 1+r.IntN(40))
	for i := range list {
		list[i] = r.Uint64N(60)
	}
	slices.Sort(list)
	return list
}

func TestSecond(t *testing.T) {
	var h kway.Heap[string]
	h.Push("b", 2)
	if got := h.Second(); got != math.MaxUint64 {
		t.Errorf("of one: %d", got)
	}
	h.Push("c", 3)
	h.Push("a", 1)
	if first, seq := h.First(); first != "a" || seq != 1 || h.Second() != 2 {
		t.Errorf("%s %d, then %d", first, seq, h.Second())
	}
}
