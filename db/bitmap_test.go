package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

func TestBitmap(t *testing.T) {
	s := open(t)
	b := s.Bitmap("b")
	equal(t, "was", ok[bool](t)(b.Set(7, true)), false)
	equal(t, "bit 7", ok[bool](t)(b.Get(7)), true)
	equal(t, "bit 700", ok[bool](t)(b.Get(700)), false)
	equal(t, "count", ok[int64](t)(b.Count(db.AllBits)), 1)
	equal(t, "first bit on", ok[int64](t)(b.Position(true, db.AllBits)), 7)
	equal(t, "length", ok[int](t)(s.Keyspace().CombineBits(db.BitNot, "not", "b")), 1)
	must(t, s.View(func(tx *db.Tx) error {
		results, err := tx.Bitmap("not").Field(db.BitfieldOp{Action: db.BitfieldGet, Bits: 8})
		must(t, err)
		equal(t, "inverted", results[0].Value, 0xfe)
		if _, err := tx.Bitmap("not").Field(db.BitfieldOp{Action: db.BitfieldSet, Bits: 8}); err == nil {
			t.Error("a View was written to")
		}
		return nil
	}))
	if _, err := b.Field(db.BitfieldOp{Bits: 65}); err != structures.ErrBitfieldType {
		t.Errorf("an integer of 65 bits: %v", err)
	}
}

func ExampleBitmap() {
	store := example()
	defer store.Close()

	visits := store.Bitmap("visits:2026-11-21")
	for _, user := range []int64{3, 14, 15} {
		_, err := visits.Set(user, true)
		check(err)
	}
	n, err := visits.Count(db.AllBits)
	check(err)
	first, err := visits.Position(true, db.AllBits)
	check(err)
	fmt.Println(n, first)
	// Output: 3 3
}

func ExampleBitmap_Field() {
	store := example()
	defer store.Close()

	// Two counters of a byte each: the one wraps, the other stops at its largest value.
	wraps := db.BitfieldOp{Action: db.BitfieldIncr, Bits: 8, Offset: 0, Value: 200}
	stops := db.BitfieldOp{Action: db.BitfieldIncr, Bits: 8, Offset: 8, Value: 200, Overflow: db.OverflowSat}
	results, err := store.Bitmap("counters").Field(wraps, stops, wraps, stops)
	check(err)
	fmt.Println(results)
	// Output: [{200 true} {200 true} {144 true} {255 true}]
}
