package structures_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// numbered makes a list of the numbers below n.
func numbered(t *testing.T, m *memory, n int) (words []string) {
	for i := range n {
		words = append(words, fmt.Sprint(i))
	}
	fill(t, m, "l", strings.Join(words, " "))
	return words
}

// TestMiddleOfLongList: what is inserted in the middle is one record, and so is what is removed there.
func TestMiddleOfLongList(t *testing.T) {
	m := newMemory()
	model := numbered(t, m, 1000)
	for i, pivot := range []string{"500", "499", "3", "500", "996", "512", "511"} {
		value := fmt.Sprint("x", i)
		m.writes, m.deletes = 0, 0
		_, err := m.list("l").Insert(i%2 == 0, []byte(pivot), []byte(value))
		must(t, err)
		equal(t, "records of LINSERT", m.writes, 1)
		equal(t, "records removed by LINSERT", m.deletes, 0)
		model = slices.Insert(model, slices.Index(model, pivot)+i%2, value)
		equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
	}
	for _, word := range []string{"500", "x3", "4", "x0", "512"} {
		m.writes, m.deletes = 0, 0
		_, err := m.list("l").Remove(0, []byte(word))
		must(t, err)
		equal(t, "records of LREM", m.writes, 0)
		equal(t, "records removed by LREM", m.deletes, 1)
		model = slices.Delete(model, slices.Index(model, word), slices.Index(model, word)+1)
		equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
	}
	_, err := m.list("l").Insert(true, []byte("5"), []byte("in the hole"))
	must(t, err)
	model = slices.Insert(model, slices.Index(model, "5"), "in the hole")
	equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
	_, f := m.find("l")
	if loc, ok := f.LocAtPlace(keydir.ListPlace{Index: 4}); !ok || loc == 0 {
		t.Error("the hole is not used")
	}
}

// TestInsertInOnePlace: wherever elements are inserted, few others are written for each.
func TestInsertInOnePlace(t *testing.T) {
	const n = 1200
	rng := chance.Rand(t)
	last := "10"
	for name, where := range map[string]func(i int, model []string) (before bool, pivot string){
		"after an old one":       func(int, []string) (bool, string) { return false, "10" },
		"before an old one":      func(int, []string) (bool, string) { return true, "11" },
		"after the last one":     func(int, []string) (bool, string) { return false, last },
		"before the last one":    func(i int, _ []string) (bool, string) { return i > 0, last },
		"on both sides in turns": func(i int, _ []string) (bool, string) { return i%2 == 1, last },
		"between the first two":  func(i int, _ []string) (bool, string) { return false, []string{"10", "x0"}[min(i, 1)] },
		"anywhere":               func(_ int, model []string) (bool, string) { return true, model[11+rng.IntN(len(model)-20)] },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			model := numbered(t, m, 300)
			last = "10"
			m.writes, m.yields = 0, 0
			most := 0
			for i := range n {
				before, pivot := where(i, model)
				last = fmt.Sprint("x", i)
				written := m.writes
				_, err := m.list("l").Insert(before, []byte(pivot), []byte(last))
				must(t, err)
				most = max(most, m.writes-written)
				at := slices.Index(model, pivot)
				if !before {
					at++
				}
				model = slices.Insert(model, at, last)
			}
			equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
			t.Logf("%d records for %d elements, %d at most for one", m.writes, n, most)
			equal(t, "elements that were moved with a pause for others", m.yields, m.writes-n)
			if m.writes > 8*n {
				t.Errorf("%d records for %d elements", m.writes, n)
			}
		})
	}
}

// TestHolesAreClosed: what is removed from a short list and pushed again and again leaves few more holes than elements.
func TestHolesAreClosed(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	model := numbered(t, m, 10)
	_, f := m.find("l")
	written := 0
	const n = 3000
	for i := range n {
		word := model[rng.IntN(9)] // the last one stays
		m.writes = 0
		_, err := m.list("l").Remove(0, []byte(word))
		must(t, err)
		_, err = m.list("l").Push(structures.Front, [][]byte{[]byte(word)}, 0)
		must(t, err)
		model = slices.Insert(slices.DeleteFunc(model, func(w string) bool { return w == word }), 0, word)
		equal(t, "list", elements(t, m, "l"), strings.Join(model, " "))
		if head, tail := f.Bounds(); f.Private() || tail-head > 2*10+10 {
			t.Fatalf("step %d: list of %d elements from %d to %d, big: %v", i, len(model), head, tail, f.Private())
		}
		written += m.writes
	}
	if written > 2*n {
		t.Errorf("%d records for %d elements", written, n)
	}
}
