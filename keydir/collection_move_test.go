package keydir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// moveAny moves something of a model: from where it is, or, which must change nothing, from elsewhere or of a name that
// may be missing.
func moveAny[K comparable](t *testing.T, r *rand.Rand, name K, was keydir.Loc, had bool, move func(name K, old, loc keydir.Loc) bool, moved func(keydir.Loc)) {
	t.Helper()
	old, loc := was, keydir.Loc(r.Uint64()|1)
	if r.IntN(3) == 0 || !had {
		old ^= keydir.Loc(1 + r.IntN(2)<<1)
	}
	did := move(name, old, loc)
	if did != (had && old == was) {
		t.Fatalf("move of %v from %d to %d: %v; it is at %d, %v", name, old, loc, did, was, had)
	}
	if did {
		moved(loc)
	}
}

func (m *members) move(t *testing.T, r *rand.Rand, name string) {
	t.Helper()
	was, had := m.all[name]
	moveAny(t, r, name, was.loc, had, m.f.Move, func(loc keydir.Loc) {
		was.loc = loc
		m.all[name] = was
	})
}

func (m *elements) move(t *testing.T, r *rand.Rand, index int64) {
	t.Helper()
	was, had := m.all[index]
	moveAny(t, r, index, was, had, m.f.MoveAt, func(loc keydir.Loc) { m.all[index] = loc })
}

// move moves an entry, and often some that follow it, as a commit does.
func (m *entries) move(t *testing.T, r *rand.Rand, id keydir.StreamID) {
	t.Helper()
	known := m.ids()
	for range 1 + r.IntN(2)*r.IntN(200) {
		was, had := m.all[id]
		moveAny(t, r, id, was, had, m.f.MoveEntry, func(loc keydir.Loc) { m.all[id] = loc })
		for len(known) > 0 && !id.Less(known[0]) {
			known = known[1:]
		}
		if len(known) == 0 {
			return
		}
		if id = known[0]; r.IntN(20) == 0 {
			id = id.Previous()
		}
	}
}

// A record that is moved is found once, from where the one before it was.
func BenchmarkMoveEntry(b *testing.B) {
	seed := keydir.Seed{1, 2}
	d := keydir.NewDirectory(seed)
	f := d.NewCollection(seed.Hash("key"), keydir.Stream, "key")
	n := 0
	id := func(i int) keydir.StreamID { return keydir.StreamID{Ms: uint64(i / 50), Seq: uint64(i % 50)} }
	for b.Loop() {
		for range 100 {
			f.PutEntry(id(n), keydir.Loc(n+1))
			n++
		}
		for i := n - 100; i < n; i++ {
			f.MoveEntry(id(i), keydir.Loc(i+1), keydir.Loc(i+2))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entry")
}
