package bitcask_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// TestLonePutIsSeenWithin: whatever a transaction reads after a single put, it sees that put, and a
// rollback restores the old state.
func TestLonePutIsSeenWithin(t *testing.T) {
	looks := map[string]func(tx *bitcask.Tx) string{
		"value": func(tx *bitcask.Tx) string {
			slot, _, err := tx.Find(0, "k")
			if err != nil || slot.Type != keydir.String {
				t.Fatal(slot, err)
			}
			value, err := tx.Value(nil, 0, "k", "", keydir.String, slot.Loc)
			if err != nil {
				t.Fatal(err)
			}
			return string(value)
		},
		"length": func(tx *bitcask.Tx) string {
			if n := tx.Len(0); n != 1 {
				t.Fatalf("%d keys", n)
			}
			return "new"
		},
		"keys": func(tx *bitcask.Tx) (found string) {
			for stripe := range keydir.Stripes {
				err := tx.EachKey(0, stripe, 0, func(_ uint64, key []byte, _ keydir.Type) bool {
					found += string(key)
					return true
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if found != "k" {
				t.Fatalf("keys %q", found)
			}
			return "new"
		},
		"rollback": func(tx *bitcask.Tx) string {
			sp := tx.Savepoint()
			if err := tx.PutString(0, "k", []byte("newest")); err != nil {
				t.Fatal(err)
			}
			tx.RollbackTo(sp)
			return "new"
		},
		"nothing": func(*bitcask.Tx) string { return "new" },
	}
	for name, look := range looks {
		for _, before := range []string{"", "old"} {
			for _, commit := range []bool{true, false} {
				s := open(t, t.TempDir(), nil)
				if before != "" {
					put(t, s, "k", before)
				}
				tx, err := s.BeginAll(true)
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.PutString(0, "k", []byte("new")); err != nil {
					t.Fatal(err)
				}
				if got := look(tx); got != "new" {
					t.Errorf("%s: %q within the transaction", name, got)
				}
				if commit {
					if _, err := tx.Commit(); err != nil {
						t.Fatal(err)
					}
					before = "new"
				}
				tx.End()
				if before == "" {
					wantNone(t, s, "k")
				} else {
					want(t, s, "k", before)
				}
				check(t, s)
			}
		}
	}
}
