package db_test

import (
	"errors"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// TestRefusedPutWritesNothing puts a value that is too long after one that is not, in a transaction that goes on.
func TestRefusedPutWritesNothing(t *testing.T) {
	s := open(t)
	must(t, s.String("first").Put([]byte("old")))
	must(t, s.Update(func(tx *db.Tx) error {
		pairs := []db.Pair{{Key: "first", Value: []byte("new")}, {Key: "second", Value: make([]byte, structures.MaxString+1)}}
		if err := tx.Keyspace().Put(pairs...); !errors.Is(err, structures.ErrTooLong) {
			t.Errorf("a value that is too long: %v", err)
		}
		return nil
	}))
	equal(t, "value", content(t, s, "first"), `"old"`)
	pairs := []db.Pair{{Key: "first", Value: []byte("new")}, {Key: "second", Value: []byte("new")}}
	equal[error](t, "contradicting conditions", s.Keyspace().PutWith(pairs, db.IfAbsent, db.IfPresent), structures.ErrSyntax)
	equal(t, "with one of the keys", s.Keyspace().PutWith(pairs, db.IfPresent), db.ErrNotFound)
	equal(t, "with one of the keys", s.Keyspace().PutWith(pairs, db.IfAbsent), db.ErrExists)
	equal(t, "second", content(t, s, "second"), "nothing")
}
