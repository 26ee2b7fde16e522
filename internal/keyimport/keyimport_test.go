package keyimport_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/keyimport"
	"github.com/stavedb/stave/internal/rdb"
)

// item is a list, or a piece of one.
func item(key string, first, last bool, elements ...string) keyimport.Item {
	it := keyimport.Item{Entry: rdb.Entry{Name: []byte(key), First: first, Last: last, Value: rdb.Value{Kind: rdb.List}}}
	for _, e := range elements {
		it.Value.Elements = append(it.Value.Elements, []byte(e))
	}
	return it
}

// length is that of a list.
func length(t *testing.T, s *db.Store, key string) int {
	t.Helper()
	n, err := s.List(key).Len()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// importer skips what is refused, and fails the test if a commit fails.
func importer(t *testing.T, s *db.Store) *keyimport.Importer {
	return keyimport.New(s, keyimport.Options{
		Refused: func(*keyimport.Item, error) error { return nil },
		Failed: func(_ []keyimport.Item, err error) error {
			t.Error(err)
			return err
		},
	})
}

// TestPieces: a key that comes in pieces is whole, or, if its last piece never comes, is late or is refused, not there.
func TestPieces(t *testing.T) {
	other := item("other", true, true, "x")
	refused := item("k", false, true, "c")
	refused.Database = 1 << 40
	expired := item("k", true, false, "a")
	expired.Deadline = 1
	for _, test := range []struct {
		name  string
		items []keyimport.Item
		want  keyimport.Result
		left  int
	}{
		{"whole", []keyimport.Item{item("k", true, false, "a"), item("k", false, false, "b"), item("k", false, true, "c"), other}, keyimport.Result{Keys: 2}, 3},
		{"no last piece", []keyimport.Item{item("k", true, false, "a"), other}, keyimport.Result{Keys: 1}, 0},
		{"the last is refused", []keyimport.Item{item("k", true, false, "a"), refused, other}, keyimport.Result{Keys: 1, Skipped: 1}, 0},
		{"expired", []keyimport.Item{expired, item("k", false, true, "b"), other}, keyimport.Result{Keys: 1, Expired: 1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := dbtest.New(t)
			if _, err := s.List("k").PushBack([]byte("before"), []byte("before"), []byte("before"), []byte("before")); err != nil {
				t.Fatal(err)
			}
			im := importer(t, s)
			for _, it := range test.items {
				if err := im.Add(it); err != nil {
					t.Fatal(err)
				}
			}
			if err := im.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := im.Result(); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if n := length(t, s, "k"); n != test.left {
				t.Errorf("%d elements, want %d", n, test.left)
			}
			if n := length(t, s, "other"); n != 1 {
				t.Errorf("the key after it has %d elements", n)
			}
		})
	}
}

// TestLargeValue: a collection beyond the limit of a commit takes several, and is whole; one that comes in a piece
// waits for its batch.
func TestLargeValue(t *testing.T) {
	s := dbtest.New(t)
	im := importer(t, s)
	it := item("k", true, true)
	for range 40 {
		it.Value.Elements = append(it.Value.Elements, bytes.Repeat([]byte("x"), 1<<20))
	}
	if err := im.Add(item("small", true, true, "x")); err != nil {
		t.Fatal(err)
	}
	if n := length(t, s, "small"); n != 0 {
		t.Errorf("%d elements are stored before their batch is full", n)
	}
	before := s.Stats().Commits
	if err := im.Add(it); err != nil {
		t.Fatal(err)
	}
	if commits := s.Stats().Commits - before; commits < 4 {
		t.Errorf("%d commits, want the batch's and three at least", commits)
	}
	if n := length(t, s, "k"); n != 40 {
		t.Errorf("%d elements, want 40", n)
	}
	if n := length(t, s, "small"); n != 1 {
		t.Errorf("the key before it has %d elements", n)
	}
}

// TestRefused: what the store refuses is rolled back alone; an error of Refused ends the import, and what came before
// is stored.
func TestRefused(t *testing.T) {
	s := dbtest.New(t)
	stop := errors.New("stop")
	im := keyimport.New(s, keyimport.Options{Refused: func(it *keyimport.Item, reason error) error {
		if string(it.Name) != "k" || reason == nil {
			t.Errorf("%q refused: %v", it.Name, reason)
		}
		return stop
	}})
	bad := item("k", true, true, "x")
	bad.Database = 1 << 40
	for _, it := range []keyimport.Item{item("a", true, true, "x"), bad, item("b", true, true, "x")} {
		if err := im.Add(it); err != nil {
			t.Fatal(err)
		}
	}
	if err := im.Flush(); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if a, b := length(t, s, "a"), length(t, s, "b"); a != 1 || b != 0 {
		t.Errorf("%d before it, %d after it", a, b)
	}
}

// TestReplaced: a string replaces what its key held, with its deadline, also one that has expired.
func TestReplaced(t *testing.T) {
	s := dbtest.New(t)
	text := func(key string, deadline int64, elements ...string) keyimport.Item {
		it := item(key, true, true, elements...)
		it.Value.Kind, it.Deadline = rdb.String, deadline
		return it
	}
	im := importer(t, s)
	for _, it := range []keyimport.Item{text("string", 0, "x"), text("expired", 1, "x"), text("empty", 0)} {
		for _, key := range []string{"", "of a list"} {
			own := it
			own.Name = append([]byte(key), own.Name...)
			name := string(own.Name)
			var err error
			if key == "" {
				err = s.String(name).Put([]byte("before"))
			} else {
				_, err = s.List(name).PushBack([]byte("before"))
			}
			if err == nil {
				_, err = s.Key(name).Expire(time.Hour)
			}
			if err == nil {
				err = im.Add(own)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := im.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "of a list"} {
		value, err := s.String(key + "string").Get()
		if err != nil || string(value) != "x" {
			t.Errorf("%sstring is %q, %v", key, value, err)
		}
		if ttl, err := s.Key(key + "string").TTL(); err != nil || ttl != db.NoTTL {
			t.Errorf("%sstring has %v left, %v", key, ttl, err)
		}
		for _, gone := range []string{"expired", "empty"} {
			if typ, err := s.Key(key + gone).Type(); err != nil || typ != db.TypeNone {
				t.Errorf("%s%s is of type %v, %v", key, gone, typ, err)
			}
		}
	}
}
