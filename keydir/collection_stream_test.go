package keydir_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// idOf gives numbers ids, in their order.
func idOf(i int) keydir.StreamID { return keydir.StreamID{Ms: uint64(i / 4 * 3), Seq: uint64(i % 4)} }

type entries struct {
	f   keydir.Collection
	all map[keydir.StreamID]keydir.Loc
}

func (m *entries) ids() []keydir.StreamID {
	return slices.SortedFunc(maps.Keys(m.all), keydir.StreamID.Compare)
}

func (m *entries) put(t *testing.T, id keydir.StreamID, loc keydir.Loc) {
	t.Helper()
	old, existed := m.f.PutEntry(id, loc)
	if was, had := m.all[id]; existed != had || old != was {
		t.Fatalf("put of %v: had %v %d, want %v %d", id, existed, old, had, was)
	}
	m.all[id] = loc
}

func (m *entries) delete(t *testing.T, id keydir.StreamID) {
	t.Helper()
	old, existed := m.f.DeleteEntry(id)
	if was, had := m.all[id]; existed != had || old != was {
		t.Fatalf("delete of %v: had %v %d, want %v %d", id, existed, old, had, was)
	}
	delete(m.all, id)
}

// trim trims, and half of the time restores and trims again.
func (m *entries) trim(t *testing.T, r *rand.Rand, before keydir.StreamID) {
	t.Helper()
	for {
		trimmed := m.f.TrimEntries(before)
		again := r.IntN(2) == 0
		var locs, want []keydir.Loc
		trimmed.Each(func(loc keydir.Loc) { locs = append(locs, loc) })
		for _, id := range m.ids() {
			if id.Less(before) {
				want = append(want, m.all[id])
				if !again {
					delete(m.all, id)
				}
			}
		}
		if !slices.Equal(locs, want) || trimmed.Len() != len(want) {
			t.Fatalf("trim before %v removes %d entries, want %d", before, len(locs), len(want))
		}
		if !again {
			return
		}
		m.f.RestoreEntries(trimmed)
		m.equal(t, r)
	}
}

func (m *entries) equal(t *testing.T, r *rand.Rand) {
	t.Helper()
	ids := m.ids()
	if m.f.Len() != len(ids) {
		t.Fatalf("%d entries, want %d", m.f.Len(), len(ids))
	}
	first, ok := m.f.FirstEntry()
	last, _ := m.f.LastEntry()
	if ok != (len(ids) > 0) || ok && (first != ids[0] || last != ids[len(ids)-1]) {
		t.Fatalf("from %v to %v, %v", first, last, ok)
	}
	from := idOf(r.IntN(4000))
	i, found := slices.BinarySearchFunc(ids, from, keydir.StreamID.Compare)
	up := ids[i:]
	down := slices.Clone(ids[:i])
	if found {
		down = append(down, from)
	}
	slices.Reverse(down)
	var got []keydir.StreamID
	collect := func(id keydir.StreamID, loc keydir.Loc) bool {
		if loc != m.all[id] {
			t.Fatalf("entry %v is at %d, want %d", id, loc, m.all[id])
		}
		got = append(got, id)
		return true
	}
	if m.f.AscendEntries(from, collect); !slices.Equal(got, up) {
		t.Fatalf("ascending from %v: %v, want %v", from, got, up)
	}
	got = nil
	if m.f.DescendEntries(from, collect); !slices.Equal(got, down) {
		t.Fatalf("descending from %v: %v, want %v", from, got, down)
	}
	after := len(ids) - len(down)
	if n := m.f.CountEntries(from); n != after {
		t.Fatalf("%d entries after %v, want %d", n, from, after)
	}
	for range min(len(ids), 20) {
		i := r.IntN(len(ids))
		if id := m.f.EntryAt(i); id != ids[i] {
			t.Fatalf("entry %d is %v, want %v", i, id, ids[i])
		}
		if loc, ok := m.f.Entry(ids[i]); !ok || loc != m.all[ids[i]] {
			t.Fatalf("entry %v is at %d, %v", ids[i], loc, ok)
		}
	}
	if loc, ok := m.f.Entry(from); ok != found || loc != m.all[from] {
		t.Fatalf("entry %v is at %d, %v", from, loc, ok)
	}
}

