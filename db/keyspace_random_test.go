package db_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// wantEven draws from n names, and compares how often each came with the mean: chi square is within six standard
// deviations, and some more for few names.
func wantEven(t *testing.T, what string, n int, draw func() ([]string, error)) {
	t.Helper()
	const each = 20
	seen := map[string]int{}
	total := 0
	for total < each*n {
		names := ok[[]string](t)(draw())
		for _, name := range names {
			seen[name]++
		}
		total += len(names)
	}
	mean := float64(total) / float64(n)
	chi := float64(n-len(seen)) * mean
	for _, times := range seen {
		chi += (float64(times) - mean) * (float64(times) - mean) / mean
	}
	free := float64(n - 1)
	if most := free + 6*math.Sqrt(2*free) + 20; chi > most || len(seen) > n {
		t.Errorf("%s of %d, %d of which were drawn: chi square is %.0f, want at most %.0f", what, n, len(seen), chi, most)
	}
}

// TestRandomIsEven: whatever draws at random gives everything the same chance: keys of all types, with deadlines of keys, of fields
// and groups alongside, on a store and within a transaction; and what collections have.
func TestRandomIsEven(t *testing.T) {
	for _, n := range []int{2, 64, 65, 100, 600, 2000} {
		s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()})))
		must(t, s.Update(func(tx *db.Tx) error {
			for i := range n {
				if err := putOfKind(tx, fmt.Sprint("k", i), i%5); err != nil {
					return err
				}
			}
			for i := range n / 10 {
				if err := tx.String(fmt.Sprint("gone", i)).Put(nil, db.TTL(time.Millisecond)); err != nil {
					return err
				}
			}
			return nil
		}))
		time.Sleep(2 * time.Millisecond)
		one := func(name string, err error) ([]string, error) { return []string{name}, err }
		wantEven(t, "keys", n, func() ([]string, error) { return one(s.Keyspace().RandomKey()) })
		must(t, s.View(func(tx *db.Tx) error {
			wantEven(t, "keys of a transaction", n, func() ([]string, error) { return one(tx.Keyspace().RandomKey()) })
			return nil
		}))
		must(t, s.Close())
	}
}

// TestRandomElementsAreEven is the same for what collections have: one, several different ones, and several that may repeat.
func TestRandomElementsAreEven(t *testing.T) {
	s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()})))
	defer func() { must(t, s.Close()) }()
	for _, n := range []int{2, 30, 1000} {
		must(t, s.Update(func(tx *db.Tx) (err error) {
			for i := range n {
				name := fmt.Sprint(i)
				err = errors.Join(err, first(tx.Set("s").Add(name)), first(tx.SortedSet("z").Add(db.Scored{Member: name, Score: float64(i)})),
					first(tx.Hash("h").Put(name, nil)), first(tx.Hash("hidden").Put(name, nil)), first(tx.Hash("hidden").Put("gone"+name, nil, db.TTL(time.Millisecond))))
			}
			return err
		}))
		time.Sleep(2 * time.Millisecond)
		for _, count := range []int{1, 2, -3, 1 + n/20} {
			wantEven(t, fmt.Sprint("members, by ", count), n, func() ([]string, error) { return s.Set("s").Random(count) })
			wantEven(t, fmt.Sprint("scored members, by ", count), n, func() (names []string, _ error) {
				list, err := s.SortedSet("z").Random(count)
				for _, m := range list {
					names = append(names, m.Member)
				}
				return names, err
			})
			for _, key := range []string{"h", "hidden"} {
				if key == "hidden" && n > 30 {
					continue // each call passes over all fields
				}
				wantEven(t, fmt.Sprint("fields of ", key, ", by ", count), n, func() (names []string, _ error) {
					list, err := s.Hash(key).Random(count)
					for _, f := range list {
						names = append(names, f.Name)
					}
					return names, err
				})
			}
		}
		wantEven(t, "popped members", n, func() ([]string, error) {
			names, err := s.Set("s").Pop(1)
			return names, errors.Join(err, first(s.Set("s").Add(names...)))
		})
	}
}

// putOfKind makes a key of one of five kinds.
func putOfKind(tx *db.Tx, key string, kind int) error {
	switch kind {
	case 0:
		return tx.String(key).Put([]byte("value"))
	case 1:
		return tx.String(key).Put(nil, db.TTL(time.Hour))
	case 2:
		return errors.Join(first(tx.Hash(key).PutAll(db.Field{Name: "f"}, db.Field{Name: "g"})), first(tx.Hash(key).ExpireFields(time.Hour, []string{"f"})))
	case 3:
		return errors.Join(first(tx.Stream(key).Add(db.Field{Name: "f"})), tx.Stream(key).Group("g").Create(db.StreamGroupStart{}))
	}
	return errors.Join(first(tx.Set(key).Add("m")), first(tx.Key(key).Expire(time.Hour)))
}
