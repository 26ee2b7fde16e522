package db_test

import (
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestEmptiedKeyTakesAnotherType: within one transaction a collection that has
// lost its last element is gone, and the key may become any other type.
func TestEmptiedKeyTakesAnotherType(t *testing.T) {
	makers := map[string]func(tx *db.Tx) error{
		"hash":             func(tx *db.Tx) error { _, err := tx.Hash("k").Put("f", []byte("v")); return err },
		"set":              func(tx *db.Tx) error { _, err := tx.Set("k").Add("f"); return err },
		"zset":             func(tx *db.Tx) error { _, err := tx.SortedSet("k").Add(db.Scored{Member: "f", Score: 1}); return err },
		"list":             func(tx *db.Tx) error { _, err := tx.List("k").PushBack([]byte("v")); return err },
		"string":           func(tx *db.Tx) error { return tx.String("k").Put([]byte("v")) },
		"incremented hash": func(tx *db.Tx) error { _, err := tx.Hash("k").Incr("f", 1); return err },
	}
	emptiers := map[string]func(tx *db.Tx) error{
		"hash": func(tx *db.Tx) error { _, err := tx.Hash("k").Delete("f"); return err },
		"set":  func(tx *db.Tx) error { _, err := tx.Set("k").Remove("f"); return err },
		"zset": func(tx *db.Tx) error { _, err := tx.SortedSet("k").Remove("f"); return err },
		"list": func(tx *db.Tx) error { _, err := tx.List("k").PopBack(); return err },
	}
	for first, empty := range emptiers {
		for second, fill := range makers {
			for _, before := range []bool{false, true} {
				t.Run(first+" "+second, func(t *testing.T) {
					mem := vfs.NewMem()
					s, err := db.Open("d", seam.With(&db.Options{}, seam.Options{FS: mem}))
					must(t, err)
					if before {
						must(t, s.Update(makers[first]))
					}
					must(t, s.Update(func(tx *db.Tx) error {
						if !before {
							if err := makers[first](tx); err != nil {
								return err
							}
						}
						if err := empty(tx); err != nil {
							return err
						}
						return fill(tx)
					}))
					want, err := s.Key("k").Type()
					must(t, err)
					if got := want.String(); got != second && !(second == "incremented hash" && got == "hash") {
						t.Errorf("a %s where a %s was made", got, second)
					}
					equal(t, "keys", s.Len(), 1)
					must(t, s.Close())
					s, err = db.Open("d", seam.With(&db.Options{}, seam.Options{FS: mem, NoIndex: true}))
					must(t, err)
					again, err := s.Key("k").Type()
					must(t, err)
					equal(t, "type", again, want)
					must(t, s.Close())
				})
			}
		}
	}
}
