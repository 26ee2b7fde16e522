package structures_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stavedb/stave/structures"
)

func TestPutRange(t *testing.T) {
	m := newMemory()
	addAll(t, m, "z", "a=1 b=2 c=3 d=4")
	for _, tt := range []struct {
		r    structures.Range
		want string
	}{
		{structures.RankRange{Start: 1, Stop: 2}, "b=2 c=3"},
		{structures.RankRange{Start: 0, Stop: 0, Reverse: true}, "d=4"},
		{structures.ScoreRange{Min: 2, Max: math.Inf(1), Count: 2, Reverse: true}, "c=3 d=4"},
		{structures.RankRange{Start: 9, Stop: 10}, ""},
	} {
		must(t, m.PutString("to", nil))
		n, err := m.zset("to").PutRange("z", tt.r)
		must(t, err)
		equal(t, fmt.Sprintf("%+v", tt.r), whole(t, m, "to"), tt.want)
		size, err := m.zset("to").Len()
		must(t, err)
		equal(t, "size", n, size)
	}
	_, err := m.zset("z").PutRange("z", structures.RankRange{Start: -1, Stop: -1})
	must(t, err)
	equal(t, "onto itself", whole(t, m, "z"), "d=4")
}
