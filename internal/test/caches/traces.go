package caches

import (
	"math"
	"math/rand/v2"
	"sort"
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

// Trace is a kind of requests: Next returns the number of the next key.
type Trace struct {
	Name string
	Next func() int
}

// Traces are public kinds of requests for a cache that holds a tenth of n keys.
func Traces(rng *rand.Rand, n int) []Trace {
	scan, loop, skewed := 0, 0, zipf(rng, n, 0.9)
	return []Trace{
		{"Zipf 0.7", zipf(rng, n, 0.7)}, {"Zipf 0.9", skewed}, {"Zipf 1.2", zipf(rng, n, 1.2)},
		{"half a scan", func() int {
			if rng.IntN(2) == 0 {
				scan++
				return n + scan
			}
			return skewed()
		}},
		{"loop", func() int { // a fifth longer than the cache
			loop = (loop + 1) % (n / 10 * 6 / 5)
			return loop
		}},
	}
}
