package db_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

// Reads of strings take a short cut past transactions. They have to see what a
// transaction would: deadlines, other types, namespaces, and that they are nested.

func expectString(t *testing.T, s *db.Store, key, want string, wantErr error) {
	t.Helper()
	got, err := s.String(key).Get()
	if string(got) != want || !errors.Is(err, wantErr) {
		t.Fatalf("get %q = %q, %v; want %q, %v", key, got, err, want, wantErr)
	}
	exists, err := s.Key(key).Exists()
	if err != nil || exists != (wantErr != db.ErrNotFound) {
		t.Fatalf("exists %q = %v, %v", key, exists, err)
	}
}

func TestGetHeedsDeadlines(t *testing.T) {
	for _, reap := range []time.Duration{-1, time.Second} { // expired keys stay, or go
		synctest.Test(t, func(t *testing.T) {
			s, err := db.Open(t.TempDir(), &db.Options{ExpireEvery: reap, Sync: db.SyncNone})
			must(t, err)
			defer func() { must(t, s.Close()) }()
			str := s.String("k")
			must(t, str.Put([]byte("a"), db.TTL(time.Hour)))
			expectString(t, s, "k", "a", nil)
			time.Sleep(time.Hour - time.Millisecond)
			expectString(t, s, "k", "a", nil)
			time.Sleep(time.Millisecond)
			expectString(t, s, "k", "", db.ErrNotFound)

			must(t, str.Put([]byte("b")))
			expectString(t, s, "k", "b", nil)
			_, err = s.Key("k").Expire(time.Minute)
			must(t, err)
			must(t, str.Put([]byte("c"), db.KeepTTL))
			expectString(t, s, "k", "c", nil)
			_, err = s.Key("k").Persist()
			must(t, err)
			time.Sleep(time.Hour)
			expectString(t, s, "k", "c", nil)
			_, err = s.Key("k").Expire(time.Minute)
			must(t, err)
			time.Sleep(time.Hour)
			expectString(t, s, "k", "", db.ErrNotFound)
		})
	}
}

func TestGetHeedsTypesAndNamespaces(t *testing.T) {
	s, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	other, err := s.Use(3)
	must(t, err)
	expectString(t, other, "k", "", db.ErrNotFound)
	must(t, s.String("k").Put([]byte("zero")))
	expectString(t, s, "k", "zero", nil)
	expectString(t, other, "k", "", db.ErrNotFound)
	must(t, other.String("k").Put(nil))
	expectString(t, other, "k", "", nil)
	must(t, s.Swap(0, 3))
	expectString(t, s, "k", "", nil)
	expectString(t, other, "k", "zero", nil)
	must(t, s.Flush())
	expectString(t, s, "k", "", db.ErrNotFound)
	_, err = s.Set("k").Add("member")
	must(t, err)
	expectString(t, s, "k", "", db.ErrWrongType)
	must(t, s.String("k").Put([]byte("again")))
	expectString(t, s, "k", "again", nil)
	_, err = s.Key("k").Delete()
	must(t, err)
	expectString(t, s, "k", "", db.ErrNotFound)
}

// A read of the store within a closure would not see what the closure has written.
func TestGetInsideAClosureIsNested(t *testing.T) {
	s, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, s.String("k").Put([]byte("v")))
	nested := func(*db.Tx) error {
		if _, err := s.String("k").Get(); !errors.Is(err, db.ErrNested) {
			t.Errorf("get: %v", err)
		}
		if _, err := s.Key("k").Exists(); !errors.Is(err, db.ErrNested) {
			t.Errorf("exists: %v", err)
		}
		return nil
	}
	must(t, s.Update(nested))
	must(t, s.View(nested))
	must(t, s.UpdateKeys([]string{"other"}, nested))
}

// Append forms allocate nothing if there is room, and neither do questions.
func TestReadsAllocateNothing(t *testing.T) {
	if underRace {
		t.Skip("the race detector's pools drop things on purpose")
	}
	s, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone, NoMerge: true})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, s.String("k").Put(make([]byte, 100)))
	_, err = s.Hash("hash").Put("field", make([]byte, 100))
	must(t, err)
	_, err = s.Set("set").Add("member")
	must(t, err)
	_, err = s.SortedSet("sorted").Add(db.Scored{Member: "member", Score: 1})
	must(t, err)
	buf := make([]byte, 0, 200)
	for name, read := range map[string]func() (ok bool, err error){
		"string": func() (bool, error) {
			got, err := s.String("k").AppendTo(buf)
			return len(got) == 100, err
		},
		"no string": func() (bool, error) {
			_, err := s.String("none").AppendTo(buf)
			return err == db.ErrNotFound, nil
		},
		"exists": func() (bool, error) { return s.Key("k").Exists() },
		"hash": func() (bool, error) {
			got, err := s.Hash("hash").AppendTo(buf, "field")
			return len(got) == 100, err
		},
		"no field": func() (bool, error) {
			_, err := s.Hash("hash").AppendTo(buf, "none")
			return err == db.ErrNotFound, nil
		},
		"set": func() (bool, error) { return s.Set("set").Has("member") },
		"sorted set": func() (bool, error) {
			score, err := s.SortedSet("sorted").Score("member")
			return score == 1, err
		},
		"deadline": func() (bool, error) {
			ttl, err := s.Key("k").TTL()
			return ttl == db.NoTTL, err
		},
	} {
		n := testing.AllocsPerRun(100, func() {
			if ok, err := read(); !ok || err != nil {
				t.Fatalf("%s: %v, %v", name, ok, err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
