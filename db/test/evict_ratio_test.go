package db_test

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
)

// zipf draws numbers below n, number i with a weight of 1/(i+1)^s.
func zipf(rng *rand.Rand, n int, s float64) func() int {
	sums, sum := make([]float64, n), 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s)
		sums[i] = sum
	}
	return func() int { return sort.SearchFloat64s(sums, rng.Float64()*sum) }
}

// exactCache is a cache of so many keys by a textbook's algorithm, in a list: the oldest key is at its back.
type exactCache struct {
	most  int
	order *list.List // of int
	keys  map[int]*list.Element
	used  map[int]bool
	hand  *list.Element // of SIEVE
	evict func(c *exactCache) int
	touch func(c *exactCache, key int)
}

func newExact(most int, touch func(*exactCache, int), evict func(*exactCache) int) *exactCache {
	return &exactCache{most: most, order: list.New(), keys: map[int]*list.Element{}, used: map[int]bool{}, touch: touch, evict: evict}
}

func (c *exactCache) get(key int) (hit bool) {
	if c.keys[key] != nil {
		c.touch(c, key)
		return true
	}
	if c.order.Len() == c.most {
		gone := c.evict(c)
		c.order.Remove(c.keys[gone])
		delete(c.keys, gone)
	}
	c.keys[key] = c.order.PushFront(key)
	return false
}

func exactLRU(most int) *exactCache {
	return newExact(most, func(c *exactCache, key int) { c.order.MoveToFront(c.keys[key]) }, func(c *exactCache) int { return c.order.Back().Value.(int) })
}

// exactClock is the second chance: what was used goes to the front, once.
func exactClock(most int) *exactCache {
	return newExact(most, func(c *exactCache, key int) { c.used[key] = true }, func(c *exactCache) int {
		for {
			key := c.order.Back().Value.(int)
			if !c.used[key] {
				return key
			}
			delete(c.used, key)
			c.order.MoveToFront(c.order.Back())
		}
	})
}

// exactSieve is SIEVE (Zhang et al., NSDI 2024): what was used stays where it is.
func exactSieve(most int) *exactCache {
	return newExact(most, func(c *exactCache, key int) { c.used[key] = true }, func(c *exactCache) int {
		at := c.hand
		for {
			if at == nil {
				at = c.order.Back()
			}
			key := at.Value.(int)
			if !c.used[key] {
				c.hand = at.Prev()
				return key
			}
			delete(c.used, key)
			at = at.Prev()
		}
	})
}

// ratioTraces are public kinds of traces: requests for numbers below ten times the size of a cache.
func ratioTraces(rng *rand.Rand, n int) map[string]func() int {
	scan, loop, skewed := 0, 0, zipf(rng, n, 0.9)
	return map[string]func() int{
		"Zipf 0.7": zipf(rng, n, 0.7), "Zipf 0.9": zipf(rng, n, 0.9), "Zipf 1.2": zipf(rng, n, 1.2),
		"half a scan": func() int {
			if rng.IntN(2) == 0 {
				scan++
				return n + scan
			}
			return skewed()
		},
		"loop": func() int { // a fifth longer than the cache
			loop = (loop + 1) % (n / 10 * 6 / 5)
			return loop
		},
	}
}

// TestEvictRatios: a cache hits as often as an exact CLOCK of as many keys, or nearly so, and on a loop more often.
func TestEvictRatios(t *testing.T) {
	const most = 3000
	requests := 60_000
	if underRace {
		requests = 20_000
	}
	seed := chance.Seed(t)
	names := ratioTraces(rand.New(rand.NewPCG(seed, 1)), 10*most)
	for name := range names {
		t.Run(name, func(t *testing.T) {
			s := ok[*db.Store](t)(db.OpenMemory(&db.Options{Evict: db.Evict{Policy: db.EvictAllKeysLRU, Memory: 20 * most}, NoMerge: true}))
			defer func() { must(t, s.Close()) }()
			lru, clock, sieve := exactLRU(most), exactClock(most), exactSieve(most)
			next, hits := ratioTraces(rand.New(rand.NewPCG(seed, 1)), 10*most)[name], [4]float64{}
			count := func(i int, hit bool) {
				if hit {
					hits[i] += 100 / float64(requests)
				}
			}
			for range requests {
				n := next()
				key := s.String(fmt.Sprint("key", n))
				_, err := key.Get()
				if errors.Is(err, db.ErrNotFound) {
					must(t, key.Put([]byte("value")))
				} else {
					must(t, err)
				}
				count(0, err == nil)
				count(1, lru.get(n))
				count(2, clock.get(n))
				count(3, sieve.get(n))
			}
			t.Logf("%.1f %% of requests hit; exact LRU %.1f, CLOCK %.1f, SIEVE %.1f; %d keys of %d", hits[0], hits[1], hits[2], hits[3], s.Len(), most)
			if hits[0] < hits[2]-1.5 || s.Len() > most+1 || s.Len() < most*98/100 {
				t.Errorf("%.1f %% of requests hit, of an exact CLOCK %.1f; %d keys of %d", hits[0], hits[2], s.Len(), most)
			}
		})
	}
}
