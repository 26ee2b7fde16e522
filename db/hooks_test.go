package db_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/structures"
)

// TestOnCommit: what OnCommit was given is called in its place among the events, once, if the transaction was
// committed, and not if that part of it was rolled back.
func TestOnCommit(t *testing.T) {
	s := dbtest.New(t)
	var got []string
	var tickets db.Ticket
	defer s.OnEvents(structures.AllClasses, func(e db.Event) { got = append(got, e.Kind.String()+" "+e.Key) })()
	hook := func(tx *db.Tx, name string) error {
		return tx.OnCommit(func(ticket db.Ticket) {
			got = append(got, name)
			tickets = max(tickets, ticket)
			if _, err := tx.String("a").Get(); !errors.Is(err, db.ErrTxDone) {
				t.Errorf("%s: the transaction goes on: %v", name, err)
			}
		})
	}
	refused := errors.New("refused")
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"alone", func() error { return s.Update(func(tx *db.Tx) error { return hook(tx, "1") }) }, "1"},
		{"of a reader", func() error { return s.View(func(tx *db.Tx) error { return hook(tx, "1") }) }, "1"},
		{"of a reader of keys", func() error { return s.ViewKeys([]string{"a"}, func(tx *db.Tx) error { return hook(tx, "1") }) }, "1"},
		{"among events", func() error {
			return s.UpdateKeys([]string{"a", "b"}, func(tx *db.Tx) error {
				other, err := tx.Use(1)
				return errors.Join(err, hook(tx, "1"), tx.String("a").Put(nil), hook(other, "2"), hook(tx, "3"), tx.String("b").Put(nil), hook(tx, "4"))
			})
		}, "1, set a, 2, 3, set b, 4"},
		{"refused", func() error {
			err := s.Update(func(tx *db.Tx) error { return errors.Join(tx.String("a").Put(nil), hook(tx, "1"), refused) })
			if !errors.Is(err, refused) {
				return fmt.Errorf("it was committed: %w", err)
			}
			return nil
		}, ""},
		{"a read that fails", func() error {
			err := s.View(func(tx *db.Tx) error { return errors.Join(hook(tx, "1"), refused) })
			if !errors.Is(err, refused) {
				return fmt.Errorf("it ended well: %w", err)
			}
			return nil
		}, ""},
		{"savepoints", func() error {
			return s.Update(func(tx *db.Tx) error {
				first := tx.Savepoint()
				err := errors.Join(tx.String("a").Put(nil), hook(tx, "1"), tx.RollbackTo(first), hook(tx, "2"), tx.String("b").Put(nil))
				second := tx.Savepoint()
				return errors.Join(err, hook(tx, "3"), tx.String("a").Put(nil), hook(tx, "4"), tx.RollbackTo(second), hook(tx, "5"))
			})
		}, "2, set b, 5"},
		{"Begin", func() error {
			tx, err := s.Begin(true, "a")
			if err != nil {
				return err
			}
			err = errors.Join(hook(tx, "1"), tx.String("a").Put(nil))
			_, failed := tx.End(err)
			if late := tx.OnCommit(func(db.Ticket) { t.Error("called after the end") }); !errors.Is(late, db.ErrTxDone) {
				t.Errorf("OnCommit after the end: %v", late)
			}
			return failed
		}, "1, set a"},
	} {
		got, tickets = nil, 0
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if writes := strings.Contains(step.want, "set"); (tickets != 0) != writes {
			t.Errorf("%s: the ticket is %d", step.name, tickets)
		}
		if list := strings.Join(got, ", "); list != step.want {
			t.Errorf("%s: %q, want %q", step.name, list, step.want)
		}
	}
}