func TestStreamAgainstMap(t *testing.T) {
	ids := map[string]func(r *rand.Rand, last keydir.StreamID) keydir.StreamID{
		"one a millisecond": func(_ *rand.Rand, last keydir.StreamID) keydir.StreamID {
			return keydir.StreamID{Ms: last.Ms + 1}
		},
		"many a millisecond": func(r *rand.Rand, last keydir.StreamID) keydir.StreamID {
			return keydir.StreamID{Ms: last.Ms + uint64(r.IntN(2)), Seq: last.Seq + 1}
		},
		"at random": func(r *rand.Rand, _ keydir.StreamID) keydir.StreamID { return idOf(r.IntN(4000)) },
		"far apart": func(r *rand.Rand, _ keydir.StreamID) keydir.StreamID {
			return keydir.StreamID{Ms: r.Uint64() >> r.IntN(64), Seq: r.Uint64() >> r.IntN(64)}
		},
	}
	for name, next := range ids {
		t.Run(name, func(t *testing.T) {
			r, seed := chance.Rand(t), keydir.Seed{1, 2}
			for range rounds(20) {
				d := keydir.NewDirectory(seed)
				m := &entries{d.NewCollection(seed.Hash("key"), keydir.Stream, "key"), map[keydir.StreamID]keydir.Loc{}}
				var last keydir.StreamID
				grow := 40 + r.IntN(59)
				for i := range 1500 {
					if known := m.ids(); len(known) > 0 && r.IntN(100) >= grow {
						id := known[r.IntN(len(known))]
						if r.IntN(30) == 0 {
							m.trim(t, r, id)
						} else {
							m.delete(t, id)
						}
					} else {
						last = next(r, last)
						m.put(t, last, keydir.Loc(i+1))
					}
					if r.IntN(10) == 0 {
						if known := m.ids(); len(known) > 0 {
							m.move(t, r, known[r.IntN(len(known))])
						}
					}
					if r.IntN(50) == 0 {
						m.equal(t, r)
						check(t, d)
					}
				}
				n := reload(t, d, seed, 64, 200)
				equalDirectories(t, n, d)
			}
		})
	}
}

// An entry costs no more than twelve bytes.
func TestStreamMemory(t *testing.T) {
	const n = 100_000
	seed := keydir.Seed{1, 2}
	for name, id := range map[string]func(i int) keydir.StreamID{
		"busy": func(i int) keydir.StreamID {
			return keydir.StreamID{Ms: 1_700_000_000_000 + uint64(i/50), Seq: uint64(i % 50)}
		},
		"quiet": func(i int) keydir.StreamID {
			return keydir.StreamID{Ms: 1_700_000_000_000 + uint64(i*2000+i*7919%2000)}
		},
	} {
		d := keydir.NewDirectory(seed)
		f := d.NewCollection(seed.Hash("key"), keydir.Stream, "key")
		for i := range n {
			f.PutEntry(id(i), keydir.Loc(i+1))
		}
		bytes := float64(f.Bytes()) / n
		t.Logf("%s: %.2f bytes an entry", name, bytes)
		if bytes > 12 {
			t.Errorf("%s: %.2f bytes an entry", name, bytes)
		}
	}
}

func TestStreamIDs(t *testing.T) {
	for _, id := range []keydir.StreamID{{}, {Ms: 1}, {Seq: 1}, {Ms: 1, Seq: 1<<64 - 1}, keydir.MaxStreamID} {
		if next := id.Next(); next.Previous() != id {
			t.Errorf("the id before %v is %v, not %v", next, next.Previous(), id)
		}
	}
}
