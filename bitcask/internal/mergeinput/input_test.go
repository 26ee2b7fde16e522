package mergeinput_test

import (
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// A released input has only lower sequences than those that stay: else a dropped tombstone would
// leave what it hid.
func TestSpentInputs(t *testing.T) {
	for name, tt := range map[string]struct {
		ranges [][2]uint64
		seq    uint64
		want   []uint32
	}{
		"nothing yet":               {[][2]uint64{{1, 10}, {11, 20}}, 10, nil},
		"one after another":         {[][2]uint64{{1, 10}, {11, 20}, {21, 30}}, 25, []uint32{0, 1}},
		"all":                       {[][2]uint64{{1, 10}, {5, 20}}, 21, []uint32{0, 1}},
		"overlap with what stays":   {[][2]uint64{{1, 10}, {8, 20}, {21, 30}}, 15, nil},
		"overlapping ones together": {[][2]uint64{{1, 10}, {8, 20}, {21, 30}}, 25, []uint32{0, 1}},
		"one within another":        {[][2]uint64{{1, 30}, {8, 20}, {31, 40}}, 25, nil},
		"overlap of a chain":        {[][2]uint64{{1, 5}, {6, 15}, {12, 22}, {20, 40}}, 30, []uint32{0}},
	} {
		var list []*segment.Segment
		for i, r := range tt.ranges {
			list = append(list, &segment.Segment{ID: uint32(i), Footer: format.Footer{Records: 1, MinSeq: r[0], MaxSeq: r[1]}})
		}
		q := mergeinput.New(&mergeinput.Environment{}, list, nil)
		var got []uint32
		for _, in := range q.Releasable(tt.seq) {
			got = append(got, in.Segment.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: before sequence %d segments %v go, want %v", name, tt.seq, got, tt.want)
		}
		if len(got)+len(q.Releasable(^uint64(0))) != len(list) {
			t.Errorf("%s: not all go in the end", name)
		}
	}
}
