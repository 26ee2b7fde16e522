package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
)

// TestWaitInATransaction: a method that waits does not do so within a transaction, where it would wait for ever, and its
// documentation says what comes instead.
func TestWaitInATransaction(t *testing.T) {
	never := context.Background()
	waits := map[string]func(tx *db.Tx) error{
		"List.PopFrontWait":    func(tx *db.Tx) error { return first(tx.List("none").PopFrontWait(never)) },
		"List.PopBackWait":     func(tx *db.Tx) error { return first(tx.List("none").PopBackWait(never)) },
		"List.MoveWait":        func(tx *db.Tx) error { return first(tx.List("none").MoveWait(never, "to", db.Front, db.Back)) },
		"SortedSet.PopMinWait": func(tx *db.Tx) error { return first(tx.SortedSet("none").PopMinWait(never)) },
		"SortedSet.PopMaxWait": func(tx *db.Tx) error { return first(tx.SortedSet("none").PopMaxWait(never)) },
		"Stream.ReadWait":      func(tx *db.Tx) error { return first(tx.Stream("none").ReadWait(never, db.StreamID{}, 0)) },
		"StreamGroup.ReadWait": func(tx *db.Tx) error {
			g := tx.Stream("stream").Group("g")
			return errors.Join(g.Create(db.StreamGroupStart{Make: true}), first(g.ReadWait(never, "consumer", 0)))
		},
		"Keyspace.PopFirstWait": func(tx *db.Tx) error {
			_, _, err := tx.Keyspace().PopFirstWait(never, db.Front, 1, "none", "nothing")
			return err
		},
		"Keyspace.PopFirstScoredWait": func(tx *db.Tx) error {
			_, _, err := tx.Keyspace().PopFirstScoredWait(never, false, 1, "none", "nothing")
			return err
		},
	}
	for _, typ := range packageOf(t, ".").Types {
		for _, m := range typ.Methods {
			name := typ.Name + "." + m.Name
			if !strings.HasSuffix(m.Name, "Wait") || m.Name == "Wait" { // which makes one
				continue
			}
			if waits[name] == nil {
				t.Errorf("%s waits and has no row", name)
			}
			if !strings.Contains(m.Doc, "ErrNotFound") {
				t.Errorf("the documentation of %s does not say what it returns in a transaction", name)
			}
		}
	}
	s := openToHang(t)
	within(t, "a wait in a transaction", func() {
		for name, wait := range waits {
			must(t, s.Update(func(tx *db.Tx) error {
				if err := wait(tx); !errors.Is(err, db.ErrNotFound) {
					t.Errorf("%s: %v", name, err)
				}
				return nil
			}))
		}
	})
}

// TestFieldResultSaysWhatItMeans: a list of them can be printed.
func TestFieldResultSaysWhatItMeans(t *testing.T) {
	all := []db.FieldResult{db.FieldMissing, db.FieldWithoutTTL, db.FieldUnchanged, db.FieldChanged, db.FieldDeleted, 9}
	if got, want := fmt.Sprint(all), "[missing without TTL unchanged changed deleted FieldResult(9)]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
