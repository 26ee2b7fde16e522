package db_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestRangeWhileChanged: a range yields keys as they are when they are yielded, also of a page that has been read before:
// what is deleted, expires, gets another type or is swapped away during the loop.
func TestRangeWhileChanged(t *testing.T) {
	changes := map[string]struct {
		do   func(s *db.Store) error
		want []db.KeyInfo
	}{
		"nothing":   {func(*db.Store) error { return nil }, []db.KeyInfo{{"a", db.TypeString}, {"b", db.TypeString}, {"c", db.TypeHash}, {"d", db.TypeString}}},
		"delete":    {func(s *db.Store) error { return first(s.Key("b").Delete()) }, []db.KeyInfo{{"a", db.TypeString}, {"c", db.TypeHash}, {"d", db.TypeString}}},
		"overwrite": {func(s *db.Store) error { return s.String("c").Put(nil) }, []db.KeyInfo{{"a", db.TypeString}, {"b", db.TypeString}, {"c", db.TypeString}, {"d", db.TypeString}}},
		"expire": {func(*db.Store) error { time.Sleep(time.Minute); return nil },
			[]db.KeyInfo{{"a", db.TypeString}, {"b", db.TypeString}}},
		"expire and reap": {func(s *db.Store) error { time.Sleep(time.Minute); return first(s.Expire(time.Minute, 10)) },
			[]db.KeyInfo{{"a", db.TypeString}, {"b", db.TypeString}}},
		"swap":  {func(s *db.Store) error { return s.Swap(0, 1) }, []db.KeyInfo{{"a", db.TypeString}, {"d", db.TypeSet}}},
		"flush": {func(s *db.Store) error { return s.Flush() }, []db.KeyInfo{{"a", db.TypeString}}},
	}
	for name, change := range changes {
		for _, ordered := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1, OrderedKeys: ordered}, seam.Options{FS: vfs.NewMem()})))
					defer func() { must(t, s.Close()) }()
					must(t, s.String("a").Put(nil))
					must(t, s.String("b").Put(nil))
					must(t, first(s.Hash("c").Put("f", nil, db.TTL(time.Minute))))
					must(t, s.String("d").Put(nil, db.TTL(time.Minute)))
					must(t, first(ok[*db.Store](t)(s.Use(1)).Set("d").Add("m")))
					var got []db.KeyInfo
					for key, err := range s.Keyspace().Range(db.KeyRange{}) {
						must(t, err)
						if got = append(got, key); len(got) == 1 {
							must(t, change.do(s))
						}
					}
					if !slices.Equal(got, change.want) {
						t.Errorf("ordered %v: %v, want %v", ordered, got, change.want)
					}
				})
			})
		}
	}
}
