package structures_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

// members reads a set whole, in order.
func members(t *testing.T, m *memory, key string) string {
	t.Helper()
	var list []string
	announced := -1
	must(t, m.set(key).Visit(func(n int) { announced = n }, func(member []byte) bool {
		list = append(list, string(member))
		return true
	}))
	n, err := m.set(key).Len()
	must(t, err)
	equal(t, "announced", announced, n)
	equal(t, "visited", len(list), n)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestSet(t *testing.T) {
	m := newMemory()
	s := m.set("s")
	n, err := s.Add([]string{"a", "b", "a", ""})
	must(t, err)
	equal(t, "SADD", n, 3)
	writes := m.writes
	n, err = s.Add([]string{"b", "a"})
	must(t, err)
	equal(t, "SADD of old members", n, 0)
	equal(t, "records written for nothing new", m.writes, writes)
	for member, want := range map[string]bool{"a": true, "": true, "c": false} {
		got, err := s.Has(member)
		must(t, err)
		equal(t, "SISMEMBER "+member, got, want)
	}
	equal(t, "SMEMBERS", members(t, m, "s"), " a b")
	must(t, m.SetDeadline("s", 5))
	n, err = s.Remove([]string{"a", "a", "none", "b", ""})
	must(t, err)
	equal(t, "SREM", n, 3)
	equal(t, "deadlines", len(m.deadlines), 0)
	equal(t, "SMEMBERS of nothing", members(t, m, "s"), "")
	n, err = s.Remove([]string{"a"})
	must(t, err)
	equal(t, "SREM on nothing", n, 0)
	n, err = s.Add(nil)
	must(t, err)
	equal(t, "SADD of nothing", n, 0)
	_, err = s.Add([]string{"x", strings.Repeat("m", 1<<16)})
	equal[error](t, "SADD of a long member", err, structures.ErrNameTooLong)
	equal(t, "SMEMBERS of nothing", members(t, m, "s"), "")
}

func TestPop(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	got, err := m.set("none").Pop(3, rng.Uint64)
	must(t, err)
	equal(t, "SPOP on nothing", len(got), 0)
	if _, err := m.set("none").Pop(-1, rng.Uint64); err != structures.ErrNegative {
		t.Errorf("SPOP -1: %v", err)
	}
	for _, n := range []int{0, 1, 50, 99, 100, 1000} {
		left := map[string]bool{}
		for i := range 100 {
			left[strconv.Itoa(i)] = true
		}
		_, err := m.set("s").Add(slices.Collect(maps.Keys(left)))
		must(t, err)
		must(t, m.SetDeadline("s", 5))
		m.drops, m.deletes = 0, 0
		got, err := m.set("s").Pop(n, rng.Uint64)
		must(t, err)
		equal(t, "SPOP", len(got), min(n, 100))
		for _, member := range got {
			equal(t, member+" was there", left[member], true)
			delete(left, member)
		}
		equal(t, "left", members(t, m, "s"), strings.Join(slices.Sorted(maps.Keys(left)), " "))
		if n >= 100 {
			equal(t, "drops", m.drops, 1)
			equal(t, "deletes", m.deletes, 0)
			equal(t, "deadlines", len(m.deadlines), 0)
		}
		_, err = m.Drop("s")
		must(t, err)
	}
}

func TestRandomMembers(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	for i := range 100 {
		_, err := m.set("s").Add([]string{strconv.Itoa(i)})
		must(t, err)
	}
	draw := func(key string, n int) []string {
		t.Helper()
		var got []string
		announced := -1
		must(t, m.set(key).VisitRandom(n, rng.Uint64, func(n int) { announced = n }, func(member []byte) bool {
			got = append(got, string(member))
			return true
		}))
		equal(t, "announced", announced, len(got))
		return got
	}
	for _, n := range []int{0, 1, 5, 12, 13, 50, 99, 100, 500} {
		got := draw("s", n)
		equal(t, "SRANDMEMBER", len(got), min(n, 100))
		slices.Sort(got)
		equal(t, "different ones", len(slices.Compact(got)), min(n, 100))
	}
	for _, n := range []int{-1, -7, -1000} {
		equal(t, "SRANDMEMBER with repetition", len(draw("s", n)), -n)
	}
	for _, n := range []int{-3, 0, 3} {
		equal(t, "SRANDMEMBER on nothing", len(draw("none", n)), 0)
	}
	stopped := 0
	must(t, m.set("s").VisitRandom(50, rng.Uint64, nil, func([]byte) bool { stopped++; return stopped < 3 }))
	equal(t, "visited until refused", stopped, 3)
}

// Every member has the same chance in each way of drawing. The bounds are
// beyond five standard deviations.
func TestRandomIsFair(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	const size, rounds = 40, 4000
	for i := range size {
		_, err := m.set("s").Add([]string{strconv.Itoa(i)})
		must(t, err)
	}
	for _, n := range []int{1, 4, 20, -4} {
		drawn := map[string]int{}
		for range rounds {
			must(t, m.set("s").VisitRandom(n, rng.Uint64, nil, func(member []byte) bool {
				drawn[string(member)]++
				return true
			}))
		}
		want := rounds * max(n, -n) / size
		for i := range size {
			if got := drawn[strconv.Itoa(i)]; got < want/2 || got > want*2 {
				t.Errorf("count %d: member %d was drawn %d times, expected about %d", n, i, got, want)
			}
		}
	}
}

func TestSetAlgebra(t *testing.T) {
	m := newMemory()
	for key, text := range map[string]string{"a": "1 2 3 4", "b": "3 4 5", "c": "4 6"} {
		_, err := m.set(key).Add(strings.Fields(text))
		must(t, err)
	}
	for _, c := range []struct {
		keys               string
		union, inter, diff string
	}{
		{"a", "1 2 3 4", "1 2 3 4", "1 2 3 4"}, {"a b", "1 2 3 4 5", "3 4", "1 2"}, {"b a", "1 2 3 4 5", "3 4", "5"},
		{"a b c", "1 2 3 4 5 6", "4", "1 2"}, {"a none", "1 2 3 4", "", "1 2 3 4"}, {"none a", "1 2 3 4", "", ""},
		{"a a", "1 2 3 4", "1 2 3 4", ""}, {"none", "", "", ""}, {"c a c b c", "1 2 3 4 5 6", "4", ""},
	} {
		for op, want := range map[structures.SetOp]string{structures.Union: c.union, structures.Inter: c.inter, structures.Diff: c.diff} {
			var got []string
			must(t, structures.Combine(m, op, strings.Fields(c.keys), func(member []byte) bool {
				got = append(got, string(member))
				return true
			}))
			slices.Sort(got)
			equal(t, fmt.Sprintf("operation %d of %s", op, c.keys), strings.Join(got, " "), want)
			n := 0
			must(t, structures.Combine(m, op, strings.Fields(c.keys), func([]byte) bool { n++; return false }))
			equal(t, "visited until refused", n, min(1, len(got)))
		}
	}
	must(t, structures.Combine(m, structures.Union, nil, nil))
}

func TestSetAlgebraAgainstModel(t *testing.T) {
	rng := chance.Rand(t)
	for range 60 {
		m := newMemory()
		var keys []string
		var model []map[string]bool
		for i := range 1 + rng.IntN(4) {
			keys = append(keys, strconv.Itoa(i))
			model = append(model, map[string]bool{})
			for range rng.IntN(400) >> rng.IntN(6) {
				member := strconv.Itoa(rng.IntN(300))
				model[i][member] = true
				_, err := m.set(keys[i]).Add([]string{member})
				must(t, err)
			}
		}
		for _, op := range []structures.SetOp{structures.Union, structures.Inter, structures.Diff} {
			got := map[string]bool{}
			must(t, structures.Combine(m, op, keys, func(member []byte) bool {
				equal(t, "seen before", got[string(member)], false)
				got[string(member)] = true
				return true
			}))
			want := combineModel(op, model)
			if !maps.Equal(got, want) {
				t.Fatalf("operation %d: %v, want %v", op, got, want)
			}
		}
	}
}

func combineModel(op structures.SetOp, sets []map[string]bool) map[string]bool {
	result := maps.Clone(sets[0])
	for _, other := range sets[1:] {
		switch op {
		case structures.Union:
			maps.Copy(result, other)
		case structures.Inter:
			maps.DeleteFunc(result, func(member string, _ bool) bool { return !other[member] })
		case structures.Diff:
			maps.DeleteFunc(result, func(member string, _ bool) bool { return other[member] })
		}
	}
	return result
}

func TestSetScan(t *testing.T) {
	m := newMemory()
	want := map[string]bool{}
	for i := range 1000 {
		want[strconv.Itoa(i)] = true
	}
	_, err := m.set("s").Add(slices.Collect(maps.Keys(want)))
	must(t, err)
	seen, calls := 0, 0
	for cursor := uint64(0); ; {
		cursor, err = m.set("s").Scan(cursor, structures.ScanOptions{}, func(member []byte) {
			equal(t, "not seen before", want[string(member)], true)
			delete(want, string(member))
			seen++
		})
		must(t, err)
		if calls++; cursor == 0 {
			break
		}
	}
	equal(t, "seen", seen, 1000)
	equal(t, "calls", calls, 100)
}

func TestSetAgainstModel(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	model := map[string]bool{}
	for i := range 3000 {
		list := make([]string, rng.IntN(8))
		for i := range list {
			list[i] = strconv.Itoa(rng.IntN(150))
		}
		stepSet(t, rng, m.set("s"), model, list)
		if rng.IntN(20) == 0 {
			m.commit("s")
		}
		if i%20 == 0 {
			if got, want := members(t, m, "s"), strings.Join(slices.Sorted(maps.Keys(model)), " "); got != want {
				t.Fatalf("step %d: %s, want %s", i, got, want)
			}
		}
	}
}

func stepSet(t *testing.T, rng *rand.Rand, s structures.Set, model map[string]bool, list []string) {
	before := len(model)
	switch op := rng.IntN(20); {
	case op < 9:
		n, err := s.Add(list)
		must(t, err)
		for _, member := range list {
			model[member] = true
		}
		equal(t, "SADD", n, len(model)-before)
	case op < 18:
		n, err := s.Remove(list)
		must(t, err)
		for _, member := range list {
			delete(model, member)
		}
		equal(t, "SREM", n, before-len(model))
	default:
		n := rng.IntN(30)
		got, err := s.Pop(n, rng.Uint64)
		must(t, err)
		for _, member := range got {
			delete(model, member)
		}
		equal(t, "SPOP", len(got), min(n, before))
		equal(t, "left", len(model), before-len(got))
	}
}
