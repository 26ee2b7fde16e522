package structures_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/structures"
)

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
