package db_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stavedb/stave/db"
)

// deep calls fn below n more frames.
func deep(n int, fn func() error) error {
	if n == 0 {
		return fn()
	}
	err := deep(n-1, fn)
	runtime.KeepAlive(n)
	return err
}

// TestNestedUseIsNoticed: a store used within its own closure says so, whatever
// is used, however deep, in a store of any number; another store, or another
// goroutine, is free.
func TestNestedUseIsNoticed(t *testing.T) {
	var stores []*db.Store
	for range 5 {
		s, err := db.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	uses := map[string]func(s *db.Store) error{
		"get":    func(s *db.Store) error { _, err := s.String("k").Len(); return err },
		"put":    func(s *db.Store) error { return s.String("k").Put(nil) },
		"update": func(s *db.Store) error { return s.Update(func(*db.Tx) error { return nil }) },
		"view":   func(s *db.Store) error { return s.View(func(*db.Tx) error { return nil }) },
		"keys":   func(s *db.Store) error { return s.UpdateKeys([]string{"j"}, func(*db.Tx) error { return nil }) },
		"flush":  func(s *db.Store) error { return s.Flush() },
	}
	closures := map[string]func(s *db.Store, fn func(*db.Tx) error) error{
		"update": (*db.Store).Update,
		"view":   (*db.Store).View,
		"keys":   func(s *db.Store, fn func(*db.Tx) error) error { return s.UpdateKeys([]string{"k"}, fn) },
	}
	for i, s := range stores {
		other := stores[(i+1)%len(stores)]
		for outer, closure := range closures {
			for inner, use := range uses {
				for _, depth := range []int{0, 1, 50, 63, 64, 65, 200} {
					err := closure(s, func(*db.Tx) error {
						if err := deep(depth, func() error { return use(other) }); err != nil {
							t.Errorf("another store within %s: %s: %v", outer, inner, err)
						}
						return deep(depth, func() error { return use(s) })
					})
					if !errors.Is(err, db.ErrNested) {
						t.Fatalf("%s within %s, %d frames deep: %v", inner, outer, depth, err)
					}
				}
				// Two stores deep.
				err := closure(s, func(*db.Tx) error {
					return other.View(func(*db.Tx) error { return use(s) })
				})
				if !errors.Is(err, db.ErrNested) {
					t.Fatalf("%s within a view of another store within %s: %v", inner, outer, err)
				}
			}
		}
		if err := s.View(func(*db.Tx) error {
			done := make(chan error)
			go func() { _, err := s.String("k").Len(); done <- err }()
			return <-done
		}); err != nil {
			t.Errorf("another goroutine beside a view: %v", err)
		}
		if err := s.String("k").Put(nil); err != nil {
			t.Errorf("after the closures: %v", err)
		}
	}
}

func BenchmarkUpdateKeys(b *testing.B) {
	s, err := db.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	keys := []string{"k"}
	for b.Loop() {
		if err := s.UpdateKeys(keys, func(tx *db.Tx) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
