package structures_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

func values(text string) [][]byte {
	var list [][]byte
	for _, word := range strings.Fields(text) {
		list = append(list, []byte(word))
	}
	return list
}

// elements reads a list whole.
func elements(t *testing.T, m *memory, key string) string {
	t.Helper()
	var words []string
	announced := -1
	must(t, m.list(key).Visit(0, -1, func(n int) { announced = n }, func(value []byte) bool {
		words = append(words, string(value))
		return true
	}))
	n, err := m.list(key).Len()
	must(t, err)
	equal(t, "announced", announced, n)
	equal(t, "visited", len(words), n)
	return strings.Join(words, " ")
}

// fill makes the key a list of words, some of which were pushed in front.
func fill(t *testing.T, m *memory, key, text string) {
	t.Helper()
	_, err := m.Drop(key)
	must(t, err)
	all := values(text)
	half := len(all) / 2
	front := slices.Clone(all[:half])
	slices.Reverse(front)
	_, err = m.list(key).Push(structures.Front, front, 0)
	must(t, err)
	_, err = m.list(key).Push(structures.Back, all[half:], 0)
	must(t, err)
	m.writes, m.deletes, m.drops, m.reads = 0, 0, 0, 0
}

func TestPushAndPop(t *testing.T) {
	m := newMemory()
	l := m.list("l")
	n, err := l.Push(structures.Front, values("x"), structures.IfPresent)
	must(t, err)
	equal(t, "LPUSHX on nothing", n, 0)
	n, err = l.Push(structures.Back, nil, 0)
	must(t, err)
	equal(t, "RPUSH of nothing", n, 0)
	n, err = l.Push(structures.Front, values("a b c"), 0)
	must(t, err)
	equal(t, "LPUSH", n, 3)
	n, err = l.Push(structures.Back, values("d e"), 0)
	must(t, err)
	equal(t, "RPUSH", n, 5)
	n, err = l.Push(structures.Back, values("f"), structures.IfPresent)
	must(t, err)
	equal(t, "RPUSHX", n, 6)
	equal(t, "list", elements(t, m, "l"), "c b a d e f")
	must(t, m.SetDeadline("l", 5))
	pop := func(end structures.End, n int, want string, wantOK bool) {
		t.Helper()
		got, ok, err := l.Pop(end, n)
		must(t, err)
		equal(t, "popped", fmt.Sprintf("%s", got), want)
		equal(t, "existed", ok, wantOK)
		equal(t, "nil", got == nil, !wantOK)
	}
	pop(structures.Front, 0, "[]", true)
	pop(structures.Front, 2, "[c b]", true)
	pop(structures.Back, 3, "[f e d]", true)
	equal(t, "deadline", m.deadlines["l"], 5)
	drops := m.drops
	pop(structures.Back, math.MaxInt, "[a]", true)
	equal(t, "drops", m.drops, drops+1)
	equal(t, "deadlines", len(m.deadlines), 0)
	pop(structures.Front, 1, "[]", false)
	if _, _, err := l.Pop(structures.Front, -1); err != structures.ErrNegative {
		t.Errorf("LPOP -1: %v", err)
	}
	_, err = l.Push(structures.Back, [][]byte{{}}, 0)
	must(t, err)
	got, _, err := l.Pop(structures.Back, 1)
	must(t, err)
	equal(t, "an empty element is not nil", got[0] != nil, true)
}

func TestPositions(t *testing.T) {
	m := newMemory()
	fill(t, m, "l", "a b c d e")
	l := m.list("l")
	for position, want := range map[int64]string{
		0: "a", 4: "e", -1: "e", -5: "a", 5: "", -6: "", math.MaxInt64: "", math.MinInt64: "",
	} {
		got, ok, err := l.At([]byte(">"), position)
		must(t, err)
		equal(t, "LINDEX "+strconv.FormatInt(position, 10), string(got), ">"+want)
		equal(t, "found", ok, want != "")
	}
	for _, c := range []struct {
		start, stop int64
		want        string
	}{
		{0, -1, "a b c d e"}, {1, 3, "b c d"}, {-2, -1, "d e"}, {-100, 1, "a b"}, {3, 100, "d e"}, {3, 1, ""}, {5, 9, ""},
		{0, -100, ""}, {-1, 0, ""}, {math.MinInt64, math.MaxInt64, "a b c d e"}, {math.MaxInt64, math.MinInt64, ""},
	} {
		fill(t, m, "l", "a b c d e")
		var words []string
		must(t, l.Visit(c.start, c.stop, nil, func(v []byte) bool { words = append(words, string(v)); return true }))
		equal(t, fmt.Sprint("LRANGE ", c.start, c.stop), strings.Join(words, " "), c.want)
		must(t, l.Trim(c.start, c.stop))
		equal(t, fmt.Sprint("LTRIM ", c.start, c.stop), elements(t, m, "l"), c.want)
		equal(t, "writes", m.writes, 0)
		equal(t, "reads of LTRIM", m.reads, 2*len(words))
		if c.want != "" {
			equal(t, "deletes", m.deletes, 5-len(words))
		} else {
			equal(t, "drops", m.drops, 1)
			equal(t, "deletes", m.deletes, 0)
		}
	}
	fill(t, m, "l", "a b c")
	for position, want := range map[int64]error{0: nil, -1: nil, 3: structures.ErrIndexRange, -4: structures.ErrIndexRange} {
		ok, err := l.Set(position, []byte("x"))
		equal(t, fmt.Sprint("LSET ", position), err, want)
		equal(t, "exists", ok, true)
	}
	equal(t, "list", elements(t, m, "l"), "x b x")
	ok, err := m.list("none").Set(0, nil)
	must(t, err)
	equal(t, "LSET on nothing", ok, false)
	must(t, m.list("none").Trim(0, 1))
}

