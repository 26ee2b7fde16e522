package structures_test

import (
	"encoding/binary"
	"errors"
	"fmt"
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
		all, _, err := structures.CountHyperLogLogs(m, []string{"all"}, false)
		must(t, err)
		union, _, err := structures.CountHyperLogLogs(m, []string{"even", "none", "odd"}, false)
		must(t, err)
		equal(t, "union", union, all)
		if off := math.Abs(float64(all) - float64(n)); off > 5*0.0081*float64(n)+1 {
			t.Errorf("%d elements are estimated as %d", n, all)
		}
		must(t, structures.MergeHyperLogLogs(m, "merged", []string{"even", "odd", "none"}))
		merged, _, err := structures.CountHyperLogLogs(m, []string{"merged"}, false)
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
		n, _, err := structures.CountHyperLogLogs(m, []string{"k"}, false)
		must(t, err)
		equal(t, "count", n, []uint64{42, 4}[want])
	}
}

// TestHyperLogLogKeepsItsCount: a count that is saved is in the string, in Redis's place, until the sketch changes, and
// only what has changed is written.
func TestHyperLogLogKeepsItsCount(t *testing.T) {
	for name, elements := range map[string]int{"sparse": 10, "dense": 20_000} {
		m := newMemory()
		m.chunk = 8192
		l := m.hyperLogLog("k")
		list := make([][]byte, elements)
		for i := range list {
			list[i] = []byte(strconv.Itoa(i))
		}
		_, err := l.Add(list)
		must(t, err)
		var counts []uint64
		count := func(save, kept bool, writes int) {
			t.Helper()
			before := m.writes
			n, got, err := structures.CountHyperLogLogs(m, []string{"k"}, save)
			must(t, err)
			equal(t, name+": kept", got, kept)
			equal(t, name+": records written", m.writes-before, writes)
			counts = append(counts, n)
		}
		count(false, false, 0)
		equal(t, name+": stale", get(t, m, "k")[15], 0x80)
		m.events = nil
		count(true, true, 1)
		equal(t, name+": events", len(m.events), 0)
		equal(t, name+": in the string", binary.LittleEndian.Uint64([]byte(get(t, m, "k"))[8:]), counts[0])
		count(false, true, 0)
		count(true, true, 0)
		for i := 0; ; i++ { // until an element changes the sketch
			before := m.writes
			changed, err := l.Add([][]byte{fmt.Appendf(nil, "another %d", i)})
			must(t, err)
			if !changed {
				equal(t, name+": records of no change", m.writes, before)
				continue
			}
			if wrote := m.writes - before; wrote > 3 || name == "sparse" && wrote != 1 {
				t.Errorf("%s: an element wrote %d records", name, wrote)
			}
			break
		}
		equal(t, name+": stale again", get(t, m, "k")[15]&0x80, 0x80)
		count(true, true, 1)
		if counts[0] != counts[1] || counts[0] != counts[2] || counts[0] != counts[3] || counts[4] < counts[0] {
			t.Errorf("%s: counts %d", name, counts)
		}
		must(t, m.SetDeadline("k", 7))
		_, err = l.Add([][]byte{[]byte("more"), []byte("and more"), []byte("1")})
		must(t, err)
		equal(t, name+": deadline", m.deadlines["k"], 7)
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
		_, _, count := structures.CountHyperLogLogs(m, []string{"k"}, false)
		_, _, union := structures.CountHyperLogLogs(m, []string{"k", "k"}, false)
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
		_, _, err := structures.CountHyperLogLogs(m, []string{"k"}, false)
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
