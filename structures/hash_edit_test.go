package structures_test

import (
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

func TestHashGetAndDelete(t *testing.T) {
	m := newMemory()
	h := m.hash("h")
	_, err := h.PutAll([]structures.Field{{Name: "a", Value: []byte("1")}, {Name: "b"}, {Name: "c", Value: []byte("3")}})
	must(t, err)
	must(t, m.SetDeadline("h", 500))
	var got []string
	take := func(fields ...string) []string {
		got = nil
		must(t, h.GetAndDelete(fields, func(i int, value []byte) bool {
			if value == nil {
				got = append(got, fields[i]+" none")
			} else {
				got = append(got, fields[i]+" "+string(value))
			}
			return true
		}))
		return got
	}
	if want := []string{"a 1", "x none", "a none", "b "}; !slices.Equal(take("a", "x", "a", "b"), want) {
		t.Errorf("got %q, want %q", got, want)
	}
	equal(t, "deadline of what is left", m.deadlines["h"], int64(500))
	if want := []string{"c 3", "c none"}; !slices.Equal(take("c", "c"), want) {
		t.Errorf("got %q, want %q", got, want)
	}
	typ, err := structures.Key{Txn: m, Key: "h"}.Type()
	must(t, err)
	equal(t, "type of an emptied hash", typ, keydir.None)
	if _, set := m.deadlines["h"]; set {
		t.Error("an emptied hash leaves its deadline behind")
	}
	if want := []string{"c none"}; !slices.Equal(take("c"), want) {
		t.Errorf("of nothing: %q, want %q", got, want)
	}
}

func TestHashRandom(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	h := m.hash("h")
	all := map[string]string{}
	for _, name := range []string{"", "a", "b", "c", "\x00", "__len__"} {
		all[name] = "value of " + name
		_, err := h.Put(name, []byte(all[name]))
		must(t, err)
	}
	for _, n := range []int{0, 1, 5, 6, 100, -1, -50} {
		want := min(n, len(all))
		if n < 0 {
			want = -n
		}
		announced, seen := -1, map[string]int{}
		must(t, h.VisitRandom(n, rng.Uint64, func(n int) { announced = n }, func(name, value []byte) bool {
			equal(t, "value", string(value), all[string(name)])
			seen[string(name)]++
			return true
		}))
		total := 0
		for name, times := range seen {
			if n > 0 && times > 1 {
				t.Errorf("%d fields: %q comes %d times", n, name, times)
			}
			total += times
		}
		equal(t, "announced", announced, want)
		equal(t, "visited", total, want)
		names := 0
		must(t, h.VisitRandomFields(n, rng.Uint64, nil, func([]byte) bool { names++; return true }))
		equal(t, "names", names, want)
	}
	length, err := h.ValueLen("a")
	must(t, err)
	equal(t, "length of a value", length, len("value of a"))
	if length, err := h.ValueLen("none"); length != 0 || err != nil {
		t.Errorf("length of nothing = %d, %v", length, err)
	}
}
