package db_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestFailedUpdateChangesNothing: a closure that returns an error or panics has
// done nothing, whatever it did, at once and after the store is opened again.
func TestFailedUpdateChangesNothing(t *testing.T) {
	no := errors.New("no")
	changes := map[string]func(t *testing.T, tx *db.Tx, keys []string){
		"removals": func(t *testing.T, tx *db.Tx, keys []string) {
			for _, key := range keys {
				equal(t, "deleted", ok[bool](t)(tx.Key(key).Delete()), true)
			}
		},
		"edits": func(t *testing.T, tx *db.Tx, keys []string) {
			must(t, tx.String("string").Put([]byte("other")))
			ok[bool](t)(tx.Hash("hash").Put("f", []byte("other")))
			ok[int](t)(tx.Hash("hash").Delete(""))
			ok[[]byte](t)(tx.List("list").PopFront())
			must(t, tx.List("list").Set(0, []byte("other")))
			ok[int](t)(tx.Set("set").Remove("a"))
			ok[int](t)(tx.Set("set").Add("c"))
			ok[int](t)(tx.SortedSet("zset").Add(db.Scored{Member: "m", Score: 7}))
			ok[int](t)(tx.SortedSet("zset").Remove(""))
		},
		"other types": func(t *testing.T, tx *db.Tx, keys []string) {
			for i, key := range keys {
				must(t, tx.Key(key).Rename("aside"))
				must(t, tx.Key("aside").Rename(keys[(i+1)%len(keys)]))
			}
		},
		"deadlines": func(t *testing.T, tx *db.Tx, keys []string) {
			for _, key := range keys {
				equal(t, "deadline taken away", ok[bool](t)(tx.Key(key).Persist()), true)
				ok[bool](t)(tx.Key(key).Expire(3 * time.Hour))
			}
		},
		"new keys": func(t *testing.T, tx *db.Tx, _ []string) {
			must(t, tx.String("new string").Put(nil, db.TTL(time.Hour)))
			ok[int](t)(tx.Set("new set").Add("a"))
			ok[int](t)(tx.List("new list").PushBack([]byte("a")))
		},
	}
	for name, change := range changes {
		for _, panics := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				mem := vfs.NewMem()
				options := seam.With(&db.Options{OrderedKeys: true}, seam.Options{FS: mem})
				s := ok[*db.Store](t)(db.Open("d", options))
				keys := oneOfEach(t, s)
				for _, key := range keys {
					ok[bool](t)(s.Key(key).Expire(time.Hour))
				}
				before := whole(t, s)

				func() {
					defer func() {
						if got := recover(); (got != nil) != panics {
							t.Errorf("a panic: %v, wanted: %v", got, panics)
						}
					}()
					err := s.Update(func(tx *db.Tx) error {
						change(t, tx, keys)
						if panics {
							panic(no)
						}
						return no
					})
					if err != no {
						t.Errorf("Update returned %v", err)
					}
				}()
				equal(t, "after it", whole(t, s), before)
				must(t, s.Close())
				s = ok[*db.Store](t)(db.Open("d", options))
				equal(t, "opened again", whole(t, s), before)
				must(t, s.Close())
			})
		}
	}
}
