package merge_test

import (
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/merge"
)

func segment(id uint32, size, live int64) bitcask.SegmentInfo {
	return bitcask.SegmentInfo{ID: id, Bytes: size, LiveBytes: live, Records: 1, Sealed: true}
}

func TestPick(t *testing.T) {
	const size = 1000 // of a segment; small is below 62
	active := segment(9, 900, 0)
	active.Sealed = false
	for name, tt := range map[string]struct {
		segments  []bitcask.SegmentInfo
		all       bool
		triggered bool
		want      []uint32
	}{
		"nothing to do":                {[]bitcask.SegmentInfo{segment(1, 1000, 950), segment(2, 1000, 700)}, false, false, nil},
		"garbage, but no trigger":      {[]bitcask.SegmentInfo{segment(1, 1000, 550)}, false, false, []uint32{1}},
		"a trigger takes others":       {[]bitcask.SegmentInfo{segment(1, 1000, 300), segment(2, 1000, 550), segment(3, 1000, 700)}, false, true, []uint32{1, 2}},
		"the active one is left":       {[]bitcask.SegmentInfo{segment(1, 1000, 300), active}, false, true, []uint32{1}},
		"nothing live at all":          {[]bitcask.SegmentInfo{segment(1, 1000, 0)}, false, true, []uint32{1}},
		"small ones are joined":        {[]bitcask.SegmentInfo{segment(1, 50, 50), segment(2, 50, 50)}, false, false, []uint32{1, 2}},
		"many small ones are trigger":  {slices.Repeat([]bitcask.SegmentInfo{segment(1, 50, 50)}, 8), false, true, []uint32{1, 1, 1, 1, 1, 1, 1, 1}},
		"the output fits one segment":  {[]bitcask.SegmentInfo{segment(1, 1000, 590), segment(2, 1000, 400), segment(3, 1000, 580)}, false, true, []uint32{2, 3}},
		"all takes all that is sealed": {[]bitcask.SegmentInfo{segment(1, 1000, 1000), segment(2, 1000, 900), active}, true, true, []uint32{1, 2}},
	} {
		plan := merge.Policy{}.Pick(tt.segments, size, tt.all)
		if got := plan.IDs(); !slices.Equal(got, tt.want) || plan.Triggered != tt.triggered {
			t.Errorf("%s: takes %v, triggered %v; want %v, %v: %+v", name, got, plan.Triggered, tt.want, tt.triggered, plan.Choices)
		}
		if plan.Reclaims != plan.Reads-plan.Writes {
			t.Errorf("%s: reads %d, writes %d, reclaims %d", name, plan.Reads, plan.Writes, plan.Reclaims)
		}
	}
}
