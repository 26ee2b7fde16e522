package structures_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stavedb/stave/structures"
)

func TestListMove(t *testing.T) {
	for _, tt := range []struct {
		name, from, to   string
		off, onto        structures.End
		moved, left, got string
	}{
		{"to another list", "a b c", "x", structures.Front, structures.Back, "a", "b c", "x a"},
		{"to nothing", "a b c", "", structures.Back, structures.Front, "c", "a b", "c"},
		{"the last element", "a", "x", structures.Back, structures.Front, "a", "", "a x"},
	} {
		m := newMemory()
		fill(t, m, "from", tt.from)
		fill(t, m, "to", tt.to)
		value, ok, err := m.list("from").Move("to", tt.off, tt.onto)
		must(t, err)
		equal(t, tt.name+": existed", ok, true)
		equal(t, tt.name+": moved", string(value), tt.moved)
		equal(t, tt.name+": left", elements(t, m, "from"), tt.left)
		equal(t, tt.name+": got", elements(t, m, "to"), tt.got)
	}
	m := newMemory()
	_, ok, err := m.list("none").Move("to", structures.Front, structures.Back)
	must(t, err)
	equal(t, "a list that does not exist", ok, false)
	fill(t, m, "l", "a b c")
	_, _, err = m.list("l").Move("l", structures.Back, structures.Front)
	must(t, err)
	equal(t, "rotated", elements(t, m, "l"), "c a b")
	fill(t, m, "l", "a")
	must(t, m.SetDeadline("l", 5))
	_, _, err = m.list("l").Move("l", structures.Back, structures.Front)
	must(t, err)
	equal(t, "rotated alone", elements(t, m, "l"), "a")
	equal(t, "deadlines", len(m.deadlines), 1)
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

func TestPutCombinedSets(t *testing.T) {
	m := newMemory()
	_, err := m.set("a").Add([]string{"1", "2", "3"})
	must(t, err)
	_, err = m.set("b").Add([]string{"2", "3", "4"})
	must(t, err)
	for _, tt := range []struct {
		op   structures.SetOp
		to   string
		want string
	}{
		{structures.Union, "to", "1 2 3 4"}, {structures.Inter, "to", "2 3"}, {structures.Diff, "to", "1"},
		{structures.Inter, "a", "2 3"}, {structures.Diff, "a", ""},
	} {
		must(t, m.PutString("to", []byte("a string goes")))
		must(t, m.SetDeadline("to", 5))
		n, err := m.set(tt.to).PutCombined(tt.op, []string{"a", "b"})
		must(t, err)
		equal(t, "members", members(t, m, tt.to), tt.want)
		size, err := m.set(tt.to).Len()
		must(t, err)
		equal(t, "size", n, size)
		_, deadline := m.deadlines[tt.to]
		equal(t, "deadline", deadline, false)
	}
}

func TestCountInter(t *testing.T) {
	m := newMemory()
	_, err := m.set("a").Add([]string{"1", "2", "3"})
	must(t, err)
	addAll(t, m, "z", "2=5 3=6 4=7")
	for _, tt := range []struct {
		keys  []string
		limit int
		want  int
	}{
		{[]string{"a", "z"}, 0, 2}, {[]string{"a", "z"}, 1, 1}, {[]string{"a", "z"}, 9, 2}, {[]string{"a", "none"}, 0, 0}, {nil, 0, 0},
	} {
		got, err := structures.CountInter(m, tt.keys, tt.limit, false)
		must(t, err)
		equal(t, fmt.Sprint(tt), got, tt.want)
	}
	if _, err := structures.CountInter(m, []string{"a", "z"}, 0, true); err != structures.ErrWrongType {
		t.Errorf("sets only: %v", err)
	}
}

func TestCombination(t *testing.T) {
	m := newMemory()
	addAll(t, m, "a", "x=1 y=2 inf=+Inf")
	addAll(t, m, "b", "y=3 z=4 inf=-Inf")
	_, err := m.set("s").Add([]string{"y", "w"})
	must(t, err)
	type combination = structures.Combination
	ab := []string{"a", "b"}
	for _, tt := range []struct {
		c    combination
		want string
	}{
		{combination{Op: structures.Union, Keys: ab}, "inf=0 x=1 z=4 y=5"},
		{combination{Op: structures.Inter, Keys: ab}, "inf=0 y=5"},
		{combination{Op: structures.Diff, Keys: ab}, "x=1"},
		{combination{Op: structures.Inter, Keys: ab, Aggregate: structures.Min}, "inf=-Inf y=2"},
		{combination{Op: structures.Inter, Keys: ab, Aggregate: structures.Max}, "y=3 inf=+Inf"},
		{combination{Op: structures.Union, Keys: ab, Weights: []float64{0, 10}}, "inf=-Inf x=0 y=30 z=40"},
		{combination{Op: structures.Union, Keys: []string{"a", "s"}, Weights: []float64{1, 5}}, "x=1 w=5 y=7 inf=+Inf"},
		{combination{Op: structures.Inter, Keys: []string{"a", "a"}}, "x=2 y=4 inf=+Inf"},
		{combination{Op: structures.Inter, Keys: []string{"a", "none"}}, ""},
		{combination{Op: structures.Diff, Keys: []string{"none", "a"}}, ""},
		{combination{Op: structures.Union}, ""},
	} {
		n, err := m.zset("to").PutCombined(tt.c)
		must(t, err)
		equal(t, fmt.Sprintf("%+v", tt.c), whole(t, m, "to"), tt.want)
		size, err := m.zset("to").Len()
		must(t, err)
		equal(t, "size", n, size)
	}
	for _, op := range []structures.SetOp{structures.Union, structures.Inter, structures.Diff} {
		must(t, m.PutString("text", nil))
		if _, err := (combination{Op: op, Keys: []string{"none", "text"}}).Combine(m); err != structures.ErrWrongType {
			t.Errorf("a string among the keys: %v", err)
		}
	}
	if _, err := (combination{Keys: ab, Weights: []float64{math.NaN()}}).Combine(m); err != structures.ErrNotFloat {
		t.Errorf("weight NaN: %v", err)
	}
}

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

func TestPopFirstOfSeveral(t *testing.T) {
	m := newMemory()
	fill(t, m, "l", "a b c")
	addAll(t, m, "z", "a=1 b=2 c=3")
	key, values, ok, err := structures.PopFirst(m, []string{"none", "l", "z"}, structures.Back, 2)
	must(t, err)
	equal(t, "popped", fmt.Sprintf("%s %s %t", key, values, ok), "l [c b] true")
	_, _, ok, err = structures.PopFirst(m, []string{"none"}, structures.Back, 2)
	must(t, err)
	equal(t, "popped from nothing", ok, false)
	key, top, ok, err := structures.PopFirstScored(m, []string{"none", "z", "l"}, 2, true)
	must(t, err)
	equal(t, "popped", fmt.Sprint(key, top, ok), "z[{c 3} {b 2}] true")
	_, _, ok, err = structures.PopFirstScored(m, nil, 2, true)
	must(t, err)
	equal(t, "popped from nothing", ok, false)
}
