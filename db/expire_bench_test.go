package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// BenchmarkExpireStorm: what it takes to delete keys that are all due at one moment, per key.
func BenchmarkExpireStorm(b *testing.B) {
	for _, keys := range []int{10_000, 300_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				store, err := db.Open(b.TempDir(), &db.Options{ExpireEvery: -1, NoMerge: true})
				if err != nil {
					b.Fatal(err)
				}
				at := time.Now().Add(time.Duration(keys) * 20 * time.Microsecond)
				for i := 0; i < keys; i += 1000 {
					err := store.Update(func(tx *db.Tx) error {
						for j := i; j < min(i+1000, keys); j++ {
							if err := tx.String(fmt.Sprintf("key:%08d", j)).Put([]byte("value"), db.ExpireAt(at)); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				time.Sleep(time.Until(at) + 10*time.Millisecond)
				b.StartTimer()
				n, err := store.Expire(time.Hour, keys)
				b.StopTimer()
				if err != nil || n != keys {
					b.Fatalf("%d of %d keys expired, %v", n, keys, err)
				}
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
		})
	}
}
