package bitcask

import (
	"testing"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestOpenings asks which states of the log the openings in a manifest vouch for.
func TestOpenings(t *testing.T) {
	// a, b and c each found what the one before had written; d did not: records 25 to 29, and 24, are gone, or were never in
	// the copy that it has opened. e wrote nothing, and f began at the same place.
	list := []opening{{'a', 1}, {'b', 11}, {'c', 24}, {'d', 24}, {'e', 31}, {'f', 31}}
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	m, err := createManifest(mem, "d", [16]byte{1}, keydir.Seed{})
	must(t, err)
	for _, o := range list {
		must(t, m.log(editOpening, o.body()))
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
		if got := m.gave(c.id, c.seq); got != c.want {
			t.Errorf("%c gave %d: %v", rune(c.id), c.seq, got)
		}
	}
	for _, rewritten := range []bool{false, true} {
		if rewritten {
			must(t, m.rewrite())
		}
		again, err := readManifest(mem, "d", vfs.ReadOnly, nil)
		must(t, err)
		if again.features != m.features || m.features&featureOpenings == 0 || len(again.openings) != len(list) || again.openings[3] != list[3] {
			t.Errorf("read again: %v, features %#x", again.openings, again.features)
		}
		must(t, again.close())
	}
	for i := range uint64(maxOpenings - 2) {
		must(t, m.log(editOpening, opening{1000 + i, 31 + i}.body()))
	}
	if m.gave('d', 30) || !m.gave('f', 30) || m.gave('f', 31) || len(m.openings) != maxOpenings {
		t.Errorf("%d openings, from %v", len(m.openings), m.openings[0])
	}
	if !m.aging('f') || m.aging(1000+maxOpenings-3) {
		t.Error("the oldest is not aging, or the newest is")
	}
	must(t, m.close())
}
