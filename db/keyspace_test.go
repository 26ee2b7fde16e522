package db_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// TestKeysOfAStore: a store, which walks through its log, has the same keys and types as a transaction, which scans its index.
func TestKeysOfAStore(t *testing.T) {
	rng := chance.Rand(t)
	synctest.Test(t, func(t *testing.T) { keysOfAStore(t, rng) })
}

func keysOfAStore(t *testing.T, rng *rand.Rand) {
	s, err := db.Open("data", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for range 50 {
		for range 100 {
			key := fmt.Sprint(rng.IntN(2000))
			switch rng.IntN(5) {
			case 0:
				ok[int](t)(s.Keyspace().Delete(key, fmt.Sprint(rng.IntN(2000))))
			case 1:
				ok[int](t)(s.Keyspace().Delete(key))
				ok[int](t)(s.Set(key).Add("member"))
			case 2:
				must(t, s.String(key).Put(nil, db.TTL(time.Millisecond)))
			default:
				must(t, s.String(key).Put([]byte(key)))
			}
		}
		time.Sleep(time.Millisecond) // some have expired
		types := func(k db.Keyspace) []string {
			var list []string
			for info := range each(t, k.All()) {
				list = append(list, fmt.Sprint(info.Key, " ", info.Type))
			}
			slices.Sort(list)
			return list
		}
		all := types(s.Keyspace())
		must(t, s.View(func(tx *db.Tx) error {
			equal(t, "All", text(all), text(types(tx.Keyspace())))
			return nil
		}))
		for _, pattern := range []string{"*", "1*", "*[02468]", "17", "none"} {
			got := ok[[]string](t)(s.Keyspace().Keys(pattern))
			var want []string
			must(t, s.View(func(tx *db.Tx) (err error) {
				want, err = tx.Keyspace().Keys(pattern)
				return err
			}))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q of the store, %q of a transaction", pattern, got, want)
			}
		}
	}
}

// TestInterruptedKeys: a command that nobody waits for any more ends at once, among strings and among other keys.
func TestInterruptedKeys(t *testing.T) {
	const keys = 100_000
	stop := errors.New("stop")
	for kind, add := range map[string]func(tx *db.Tx, key string) error{
		"strings": func(tx *db.Tx, key string) error { return tx.String(key).Put(nil) },
		"sets":    func(tx *db.Tx, key string) error { _, err := tx.Set(key).Add("member"); return err },
	} {
		s := openMemory(t)
		must(t, s.Update(func(tx *db.Tx) (err error) {
			for i := 0; i < keys && err == nil; i++ {
				err = add(tx, fmt.Sprint(i))
			}
			return err
		}))
		all := 0
		equal(t, "keys", len(ok[[]string](t)(serverside.DB.InterruptibleKeyspace(s, func() error { all++; return nil }).Keys("*"))), keys)
		if all < keys/256 {
			t.Errorf("%d %s ask %d times", keys, kind, all)
		}
		for _, last := range []int{1, 2, all / 2, all} {
			asked := 0
			_, err := serverside.DB.InterruptibleKeyspace(s, func() error {
				if asked++; asked == last {
					return stop
				}
				return nil
			}).Keys("*")
			if !errors.Is(err, stop) || asked != last {
				t.Errorf("%s: asked %d times, not %d: %v", kind, asked, last, err)
			}
		}
	}
}
