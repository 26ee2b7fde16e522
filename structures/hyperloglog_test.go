package structures_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/structures"
)

func (m *memory) hyperLogLog(key string) structures.HyperLogLog {
	return structures.HyperLogLog{Txn: m, Key: key}
}

// The estimate is within five standard deviations, and that of a union is the
// estimate of the sketch that had everything added to it.
func TestHyperLogLogEstimates(t *testing.T) {
	m := newMemory()
	added := 0
	for _, n := range []int{0, 1, 10, 100, 1000, 10_000, 100_000} {
		elements := map[string][][]byte{}
		for ; added < n; added++ {
			element := []byte("element " + strconv.Itoa(added))
			for _, key := range []string{"all", []string{"even", "odd"}[added%2]} {
				elements[key] = append(elements[key], element)
			}
		}
		for key, list := range elements {
			_, err := m.hyperLogLog(key).Add(list)
			must(t, err)
		}
		all, err := structures.CountHyperLogLogs(m, []string{"all"})
		must(t, err)
		union, err := structures.CountHyperLogLogs(m, []string{"even", "none", "odd"})
		must(t, err)
		equal(t, "union", union, all)
		if off := math.Abs(float64(all) - float64(n)); off > 5*0.0081*float64(n)+1 {
			t.Errorf("%d elements are estimated as %d", n, all)
		}
		must(t, structures.MergeHyperLogLogs(m, "merged", []string{"even", "odd", "none"}))
		merged, err := structures.CountHyperLogLogs(m, []string{"merged"})
		must(t, err)
		equal(t, "merged", merged, all)
	}
}

func TestHyperLogLogChanges(t *testing.T) {
	m := newMemory()
	l := m.hyperLogLog("k")
	for i, c := range []struct {
		elements [][]byte
		changed  bool
	}{
		{nil, true}, {nil, false}, {[][]byte{nil}, true}, {[][]byte{{}}, false}, {[][]byte{[]byte("a"), []byte("b")}, true}, {[][]byte{[]byte("b")}, false},
	} {
		writes := m.writes
		changed, err := l.Add(c.elements)
		if err != nil || changed != c.changed || (m.writes > writes) != c.changed {
			t.Errorf("step %d: %t, %v, %d records; want %t", i, changed, err, m.writes-writes, c.changed)
		}
		must(t, m.SetDeadline("k", 9))
	}
	equal(t, "deadline", m.deadlines["k"], int64(9))
	// A count that Redis has cached is taken as it is, until the next change.
	sketch := []byte(get(t, m, "k"))
	copy(sketch[8:], "\x2a\x00\x00\x00\x00\x00\x00\x00")
	set(t, m, "k", string(sketch))
	for want, change := range []func(){func() {}, func() { _, _ = l.Add([][]byte{[]byte("c")}) }} {
		change()
		n, err := structures.CountHyperLogLogs(m, []string{"k"})
		must(t, err)
		equal(t, "count", n, []uint64{42, 4}[want])
	}
}

func TestHyperLogLogRefusals(t *testing.T) {
	dense := "HYLL\x00\x00\x00\x00" + strings.Repeat("\x00", 8+12288)
	for value, want := range map[string]error{
		"":                                structures.ErrNotSketch,
		"42":                              structures.ErrNotSketch,
		"HYLX\x01" + dense[5:18]:          structures.ErrNotSketch,
		"HYLL\x02" + dense[5:]:            structures.ErrNotSketch,
		dense + "\x00":                    structures.ErrNotSketch,
		dense[:100]:                       structures.ErrNotSketch,
		"HYLL\x01" + dense[5:15] + "\x80": structures.ErrSketchDamaged,
		"HYLL\x01" + dense[5:15] + "\x80\x7f\xfe\x81": structures.ErrSketchDamaged,
		"HYLL\x01" + dense[5:15] + "\x80\x40":         structures.ErrSketchDamaged,
	} {
		m := newMemory()
		set(t, m, "k", value)
		writes := m.writes
		_, count := structures.CountHyperLogLogs(m, []string{"k"})
		_, union := structures.CountHyperLogLogs(m, []string{"k", "k"})
		merge := structures.MergeHyperLogLogs(m, "k", nil)
		if count != want || union != want || merge != want {
			t.Errorf("%.20q: %v, %v, %v; want %v", value, count, union, merge, want)
		}
		equal(t, "records written", m.writes, writes)
	}
}

// FuzzHyperLogLog takes any string for a sparse sketch.
func FuzzHyperLogLog(f *testing.F) {
	f.Add([]byte("\x7f\xff"), "a")
	f.Add([]byte("\x7f\x00\x84\x7f\x80\x3f\xff"), "element")
	f.Add([]byte("\x40"), "")
	f.Fuzz(func(t *testing.T, runs []byte, element string) {
		m := newMemory()
		set(t, m, "k", "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"+string(runs))
		_, err := structures.CountHyperLogLogs(m, []string{"k"})
		damaged := errors.Is(err, structures.ErrSketchDamaged)
		if err != nil && !damaged {
			t.Fatal(err)
		}
		if _, err := m.hyperLogLog("k").Add([][]byte{[]byte(element)}); err != nil && !damaged {
			t.Fatalf("counted, but an element could not be added: %v", err)
		}
		if err := structures.MergeHyperLogLogs(m, "k", nil); (err != nil) && !damaged {
			t.Fatalf("counted, but not merged: %v", err)
		}
	})
}
