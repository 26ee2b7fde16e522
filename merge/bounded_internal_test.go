package merge

import (
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask"
)

// TestPickBounded: near the bound a merge takes what has the most dead bytes, however few; and in turns, while tombstones take too much,
// what holds them back.
func TestPickBounded(t *testing.T) {
	const segmentSize, bound = 1000, 10_000
	list := []bitcask.SegmentInfo{
		{ID: 1, Bytes: 1000, LiveBytes: 1000, Sealed: true, Hidable: 5},
		{ID: 2, Bytes: 1000, LiveBytes: 850, Hiding: 400, Sealed: true, Hidable: 900},
		{ID: 3, Bytes: 1000, LiveBytes: 700, Hiding: 200, Sealed: true, Hidable: 800},
		{ID: 4, Bytes: 400, LiveBytes: 10, Hidable: 1000},
	}
	for _, tt := range []struct {
		refresh bool
		hiding  int64 // of the second
		want    []uint32
	}{
		{false, 426, []uint32{3}}, {false, 424, []uint32{3}}, {true, 424, []uint32{3}}, {true, 426, []uint32{1}},
	} {
		list[1].Hiding = tt.hiding
		plan := Policy{}.pickBounded(list, segmentSize, bound, tt.refresh)
		if ids := plan.IDs(); !slices.Equal(ids, tt.want) || !plan.Triggered {
			t.Errorf("%+v: %v", tt, ids)
		}
	}
	if plan := (Policy{}).Pick(list, segmentSize, false); plan.Triggered {
		t.Errorf("without a bound: %v", plan.IDs())
	}
}
