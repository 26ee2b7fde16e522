package db_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/caches"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestEvictRatios: a cache hits as often as an exact CLOCK of as many keys, or nearly so, and on a loop more often.
func TestEvictRatios(t *testing.T) {
	const most = 3000
	requests := 60_000
	if underRace {
		requests = 20_000
	}
	seed := chance.Seed(t)
	for _, trace := range caches.Traces(rand.New(rand.NewPCG(seed, 1)), 10*most) {
		t.Run(trace.Name, func(t *testing.T) {
			s := ok[*db.Store](t)(db.OpenMemory(&db.Options{Evict: db.Evict{Policy: db.EvictAllKeysLRU, Memory: 20 * most}, NoMerge: true}))
			defer func() { must(t, s.Close()) }()
			lru, clock, sieve := caches.NewLRU(most), caches.NewClock(most), caches.NewSieve(most)
			hits := [4]float64{}
			count := func(i int, hit bool) {
				if hit {
					hits[i] += 100 / float64(requests)
				}
			}
			for range requests {
				n := trace.Next()
				key := s.String(fmt.Sprint("key", n))
				_, err := key.Get()
				if errors.Is(err, db.ErrNotFound) {
					must(t, key.Put([]byte("value")))
				} else {
					must(t, err)
				}
				count(0, err == nil)
				count(1, lru.Get(n))
				count(2, clock.Get(n))
				count(3, sieve.Get(n))
			}
			t.Logf("%.1f %% of requests hit; exact LRU %.1f, CLOCK %.1f, SIEVE %.1f; %d keys of %d", hits[0], hits[1], hits[2], hits[3], s.Len(), most)
			if hits[0] < hits[2]-1.5 || s.Len() > most+1 || s.Len() < most*98/100 {
				t.Errorf("%.1f %% of requests hit, of an exact CLOCK %.1f; %d keys of %d", hits[0], hits[2], s.Len(), most)
			}
		})
	}
}
