package dbtest_test

import (
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
)

// leader is the function under test: it returns the member with the highest score.
func leader(store *db.Store) (string, error) {
	best, err := store.SortedSet("board").Range(db.RankRange{Reverse: true})
	if err != nil || len(best) == 0 {
		return "", err
	}
	return best[0].Member, nil
}

// A test gets a store of its own, which is checked and closed when it ends.
func ExampleNew() {
	_ = func(t *testing.T) {
		store := dbtest.New(t)
		if _, err := store.SortedSet("board").Add(db.Scored{Member: "Ada", Score: 42}, db.Scored{Member: "Mary", Score: 37}); err != nil {
			t.Fatal(err)
		}
		if got, err := leader(store); err != nil || got != "Ada" {
			t.Errorf("leader = %q, %v", got, err)
		}
	}
}

// A benchmark that is to pay for syncs wants a directory.
func ExampleInDirectory() {
	_ = func(b *testing.B) {
		store := dbtest.New(b, dbtest.InDirectory(), dbtest.WithOptions(db.Options{Sync: db.SyncAlways}))
		for b.Loop() {
			if _, err := store.List("log").PushBack([]byte("line")); err != nil {
				b.Fatal(err)
			}
		}
	}
}
