package db_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

// TestWatchOfSwappedKeys: swapping namespaces changes a watched key if it existed, or exists in the other one. A key that
// has expired does not exist, as in Redis, whether or not it has been deleted.
func TestWatchOfSwappedKeys(t *testing.T) {
	const none, live, stale, dying = "none", "live", "stale", "dying"
	for _, own := range []string{none, live, stale, dying} {
		for _, other := range []string{none, live, stale} {
			for _, from := range []int{0, 1} {
				synctest.Test(t, func(t *testing.T) {
					s, err := db.Open(t.TempDir(), &db.Options{ExpireEvery: -1, NoMerge: true})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					for ns, what := range []string{own, other} {
						space, err := s.Use(ns)
						if err != nil {
							t.Fatal(err)
						}
						var o []db.WriteOption
						switch what {
						case none:
							continue
						case stale:
							o = append(o, db.TTL(time.Second))
						case dying:
							o = append(o, db.TTL(time.Minute))
						}
						if err := space.String("k").Put([]byte("v"), o...); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(2 * time.Second)
					w, err := s.Watch("k")
					if err != nil {
						t.Fatal(err)
					}
					defer w.Close()
					time.Sleep(time.Hour)
					if err := s.Swap(from, 1-from); err != nil {
						t.Fatal(err)
					}
					err = s.View(func(tx *db.Tx) error {
						changed, err := w.Changed(tx)
						if want := own == live || own == dying || other == live; err == nil && changed != want {
							t.Errorf("%s, swapped with %s: changed %t, want %t", own, other, changed, want)
						}
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}
