package bitcask_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// TestScansPassEmptied: a collection that a transaction has emptied is in the index until the commit. Scans of that transaction leave it
// out, and find what comes after it in its stripe.
func TestScansPassEmptied(t *testing.T) {
	rng := chance.Rand(t)
	scans := map[string]func(tx *bitcask.Tx, fn func(key string)) error{
		"EachKey": func(tx *bitcask.Tx, fn func(key string)) error {
			return tx.EachKey(0, 0, 0, func(_ uint64, key []byte, _ keydir.Type) bool { fn(string(key)); return true })
		},
		"Gather": func(tx *bitcask.Tx, fn func(key string)) error {
			return tx.Gather(&bitcask.Walk{}, 0, func(key []byte, _ keydir.Type) bool { fn(string(key)); return true })
		},
	}
	s := open(t, t.TempDir(), nil)
	var names []string // of one stripe, the one where a walk begins
	for i := 0; len(names) < 20; i++ {
		if name := fmt.Sprint("set", i); s.StripeOfKey(name) == 0 {
			names = append(names, name)
		}
	}
	update := func(fn func(tx *bitcask.Tx)) {
		tx, err := s.BeginAll(true)
		must(t, err)
		defer tx.End()
		fn(tx)
	}
	update(func(tx *bitcask.Tx) {
		for _, name := range names {
			coll, err := tx.Collection(0, name, keydir.Set)
			must(t, err)
			must(t, tx.PutElem(0, name, coll, "member", nil))
		}
		_, err := tx.Commit()
		must(t, err)
	})
	for range 20 {
		update(func(tx *bitcask.Tx) { // rolled back
			kept := map[string]bool{}
			for _, name := range names {
				if kept[name] = rng.IntN(2) == 0; !kept[name] {
					_, coll, err := tx.Find(0, name)
					must(t, err)
					_, err = tx.DeleteElem(0, name, coll, "member")
					must(t, err)
					delete(kept, name)
				}
			}
			for scan, call := range scans {
				found := map[string]bool{}
				must(t, call(tx, func(key string) { found[key] = true }))
				if fmt.Sprint(found) != fmt.Sprint(kept) {
					t.Errorf("%s found %v, want %v", scan, found, kept)
				}
			}
		})
	}
}
