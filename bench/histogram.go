package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are at most 1/64 wide relative to
// their value: 64 buckets for every power of two of nanoseconds, as in
// HdrHistogram.
type histogram struct {
	counts [64 * 59]uint64
	total  uint64
	max    time.Duration
}

const subBuckets = 64

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 7 // leaves 7 bits, the highest set
	return shift*subBuckets + int(v>>shift)
}

// bucketTop is the largest duration of a bucket.
func bucketTop(i int) time.Duration {
	if i < 2*subBuckets {
		return time.Duration(i)
	}
	shift := i/subBuckets - 1
	return time.Duration(uint64(i-shift*subBuckets+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
	h.max = max(h.max, d)
}

// quantile returns a duration that the share q of all does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	need := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen > need {
			return min(bucketTop(i), h.max)
		}
	}
	return h.max
}
