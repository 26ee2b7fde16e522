package structures_test

import (
	"bytes"
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

func TestListMoveMany(t *testing.T) {
	const front, back = structures.Front, structures.Back
	for _, tt := range []struct {
		name, from, to   string
		off, onto        structures.End
		move             structures.ListMove
		moved, left, got string
	}{
		{"in their order", "a b c d", "x", front, front, structures.ListMove{Count: 3}, "a b c", "d", "a b c x"},
		{"in their order from the back", "a b c d", "x", back, front, structures.ListMove{Count: 2}, "c d", "a b", "c d x"},
		{"in their order to the back", "a b c d", "x", back, back, structures.ListMove{Count: 2}, "c d", "a b", "x c d"},
		{"one by one", "a b c d", "x", front, front, structures.ListMove{Count: 3, OneByOne: true}, "c b a", "d", "c b a x"},
		{"one by one to the back", "a b c d", "x", front, back, structures.ListMove{Count: 3, OneByOne: true}, "a b c", "d", "x a b c"},
		{"one by one from the back", "a b c d", "x", back, front, structures.ListMove{Count: 2, OneByOne: true}, "c d", "a b", "c d x"},
		{"one by one, back to back", "a b c d", "x", back, back, structures.ListMove{Count: 2, OneByOne: true}, "d c", "a b", "x d c"},
		{"fewer than asked for", "a b", "", front, back, structures.ListMove{Count: 9}, "a b", "", "a b"},
		{"exactly as many", "a b", "", front, back, structures.ListMove{Count: 2, Exactly: true}, "a b", "", "a b"},
		{"too few", "a b", "", front, back, structures.ListMove{Count: 3, Exactly: true}, "", "a b", ""},
	} {
		m := newMemory()
		fill(t, m, "from", tt.from)
		fill(t, m, "to", tt.to)
		values, ok, err := m.list("from").MoveMany("to", tt.off, tt.onto, tt.move)
		must(t, err)
		equal(t, tt.name+": moved", string(bytes.Join(values, []byte(" "))), tt.moved)
		equal(t, tt.name+": any", ok, tt.moved != "")
		equal(t, tt.name+": left", elements(t, m, "from"), tt.left)
		equal(t, tt.name+": got", elements(t, m, "to"), tt.got)
	}
	for _, tt := range []struct {
		name       string
		off, onto  structures.End
		move       structures.ListMove
		moved, got string
	}{
		{"a part is rotated", front, back, structures.ListMove{Count: 2}, "a b", "c a b"},
		{"a part is reversed", front, front, structures.ListMove{Count: 2, OneByOne: true}, "b a", "b a c"},
		{"all stay", back, front, structures.ListMove{Count: 3}, "a b c", "a b c"},
		{"all stay one by one", back, front, structures.ListMove{Count: 3, OneByOne: true}, "a b c", "a b c"},
		{"all are reversed", front, front, structures.ListMove{Count: 9, OneByOne: true}, "c b a", "c b a"},
		{"all are reversed at the back", back, back, structures.ListMove{Count: 9, OneByOne: true}, "c b a", "c b a"},
	} {
		m := newMemory()
		fill(t, m, "l", "a b c")
		must(t, m.SetDeadline("l", 5))
		values, _, err := m.list("l").MoveMany("l", tt.off, tt.onto, tt.move)
		must(t, err)
		equal(t, tt.name+": moved", string(bytes.Join(values, []byte(" "))), tt.moved)
		equal(t, tt.name, elements(t, m, "l"), tt.got)
		equal(t, tt.name+": deadlines", len(m.deadlines), 1)
	}
}
