package db_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/histogram"
)

// BenchmarkGetAlongside measures single gets of strings alongside writers: go test ./db -run '^$' -bench
// GetAlongside -benchtime 500000x, and again with -tags stave_locked, which has gets take the lock of their stripe.
func BenchmarkGetAlongside(b *testing.B) {
	const keys = 100_000
	key := func(i int) string { return fmt.Sprintf("key:%012d", i) }
	value := make([]byte, 128)
	for name, write := range map[string]func(store *db.Store, r *rand.Rand) error{
		"nobody": nil,
		"puts":   func(store *db.Store, r *rand.Rand) error { return store.String(key(r.IntN(keys))).Put(value) },
		"Update of 100 puts": func(store *db.Store, r *rand.Rand) error {
			defer time.Sleep(100 * time.Microsecond)
			return store.Update(func(tx *db.Tx) error {
				for range 100 {
					if err := tx.String(key(r.IntN(keys))).Put(value); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"Update of a millisecond": func(store *db.Store, r *rand.Rand) error {
			defer time.Sleep(time.Millisecond)
			return store.Update(func(tx *db.Tx) error {
				for began := time.Now(); time.Since(began) < time.Millisecond; {
				}
				return tx.String(key(r.IntN(keys))).Put(value)
			})
		},
	} {
		b.Run(name, func(b *testing.B) {
			store, err := db.Open(b.TempDir(), &db.Options{Sync: db.SyncNone})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			for i := range keys {
				if err := store.String(key(i)).Put(value); err != nil {
					b.Fatal(err)
				}
			}
			stop, done := make(chan struct{}), sync.WaitGroup{}
			if write != nil {
				done.Go(func() {
					for r := rand.New(rand.NewPCG(1, 2)); ; {
						select {
						case <-stop:
							return
						default:
						}
						if err := write(store, r); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			var h histogram.Histogram
			r, buf := rand.New(rand.NewPCG(3, 4)), make([]byte, 0, 256)
			for b.Loop() {
				began := time.Now()
				if buf, err = store.String(key(r.IntN(keys))).AppendTo(buf[:0]); err != nil {
					b.Fatal(err)
				}
				h.Add(time.Since(began))
			}
			close(stop)
			done.Wait()
			for _, q := range []float64{0.5, 0.99, 0.999, 0.9999} {
				b.ReportMetric(float64(h.Quantile(q))/1e3, fmt.Sprintf("p%g-us", 100*q))
			}
		})
	}
}
