package db_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// BenchmarkGetEvicting compares gets of a full cache with those of a store without a bound, in turns of a thousand: their
// medians, and how many times as long the cache takes.
func BenchmarkGetEvicting(b *testing.B) {
	const keys = 100_000
	var stores [2]*db.Store
	for i, evict := range []db.Evict{{}, {Policy: db.EvictAllKeysLRU, Memory: 20 * keys}} {
		store, err := db.Open(b.TempDir(), &db.Options{Sync: db.SyncNone, Evict: evict})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		stores[i] = store
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key:%012d", i)
		for _, store := range stores {
			if err := store.String(names[i]).Put(make([]byte, 128)); err != nil {
				b.Fatal(err)
			}
		}
	}
	var took [2][]time.Duration
	r, buf := rand.New(rand.NewPCG(3, 4)), make([]byte, 0, 256)
	for b.Loop() {
		for i, store := range stores {
			from, began := r.IntN(keys-1000), time.Now()
			for _, name := range names[from : from+1000] {
				var err error
				if buf, err = store.String(name).AppendTo(buf[:0]); err != nil && i == 0 {
					b.Fatal(err)
				}
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2]) / 1000
	}
	b.ReportMetric(median(took[0]), "ns/get")
	b.ReportMetric(median(took[1]), "ns/get-evicting")
	b.ReportMetric(median(took[1])/median(took[0]), "times")
}
