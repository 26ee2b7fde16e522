package latency

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations from about a microsecond to a quarter of an hour, in eight buckets for
// every power of two, so that a percentile is at most an eighth too high. What is shorter or longer is in the
// first or the last one.
type Histogram struct {
	counts [octaves * subs]atomic.Int64
}

const (
	subs    = 8
	octaves = 30
	least   = 1024 // nanoseconds: the top of the octave before the first
)

// bucketOf is the bucket of a duration.
func bucketOf(d time.Duration) int {
	if d <= least {
		return 0
	}
	octave := min(bits.Len64(uint64(d-1)/least)-1, octaves-1)
	low := int64(least) << octave
	sub := (int64(d) - low - 1) * subs / low
	return min(octave*subs+int(sub), octaves*subs-1)
}

// bucketTop is the longest duration of a bucket.
func bucketTop(bucket int) time.Duration {
	low := int64(least) << (bucket / subs)
	return time.Duration(low + low*int64(bucket%subs+1)/subs)
}

// Note counts executions that took so long each.
func (h *Histogram) Note(each time.Duration, calls int64) {
	h.counts[bucketOf(each)].Add(calls)
}

// total is the number of executions.
func (h *Histogram) total() (n int64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// Percentile is a duration that so many of a hundred executions did not exceed.
func (h *Histogram) Percentile(percent float64) time.Duration {
	total := h.total()
	need := int64(math.Ceil(percent / 100 * float64(total)))
	var seen int64
	for i := range h.counts {
		n := h.counts[i].Load()
		if seen += n; n > 0 && seen >= need {
			return bucketTop(i)
		}
	}
	return 0
}

// Octaves are the microseconds up to which the histogram is summed, and the sums, without those in which
// nothing new is: the form of LATENCY HISTOGRAM. The bounds are Redis's, which are rounded up a little.
func (h *Histogram) Octaves() (micros, sums []int64) {
	var sum, before int64
	for octave := -1; octave < octaves; octave++ {
		if octave < 0 {
			sum += h.counts[0].Load()
		} else {
			for i := octave * subs; i < (octave+1)*subs; i++ {
				if i > 0 {
					sum += h.counts[i].Load()
				}
			}
		}
		if sum > before {
			top := int64(least) << (octave + 1)
			micros, sums = append(micros, (top+top/128-1)/1000), append(sums, sum)
		}
		before = sum
	}
	return micros, sums
}