func TestInsert(t *testing.T) {
	m := newMemory()
	const long = "a b c d e f g h i j"
	for _, c := range []struct {
		text   string
		before bool
		pivot  string
		want   string
		n      int
	}{
		{"a b c", true, "a", "x a b c", 4}, {"a b c", false, "c", "a b c x", 4}, {"a b c", true, "b", "a x b c", 4},
		{"a b c", false, "b", "a b x c", 4}, {"a b a", false, "a", "a x b a", 4}, {"a b c", true, "z", "a b c", -1},
		{long, true, "c", "a b x c d e f g h i j", 11}, {long, false, "h", "a b c d e f g h x i j", 11},
		{"a", true, "a", "x a", 2}, {"a", false, "a", "a x", 2},
	} {
		fill(t, m, "l", c.text)
		n, err := m.list("l").Insert(c.before, []byte(c.pivot), []byte("x"))
		must(t, err)
		equal(t, "LINSERT", n, c.n)
		if at := slices.Index(strings.Fields(c.want), "x"); at >= 0 { // those on the shorter side move
			equal(t, "records written", m.writes, 1+min(at, c.n-1-at))
			equal(t, "records removed", m.deletes, 0)
		}
		equal(t, "list", elements(t, m, "l"), c.want)
	}
	m.writes = 0
	n, err := m.list("none").Insert(true, nil, nil)
	must(t, err)
	equal(t, "LINSERT on nothing", n, 0)
	equal(t, "writes", m.writes, 0)
}

func TestRemove(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		text  string
		count int64
		want  string
		n     int
	}{
		{"x a x b x", 0, "a b", 3}, {"x a x b x", 1, "a x b x", 1}, {"x a x b x", -1, "x a x b", 1},
		{"x a x b x", 2, "a b x", 2}, {"x a x b x", -2, "x a b", 2}, {"x a x b x", 9, "a b", 3}, {"x a x b x", -9, "a b", 3},
		{"x x x", 0, "", 3}, {"a b", 0, "a b", 0}, {"a x b c d", 0, "a b c d", 1}, {"a b c x d", 0, "a b c d", 1},
		{"a x b c d e x f", 0, "a b c d e f", 2}, {"x x a", 0, "a", 2}, {"a x x", 0, "a", 2},
		{"x", math.MinInt64, "", 1}, {"a x b", math.MaxInt64, "a b", 1},
	} {
		fill(t, m, "l", c.text)
		n, err := m.list("l").Remove(c.count, []byte("x"))
		must(t, err)
		name := fmt.Sprintf("LREM %d of %q", c.count, c.text)
		equal(t, name, n, c.n)
		equal(t, name+" writes", m.writes, 0)
		equal(t, name+" leaves", elements(t, m, "l"), c.want)
	}
	n, err := m.list("none").Remove(0, nil)
	must(t, err)
	equal(t, "LREM on nothing", n, 0)
}

func TestListLimit(t *testing.T) {
	m := newMemory()
	huge := make([]byte, structures.MaxString+1)
	if _, err := m.list("l").Push(structures.Back, [][]byte{nil, huge}, 0); err != structures.ErrTooLong {
		t.Errorf("RPUSH: %v", err)
	}
	if _, err := m.list("l").Set(0, huge); err != structures.ErrTooLong {
		t.Errorf("LSET: %v", err)
	}
	if _, err := m.list("l").Insert(true, nil, huge); err != structures.ErrTooLong {
		t.Errorf("LINSERT: %v", err)
	}
	equal(t, "writes", m.writes, 0)
}

func TestListAgainstModel(t *testing.T) {
	t.Run("short", func(t *testing.T) { listAgainstModel(t, 0) })
	t.Run("long", func(t *testing.T) { listAgainstModel(t, 700) })
}

