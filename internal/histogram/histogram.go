// Package histogram counts durations in buckets of constant relative width, as
// HdrHistogram does: 64 buckets for every power of two of nanoseconds. So a quantile
// is at most 1/64 too high, whatever its size, a [Histogram] takes 30 KB, and adding a
// duration some nanoseconds. A histogram serves one goroutine; [Histogram.Merge] adds
// several up.
package histogram

import (
	"iter"
	"math/bits"
	"time"
)

const subBuckets = 64

// Histogram counts durations. The zero value is empty.
type Histogram struct {
	counts [subBuckets * 59]uint64
	total  uint64
	max    time.Duration
}

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 7 // leaves 7 bits, the highest set
	return shift*subBuckets + int(v>>shift)
}

// bucketTop returns the longest duration of a bucket.
func bucketTop(i int) time.Duration {
	if i < 2*subBuckets {
		return time.Duration(i)
	}
	shift := i/subBuckets - 1
	return time.Duration(uint64(i-shift*subBuckets+1)<<shift - 1)
}

// Add counts one duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
	h.max = max(h.max, d)
}

// Merge adds what another histogram counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Count is how many durations were added.
func (h *Histogram) Count() uint64 { return h.total }

// Max is the longest of them.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns a duration that the share q of all durations does not exceed; for
// q = 1 it is the longest. An empty histogram returns 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	need := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen > need {
			return min(bucketTop(i), h.max)
		}
	}
	return h.max
}

// Octaves yields, from the shortest duration added to the longest, each power
// of two of nanoseconds and how many durations were at least as long as it and
// shorter than the next.
func (h *Histogram) Octaves() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		var seen uint64
		for exponent, next := 0, 0; exponent < 63 && seen < h.total; exponent++ {
			var n uint64
			for ; next < len(h.counts) && uint64(bucketTop(next)) < 1<<(exponent+1); next++ {
				n += h.counts[next]
			}
			if seen += n; seen > 0 && !yield(1<<exponent, n) {
				return
			}
		}
	}
}
