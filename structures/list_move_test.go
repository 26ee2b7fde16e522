package structures_test

import (
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
