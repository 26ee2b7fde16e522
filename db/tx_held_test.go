package db_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// TestHeld: what a transaction says of its memory is about what the heap has grown by.
func TestHeld(t *testing.T) {
	live := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for name, write := range map[string]func(tx *db.Tx, i int) error{
		"set": func(tx *db.Tx, i int) error {
			_, err := tx.Set("set").Add(fmt.Sprint("m", i))
			return err
		},
		"hash": func(tx *db.Tx, i int) error {
			_, err := tx.Hash("hash").Put(fmt.Sprint("field", i), []byte("value"))
			return err
		},
		"sorted set": func(tx *db.Tx, i int) error {
			_, err := tx.SortedSet("zset").Add(db.Scored{Member: fmt.Sprint("m", i), Score: float64(i)})
			return err
		},
		"list": func(tx *db.Tx, i int) error {
			_, err := tx.List("list").PushBack([]byte("element"))
			return err
		},
		"strings": func(tx *db.Tx, i int) error { return tx.String(fmt.Sprint("s", i)).Put([]byte("value")) },
		"long":    func(tx *db.Tx, i int) error { return tx.String(fmt.Sprint("s", i%100)).Put(make([]byte, 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			err := store.Update(func(tx *db.Tx) error {
				before := live()
				for i := range 100_000 {
					if err := write(tx, i); err != nil {
						return err
					}
				}
				grown, held := live()-before, serverside.DB.Held(tx)
				t.Logf("%d grown, %d held", grown, held)
				if held < grown*9/10-1<<20 || held > 3*grown+1<<20 {
					t.Errorf("the heap has grown by %d bytes, and the transaction says %d", grown, held)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
