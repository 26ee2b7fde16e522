package manifest

import (
	"testing"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestOpenings asks which states of the log the openings in a manifest vouch for.
func TestOpenings(t *testing.T) {
	// a, b and c each found what the one before had written; d did not: records 25 to 29, and 24, are gone, or were
	// never in the copy that it has opened. e wrote nothing, and f began at the same place.
	list := []Opening{{'a', 1}, {'b', 11}, {'c', 24}, {'d', 24}, {'e', 31}, {'f', 31}}
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	m, err := Create(mem, "d", [16]byte{1}, keydir.Seed{})
	must(t, err)
	for _, o := range list {
		must(t, m.Log(EditOpening, o.Body()))
	}
	for _, c := range []struct {
		id   uint64
		seq  uint64
		want bool
	}{
		{'a', 0, true}, {'a', 1, true}, {'a', 10, true}, {'a', 11, false},
		{'b', 9, false}, {'b', 10, true}, {'b', 23, true}, {'b', 24, false},
		{'c', 23, true}, {'c', 24, false}, {'c', 29, false},
		{'d', 30, true}, {'d', 31, false},
		{'e', 30, true}, {'e', 31, false}, {'f', 30, true}, {'f', 31, true}, {'f', 1000, true},
		{'x', 5, false}, {0, 0, false}, {0, 5, false},
	} {
		if got := m.Gave(c.id, c.seq); got != c.want {
			t.Errorf("%c gave %d: %v", rune(c.id), c.seq, got)
		}
	}
	for _, rewritten := range []bool{false, true} {
		if rewritten {
			must(t, m.Rewrite())
		}
		again, err := Read(mem, "d", vfs.ReadOnly, nil)
		must(t, err)
		if again.Features != m.Features || m.Features&FeatureOpenings == 0 || len(again.Openings) != len(list) || again.Openings[3] != list[3] {
			t.Errorf("read again: %v, features %#x", again.Openings, again.Features)
		}
		must(t, again.Close())
	}
	for i := range uint64(MaxOpenings - 2) {
		must(t, m.Log(EditOpening, Opening{1000 + i, 31 + i}.Body()))
	}
	if m.Gave('d', 30) || !m.Gave('f', 30) || m.Gave('f', 31) || len(m.Openings) != MaxOpenings {
		t.Errorf("%d openings, from %v", len(m.Openings), m.Openings[0])
	}
	if !m.Aging('f') || m.Aging(1000+MaxOpenings-3) {
		t.Error("the oldest is not aging, or the newest is")
	}
	must(t, m.Close())
}
