package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// TestTryBegin: TryBegin begins where Begin would not wait, and otherwise leaves no lock behind.
func TestTryBegin(t *testing.T) {
	s := open(t)
	try := func(write bool, keys ...string) bool {
		t.Helper()
		tx, ok, err := serverside.DB.TryBegin(s, write, nil, keys...)
		must(t, err)
		if !ok {
			return false
		}
		if write {
			_, err := tx.String(keys[0]).Append([]byte("x"))
			must(t, err)
		}
		_, err = tx.End(nil)
		must(t, err)
		return true
	}
	many := make([]string, 5000) // of every stripe, those before and after that of "held": one is without a key once in 10^8 stores
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, held := range []bool{true, false} {
		tx, err := s.Begin(held, "held")
		must(t, err)
		for _, c := range []struct {
			write bool
			keys  []string
			want  bool
		}{{false, []string{"held"}, !held}, {true, []string{"held"}, false}, {true, many, false}, {false, many, !held}} {
			if ok := try(c.write, c.keys...); ok != c.want {
				t.Errorf("held for writing: %t; write: %t, %d keys: began: %t", held, c.write, len(c.keys), ok)
			}
		}
		_, err = tx.End(nil)
		must(t, err)
		must(t, s.Update(func(*db.Tx) error { return nil })) // waits for every lock
		if !try(true, many...) || !try(false, "held") {
			t.Error("does not begin though nothing is locked")
		}
	}
	must(t, s.Close())
	if _, ok, err := serverside.DB.TryBegin(s, true, nil, "k"); ok || !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed: %t, %v", ok, err)
	}
}

// TestDurable: a commit is durable when somebody has waited for it, and at once where nobody is promised more.
func TestDurable(t *testing.T) {
	for mode, atOnce := range map[db.SyncMode]bool{db.SyncAlways: false, db.SyncInterval: true, db.SyncNone: true} {
		s, err := db.Open(t.TempDir(), &db.Options{Sync: mode})
		must(t, err)
		tx, err := s.Begin(true, "k")
		must(t, err)
		must(t, tx.String("k").Put([]byte("v")))
		ticket, err := tx.End(nil)
		must(t, err)
		if s.Durable(ticket) != atOnce || !s.Durable(0) {
			t.Errorf("%v: durable at once: %t, nothing: %t", mode, !atOnce, s.Durable(0))
		}
		must(t, s.WaitDurable(ticket))
		if !s.Durable(ticket) {
			t.Errorf("%v: not durable", mode)
		}
		must(t, s.Close())
	}
}
