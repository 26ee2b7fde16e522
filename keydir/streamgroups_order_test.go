package keydir_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// TestPendingOrder: thousands of pending entries, of several groups and consumers, with ids up to the greatest, and groups
// and consumers with names of any length among them, are found, ranked and removed as in a sorted list.
func TestPendingOrder(t *testing.T) {
	type element struct {
		name  string
		score uint64
	}
	r := chance.Rand(t)
	d := keydir.NewDirectory(keydir.Seed{r.Uint64(), r.Uint64()})
	coll := d.NewCollection(r.Uint64(), keydir.StreamGroups, "s")
	var list []element
	find := func(e element) (int, bool) {
		return slices.BinarySearchFunc(list, e, func(a, b element) int {
			return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name))
		})
	}
	draw := func() element {
		group, consumer := uint32(r.IntN(3)), uint32(r.IntN(3))
		switch r.IntN(50) {
		case 0:
			return element{keydir.GroupElem(string(make([]byte, r.IntN(40)))), keydir.GroupScore(group)}
		case 1:
			return element{keydir.ConsumerElem(group, string(make([]byte, r.IntN(40)))), keydir.ConsumerScore(group, consumer)}
		}
		id := keydir.StreamID{Ms: 1_700_000_000_000 + uint64(r.IntN(2000)), Seq: uint64(r.IntN(3))}
		switch r.IntN(10) {
		case 0:
			id = keydir.StreamID{Ms: 1, Seq: uint64(r.IntN(3 << 20))} // beyond what an abbreviation tells apart
		case 1:
			id = keydir.StreamID{Ms: 1<<44 - 2 + uint64(r.IntN(4)), Seq: uint64(r.IntN(4))}
		case 2:
			id = keydir.StreamID{Ms: keydir.MaxStreamID.Ms - uint64(r.IntN(2)), Seq: keydir.MaxStreamID.Seq - uint64(r.IntN(2))}
		}
		return element{keydir.PendingElem(group, id), keydir.PendingScore(group, consumer)}
	}
	for step := range 20_000 {
		e := draw()
		if old, _, had := coll.Score(e.name); had { // perhaps of another consumer
			at, _ := find(element{e.name, old})
			list = slices.Delete(list, at, at+1)
		}
		at, _ := find(e)
		if step%3 == 2 {
			coll.DeleteScored(e.name)
		} else {
			coll.PutScored(e.name, e.score, 1)
			list = slices.Insert(list, at, e)
		}
		if got := coll.Rank(e.score, e.name); got != at {
			t.Fatalf("step %d: %q of %x has rank %d, want %d", step, e.name, e.score, got, at)
		}
		if end, _ := find(element{"", e.score + 1}); coll.Rank(e.score+1, "") != end {
			t.Fatalf("step %d: the rank after %x is not %d", step, e.score, end)
		}
	}
	i := 0
	coll.AscendRank(0, func(elem []byte, score uint64) bool {
		if (element{string(elem), score}) != list[i] {
			t.Fatalf("%d: %q of %x, want %v", i, elem, score, list[i])
		}
		i++
		return true
	})
	if i != len(list) || coll.Len() != i {
		t.Errorf("%d elements, want %d", i, len(list))
	}
	check(t, d)
}