func listAgainstModel(t *testing.T, n int) {
	rng := chance.Rand(t)
	m := newMemory()
	l := m.list("l")
	var model []string
	for range n {
		model = append(model, string(rune('a'+rng.IntN(40))))
		_, err := l.Push(structures.Back, [][]byte{[]byte(model[len(model)-1])}, 0)
		must(t, err)
	}
	for i := range 3000 {
		op, want := stepList(t, rng, l, model)
		model = want
		if rng.IntN(20) == 0 {
			m.commit("l")
		}
		if got := elements(t, m, "l"); got != strings.Join(model, " ") {
			t.Fatalf("step %d, %s: %s, want %s", i, op, got, strings.Join(model, " "))
		}
	}
}

// stepList does something at random to a list and to its model, which it
// returns.
func stepList(t *testing.T, rng *rand.Rand, l structures.List, model []string) (string, []string) {
	word := string(rune('a' + rng.IntN(6)))
	value := []byte(word)
	switch op := rng.IntN(12); op {
	case 0, 1, 2:
		n, err := l.Push(structures.Back, [][]byte{value, value}, 0)
		must(t, err)
		model = append(model, word, word)
		equal(t, "RPUSH", n, len(model))
		return "RPUSH", model
	case 3, 4, 5:
		n, err := l.Push(structures.Front, [][]byte{value, {'z'}}, 0)
		must(t, err)
		model = append([]string{"z", word}, model...)
		equal(t, "LPUSH", n, len(model))
		return "LPUSH", model
	case 6:
		n := min(rng.IntN(4), len(model))
		_, _, err := l.Pop(structures.Front, n)
		must(t, err)
		return "LPOP", model[n:]
	case 7:
		n := min(rng.IntN(4), len(model))
		_, _, err := l.Pop(structures.Back, n)
		must(t, err)
		return "RPOP", model[:len(model)-n]
	case 8:
		before := rng.IntN(2) == 0
		_, err := l.Insert(before, value, []byte("new"))
		must(t, err)
		if at := slices.Index(model, word); at >= 0 {
			if !before {
				at++
			}
			model = slices.Insert(slices.Clone(model), at, "new")
		}
		return "LINSERT", model
	case 9:
		count := rng.IntN(7) - 3
		n, err := l.Remove(int64(count), value)
		must(t, err)
		want := removeWords(model, word, count)
		equal(t, "LREM", n, len(model)-len(want))
		return fmt.Sprint("LREM ", count, word), want
	case 10:
		if len(model) > 0 {
			at := rng.IntN(len(model))
			_, err := l.Set(int64(at), value)
			must(t, err)
			model = slices.Clone(model)
			model[at] = word
		}
		return "LSET", model
	default:
		cut := len(model) / 8
		from := rng.IntN(cut + 1)
		to := len(model) - 1 - rng.IntN(cut+1)
		must(t, l.Trim(int64(from), int64(to)))
		return "LTRIM", model[from : to+1]
	}
}

func removeWords(model []string, word string, count int) []string {
	kept := slices.Clone(model)
	if count < 0 {
		slices.Reverse(kept)
	}
	n := 0
	kept = slices.DeleteFunc(kept, func(w string) bool {
		if w != word || count != 0 && n == max(count, -count) {
			return false
		}
		n++
		return true
	})
	if count < 0 {
		slices.Reverse(kept)
	}
	return kept
}

func TestPositionsOf(t *testing.T) {
	m := newMemory()
	fill(t, m, "l", "a b c a b c a b c")
	for _, tt := range []struct {
		o    structures.PositionOptions
		want string
	}{
		{structures.PositionOptions{}, "[1 4 7]"},
		{structures.PositionOptions{Rank: 1, Count: 2}, "[1 4]"},
		{structures.PositionOptions{Rank: 2}, "[4 7]"},
		{structures.PositionOptions{Rank: -1}, "[7 4 1]"},
		{structures.PositionOptions{Rank: -2, Count: 1}, "[4]"},
		{structures.PositionOptions{Rank: 4}, "[]"},
		{structures.PositionOptions{Rank: math.MinInt64}, "[]"},
		{structures.PositionOptions{MaxLen: 4}, "[1]"},
		{structures.PositionOptions{Rank: -1, MaxLen: 5}, "[7 4]"},
		{structures.PositionOptions{MaxLen: math.MaxInt64, Count: math.MaxInt64}, "[1 4 7]"},
	} {
		got, err := m.list("l").Positions([]byte("b"), tt.o)
		must(t, err)
		equal(t, fmt.Sprintf("%+v", tt.o), fmt.Sprint(got), tt.want)
	}
}
