package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
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
