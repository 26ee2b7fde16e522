package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

func TestHyperLogLog(t *testing.T) {
	s := open(t)
	a, b := s.HyperLogLog("a"), s.HyperLogLog("b")
	equal(t, "changed", ok[bool](t)(a.Add([]byte("x"), []byte("y"))), true)
	equal(t, "changed again", ok[bool](t)(a.Add([]byte("x"))), false)
	equal(t, "changed", ok[bool](t)(b.Add([]byte("y"), []byte("z"))), true)
	equal(t, "count", ok[uint64](t)(a.Count()), 2)
	equal(t, "count of nothing", ok[uint64](t)(s.HyperLogLog("none").Count()), 0)
	equal(t, "union", ok[uint64](t)(s.Keyspace().CountHyperLogLogs("a", "b", "none")), 3)
	must(t, s.Update(func(tx *db.Tx) error { return tx.HyperLogLog("c").Merge("a", "b") }))
	equal(t, "merged", ok[uint64](t)(s.HyperLogLog("c").Count()), 3)
	must(t, s.String("s").Put([]byte("no sketch")))
	if err := s.HyperLogLog("s").Merge(); err != structures.ErrNotSketch {
		t.Errorf("a string that is no sketch: %v", err)
	}
}

// TestCountIsKept: Count writes what it has counted into the sketch, once, and not where nothing can be written.
func TestCountIsKept(t *testing.T) {
	s := open(t)
	l := s.HyperLogLog("k")
	stale := func() bool { return ok[[]byte](t)(s.String("k").Range(nil, 15, 15))[0] != 0 }
	for round, count := range []func() (uint64, error){
		l.Count,
		func() (uint64, error) { return s.Keyspace().CountHyperLogLogs("k") },
		func() (n uint64, err error) {
			err = s.Update(func(tx *db.Tx) error { n, err = tx.HyperLogLog("k").Count(); return err })
			return n, err
		},
	} {
		equal(t, "changed", ok[bool](t)(l.Add(fmt.Append(nil, round))), true)
		want := uint64(round + 1)
		must(t, s.View(func(tx *db.Tx) error {
			equal(t, "count within View", ok[uint64](t)(tx.HyperLogLog("k").Count()), want)
			return nil
		}))
		equal(t, "stale after View", stale(), true)
		equal(t, "count", ok[uint64](t)(count()), want)
		equal(t, "stale", stale(), false)
		before := s.Stats().Bytes
		equal(t, "count again", ok[uint64](t)(count()), want)
		equal(t, "bytes written for it", s.Stats().Bytes-before, 0)
	}
	w := s.NewWatch()
	defer w.Close()
	must(t, s.View(func(tx *db.Tx) error { return w.Add(tx, "k") }))
	changed := func() (c bool) {
		must(t, s.View(func(tx *db.Tx) (err error) { c, err = w.Changed(tx); return err }))
		return c
	}
	ok[uint64](t)(l.Count())
	equal(t, "changed for who watches, as nothing is written", changed(), false)
}

// TestCountOnAFullDisk: what cannot be saved is counted all the same.
func TestCountOnAFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	mem.SetLimit(512<<10, fullPage)
	s, err := db.Open("d", seam.With(&db.Options{Reserve: 64 << 10, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem}))
	must(t, err)
	ok[bool](t)(s.HyperLogLog("k").Add([]byte("a"), []byte("b")))
	fillStore(t, s)
	equal(t, "count", ok[uint64](t)(s.HyperLogLog("k").Count()), 2)
	equal(t, "count of one key", ok[uint64](t)(s.Keyspace().CountHyperLogLogs("k")), 2)
	must(t, s.Close())
}

func ExampleHyperLogLog() {
	store := example()
	defer store.Close()

	visitors := store.HyperLogLog("visitors")
	for i := range 1000 {
		_, err := visitors.Add(fmt.Appendf(nil, "visitor %d", i%100))
		check(err)
	}
	n, err := visitors.Count()
	check(err)
	fmt.Println(n)
	// Output: 100
}
