package structures_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

// TestShortListsStaySmall: a list of up to 32 elements stays in the form of a small one, whatever is inserted into it and removed from
// it, for a few records each.
func TestShortListsStaySmall(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	model := numbered(t, m, 5)
	_, f := m.find("l")
	insertions, moved := 0, 0
	for i := range 3000 {
		at := rng.IntN(len(model))
		pivot, value := model[at], fmt.Sprint("x", i)
		m.writes, m.deletes = 0, 0
		regular := f.Regular()
		if len(model) < 32 && (len(model) < 3 || rng.IntN(2) == 0) {
			before := rng.IntN(2) == 0
			_, err := m.list("l").Insert(before, []byte(pivot), []byte(value))
			must(t, err)
			if !before {
				at++
			}
			if regular { // holes are closed with it
				equal(t, fmt.Sprintf("step %d: records for one before number %d of %d", i, at, len(model)), m.writes, 1+min(at, len(model)-at))
				equal(t, "records removed", m.deletes, 0)
			}
			model = slices.Insert(model, at, value)
			insertions, moved = insertions+1, moved+m.writes-1
		} else {
			_, err := m.list("l").Remove(0, []byte(pivot))
			must(t, err)
			model = slices.Delete(model, at, at+1)
		}
		if rng.IntN(9) == 0 {
			m.commit("l")
		}
		equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
		if f.Private() {
			t.Fatalf("step %d: a list of %d elements has memory of its own", i, len(model))
		}
	}
	t.Logf("%d insertions moved %d elements", insertions, moved)
}

// TestListBecomesSmallAgain: a list with holes and inserted elements that has become short is made a small one by the next change in
// the middle.
func TestListBecomesSmallAgain(t *testing.T) {
	rng := chance.Rand(t)
	for _, change := range []string{"LINSERT", "LREM"} {
		m := newMemory()
		model := numbered(t, m, 100)
		for i := range 60 {
			at := rng.IntN(len(model))
			_, err := m.list("l").Insert(true, []byte(model[at]), fmt.Append(nil, "x", i))
			must(t, err)
			model = slices.Insert(model, at, fmt.Sprint("x", i))
			at = rng.IntN(len(model))
			_, err = m.list("l").Remove(0, []byte(model[at]))
			must(t, err)
			model = slices.Delete(model, at, at+1)
		}
		start := rng.IntN(60)
		must(t, m.list("l").Trim(int64(start), int64(start+29)))
		model = model[start : start+30]
		_, f := m.find("l")
		at := 1 + rng.IntN(28)
		if change == "LINSERT" {
			_, err := m.list("l").Insert(true, []byte(model[at]), []byte("new"))
			must(t, err)
			model = slices.Insert(model, at, "new")
		} else {
			_, err := m.list("l").Remove(0, []byte(model[at]))
			must(t, err)
			model = slices.Delete(model, at, at+1)
		}
		equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
		if f.Private() || change == "LINSERT" && !f.Regular() {
			t.Errorf("after %s: memory of its own %v, regular %v", change, f.Private(), f.Regular())
		}
	}
}

// TestLongElementsStay: no element is moved that is long.
func TestLongElementsStay(t *testing.T) {
	m := newMemory()
	var model []string
	for i := range 10 {
		model = append(model, fmt.Sprintf("%02d%s", i, strings.Repeat("v", 2000)))
		_, err := m.list("l").Push(structures.Back, [][]byte{[]byte(model[i])}, 0)
		must(t, err)
	}
	m.writes = 0
	_, err := m.list("l").Insert(true, []byte(model[5]), []byte("x"))
	must(t, err)
	equal(t, "records written", m.writes, 1)
	equal(t, "list", elements(t, m, "l"), strings.Join(slices.Insert(model, 5, "x"), " "))
}
