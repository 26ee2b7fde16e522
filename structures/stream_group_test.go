package structures_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/structures"
)

// progress is how far a group is.
func progress(t *testing.T, g structures.StreamGroup) string {
	t.Helper()
	info, err := g.Info()
	must(t, err)
	return fmt.Sprintf("%v read %d lag %d", info.Last, info.Read, info.Lag)
}

// TestStreamGroupProgress says how many entries a group has read, and how many there are still, as Redis 7.4 does: -1
// is unknown.
func TestStreamGroupProgress(t *testing.T) {
	m := newMemory()
	s := structures.Stream{Txn: m, Key: "s"}
	g := structures.StreamGroup{Txn: m, Key: "s", Name: "g", Now: 5}
	add := func(ms ...uint64) func() {
		return func() {
			for _, ms := range ms {
				id := structures.StreamNewID{Given: true, ID: structures.StreamID{Ms: ms}}
				_, _, err := s.Add([][]byte{[]byte("f"), nil}, structures.StreamAddOptions{ID: id})
				must(t, err)
			}
		}
	}
	read := func(n int) func() {
		return func() {
			must(t, g.Read(structures.StreamGroupRead{Consumer: "c", Count: n}, func(structures.StreamID, [][]byte) bool { return true }))
		}
	}
	remove := func(ms uint64) func() {
		return func() {
			err := s.Delete([]structures.StreamID{{Ms: ms}}, structures.KeepReferences, func(structures.StreamDeletion) {})
			must(t, err)
		}
	}
	trim := func(left int) func() {
		return func() {
			_, err := s.Trim(structures.StreamTrim{MaxLen: left})
			must(t, err)
		}
	}
	set := func(ms uint64) func() {
		return func() { must(t, g.Set(structures.StreamGroupStart{ID: structures.StreamID{Ms: ms}})) }
	}
	three := uint64(3)
	must(t, g.Create(structures.StreamGroupStart{Make: true}))
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "0-0 read -1 lag 0"},
		{add(1, 2, 3, 4), "0-0 read -1 lag 4"},
		{read(1), "1-0 read 1 lag 3"},
		{read(2), "3-0 read 3 lag 1"},
		{add(5, 6), "3-0 read 3 lag 3"},
		{remove(2), "3-0 read 3 lag 3"}, // before what is to come
		{remove(5), "3-0 read 3 lag -1"},
		{read(1), "4-0 read -1 lag -1"},
		{read(1), "6-0 read 6 lag 0"},
		{add(7, 8), "6-0 read 6 lag 2"},
		{set(1), "1-0 read -1 lag -1"},
		{set(0), "0-0 read -1 lag -1"},
		{trim(2), "0-0 read -1 lag 2"}, // nothing is deleted in what is left
		{read(1), "7-0 read 7 lag 1"},
		{set(8), "8-0 read -1 lag 0"},
		{set(9), "9-0 read -1 lag -1"},
		{trim(0), "9-0 read -1 lag 0"},
		{func() { must(t, g.Set(structures.StreamGroupStart{ID: structures.StreamID{Ms: 8}, Read: &three})) }, "8-0 read 3 lag 0"},
		{add(10), "8-0 read 3 lag 1"},
	} {
		step.do()
		if got := progress(t, g); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

// TestConsumerTimes draws when a delivery notes the times of its consumer: not within ActiveStep of the last one, and
// always after the clock was set back.
func TestConsumerTimes(t *testing.T) {
	m := newMemory()
	s := structures.Stream{Txn: m, Key: "s"}
	g := structures.StreamGroup{Txn: m, Key: "s", Name: "g"}
	must(t, g.Create(structures.StreamGroupStart{Make: true}))
	for _, step := range []struct {
		now, seen, active int64
		found             bool
	}{
		{1000, 1000, -1, false},
		{1003, 1003, 1003, true},
		{1003 + structures.ActiveStep - 1, 1003, 1003, true},
		{1003 + structures.ActiveStep, 1013, 1013, true},
		{1012, 1012, 1012, true}, // the clock was set back
		{1012 + structures.SeenStep - 1, 1012, 1012, false},
		{1012 + structures.SeenStep, 11012, 1012, false},
		{1013 + structures.SeenStep, 11013, 11013, true},
	} {
		if step.found {
			_, _, err := s.Add([][]byte{[]byte("f"), nil}, structures.StreamAddOptions{})
			must(t, err)
		}
		found := false
		g.Now = step.now
		must(t, g.Read(structures.StreamGroupRead{Consumer: "c"}, func(structures.StreamID, [][]byte) bool { found = true; return true }))
		list, err := g.Consumers()
		must(t, err)
		if c := list[0]; found != step.found || c.Seen != step.seen || c.Active != step.active {
			t.Errorf("at %d: found %v, seen %d, active %d; want %v, %d, %d", step.now, found, c.Seen, c.Active, step.found, step.seen, step.active)
		}
	}
}
