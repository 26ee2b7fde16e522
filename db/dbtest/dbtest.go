// Package dbtest makes stores for tests.
//
//	func TestLeaderboard(t *testing.T) {
//		store := dbtest.New(t)
//		...
//	}
//
// The store is empty, held in memory and the test's own, so tests that use it may run in parallel. At the end of the
// test it is checked ([db.Store.Check]) and closed, and fails the test if it is not sound: after a transaction or an
// iterator that has not ended, a write that the store has refused, a broken promise of the format.
package dbtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// Option changes what New makes.
type Option func(*settings)

type settings struct {
	options   db.Options
	directory bool
}

// WithOptions opens the store with these options. Default: those of package db.
func WithOptions(o db.Options) Option { return func(s *settings) { s.options = o } }

// InDirectory has the store in a directory that the test alone has ([testing.T.TempDir]), with the files and the syncs
// of a store in use: for tests that close it and open it again, and for benchmarks. Stats says where it is.
func InDirectory() Option { return func(s *settings) { s.directory = true } }

// New makes an empty store for a test, a benchmark or a fuzz target. It is checked and closed by t.Cleanup; a test may
// close it itself, and then it is not checked. If the store cannot be made the test ends at once.
//
// Cleanups run last in, first out: what a test registers after New may still use the store.
func New(t testing.TB, options ...Option) *db.Store {
	t.Helper()
	var s settings
	for _, o := range options {
		o(&s)
	}
	var store *db.Store
	var err error
	if s.directory {
		store, err = db.Open(t.TempDir(), &s.options)
	} else {
		store, err = db.OpenMemory(&s.options)
	}
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() { finish(t, store) })
	return store
}

// finish checks a store and closes it.
func finish(t testing.TB, store *db.Store) {
	t.Helper()
	_, err := store.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("dbtest: %v", f) })
	if err != nil && !errors.Is(err, db.ErrClosed) {
		t.Errorf("dbtest: check: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Errorf("dbtest: close: %v", err)
	}
}
