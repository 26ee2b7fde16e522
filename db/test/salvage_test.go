package db_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

var salvageStride = flag.Int("salvage.stride", 1, "every how many bits the salvage test flips one (default: a sample)")

// TestSalvageEveryBit flips bits of all files of a closed store, one at a time,
// and salvages: the new store is sound, and differs from the old one only by
// what the report says.
func TestSalvageEveryBit(t *testing.T) {
	state, want := salvageStore(t)
	stride := *salvageStride
	if testing.Short() {
		stride *= 461
	}
	flips, losses, changed, size := 0, 0, 0, 0
	for _, b := range state {
		size += len(b) * 8
	}
	part := longTests.Start(t, 1, "salvage.stride").Part(t, 100)
	defer part.End()
	passed := 0 // bits of the files before
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if name == "LOCK" {
			continue
		}
		for bit := 0; bit < len(state[name])*8; bit += stride {
			if !part.Take(passed+bit, size) {
				continue
			}
			damaged := maps.Clone(state)
			damaged[name] = slices.Clone(state[name])
			damaged[name][bit/8] ^= 1 << (bit % 8)
			what := fmt.Sprintf("%s, bit %d", name, bit)
			got, result := salvage(t, what, damaged)
			flips++
			if len(result.Lost) > 0 {
				losses++
			}
			keys := differing(got, want)
			if len(keys) > 0 {
				changed++
			}
			if len(keys) > 0 && len(result.Lost) == 0 && !result.NoManifest {
				t.Fatalf("%s: nothing is reported lost, but these differ: %q\n%s", what, keys, differences(got.String(), want.String()))
			}
			const inOneCommit = 4 // keys, at most
			if len(keys) > inOneCommit && !result.NoManifest {
				t.Fatalf("%s: %d keys differ: %q; reported %+v", what, len(keys), keys, result.Lost)
			}
		}
		passed += len(state[name]) * 8
	}
	t.Logf("%d bits flipped: %d losses reported, %d of them visible", flips, losses, changed)
}

// TestSalvageWithout takes files away.
func TestSalvageWithout(t *testing.T) {
	state, want := salvageStore(t)
	for _, c := range []struct {
		name string
		lost bool
		drop func(name string) bool
	}{
		{"nothing", false, func(string) bool { return false }},
		{"hints", false, func(name string) bool { return strings.HasSuffix(name, ".hint") }},
		{"deadlines", false, func(name string) bool { return name == bitcask.TTLName }},
		{"a segment", true, func(name string) bool { return name == firstSegment(state) }},
	} {
		left := maps.Clone(state)
		maps.DeleteFunc(left, func(name string, _ []byte) bool { return c.drop(name) })
		got, result := salvage(t, c.name, left)
		if c.lost != (len(result.Lost) > 0) {
			t.Errorf("without %s: reported %+v", c.name, result.Lost)
		}
		if !c.lost && got.String() != want.String() {
			t.Errorf("without %s: it differs by\n%s", c.name, differences(got.String(), want.String()))
		}
	}
}

// TestSalvageTornTail cuts the last write of a killed process: half a commit
// is left out, and is no loss.
func TestSalvageTornTail(t *testing.T) {
	mem := vfs.NewMem()
	w := &stepWorkload{t: t, sync: db.SyncNone, rec: vfstest.NewRecorder(mem, vfstest.OpMark), change: noRotation}
	w.open()
	w.step(nil)
	w.writeRound(0)
	w.step(w.store.Update(func(tx *db.Tx) error {
		for i := range 5 {
			must(t, tx.String(fmt.Sprint("torn", i)).Put(filler(100)))
		}
		return nil
	}))
	state, err := crash.ReadState(mem, "d")
	must(t, err)
	must(t, w.store.Close())
	name := firstSegment(state)
	end := len(strings.TrimRight(string(state[name]), "\x00"))
	for cut := 1; cut < 300; cut += 7 { // the last commit is longer
		damaged := maps.Clone(state)
		damaged[name] = state[name][:end-cut]
		if cut%2 == 0 {
			damaged[name] = append(slices.Clone(damaged[name]), make([]byte, cut)...)
		}
		what := fmt.Sprint("cut off ", cut)
		got, result := salvage(t, what, damaged)
		if len(result.Lost) > 0 || result.Torn == 0 || got.String() != w.states[len(w.states)-2] {
			t.Errorf("%s: lost %v, torn %d, differs by\n%s", what, result.Lost, result.Torn, differences(got.String(), w.states[len(w.states)-2]))
		}
	}
}

func firstSegment(state crash.State) string {
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if strings.HasSuffix(name, ".data") {
			return name
		}
	}
	return ""
}

// salvageStore is a closed store with every type, and its content.
func salvageStore(t *testing.T) (crash.State, *model) {
	t.Helper()
	mem := vfs.NewMem()
	w := &stepWorkload{t: t, sync: db.SyncNone, rec: vfstest.NewRecorder(mem, vfstest.OpMark)}
	w.open()
	w.step(nil)
	for i := range 3 {
		w.writeRound(i)
	}
	w.step(mergeEverything(w.store))
	w.writeRound(3)
	want, err := readModel(w.store)
	must(t, err)
	must(t, w.store.Close())
	state, err := crash.ReadState(mem, "d")
	must(t, err)
	return state, want
}

func salvage(t *testing.T, what string, state crash.State) (*model, repair.Result) {
	t.Helper()
	mem, err := state.Mem("d")
	must(t, err)
	result, err := repair.Salvage(context.Background(), "d", "new", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: mem}))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	s, err := db.Open("new", stepOptions(mem, db.SyncNone))
	if err != nil {
		t.Fatalf("%s: the new store: %v", what, err)
	}
	_, err = s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("%s: the new store: %v", what, f) })
	must(t, err)
	m, err := readModel(s)
	if err != nil {
		t.Fatalf("%s: the new store: %v", what, err)
	}
	must(t, s.Close())
	if leaks := mem.Leaks(); len(leaks) > 0 {
		t.Fatalf("%s: left open: %q", what, leaks)
	}
	after, err := crash.ReadState(mem, "d")
	must(t, err)
	if !maps.EqualFunc(state, after, slices.Equal) {
		t.Fatalf("%s: salvage changed the damaged store", what)
	}
	return m, result
}

// differing lists the keys that two models hold differently.
func differing(a, b *model) (keys []string) {
	for ns := range a {
		all := maps.Clone(a[ns])
		maps.Copy(all, b[ns])
		for _, key := range slices.Sorted(maps.Keys(all)) {
			only := func(m *model) string {
				one := newModel()
				if v := m[ns][key]; v != nil {
					one[ns][key] = v
				}
				return one.String()
			}
			if only(a) != only(b) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
