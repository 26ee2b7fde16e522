package histogram

import (
	"math"
	"testing"
	"time"
)

// Every duration lies in a bucket whose top is at most 1/64 above it.
func TestHistogramBuckets(t *testing.T) {
	last := -1
	for _, d := range []time.Duration{0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 1000, 4095, 4096, 1e6, 1e9, 3600e9, math.MaxInt64} {
		i := bucketOf(d)
		if i <= last && d > 64 && i < last {
			t.Errorf("%d: bucket %d after bucket %d", d, i, last)
		}
		last = i
		if top := bucketTop(i); top < d || float64(top-d) > float64(d)/64 {
			t.Errorf("%d: bucket %d ends at %d", d, i, top)
		}
	}
}

func TestHistogramQuantiles(t *testing.T) {
	var h Histogram
	for i := 1; i <= 10_000; i++ {
		h.Add(time.Duration(i))
	}
	for _, test := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 5001}, {0.99, 9901}, {0.999, 9991}, {1, 10_000}} {
		if got := h.Quantile(test.q); got < test.want || float64(got) > float64(test.want)*(1+1.0/64) {
			t.Errorf("quantile %v is %d, want about %d", test.q, got, test.want)
		}
	}
}

// Octaves cover every duration once, in order, and say where each began.
func TestHistogramOctaves(t *testing.T) {
	var h, other Histogram
	for _, d := range []time.Duration{5, 6, 7, 8, 100} {
		h.Add(d)
	}
	other.Add(127)
	other.Add(1000)
	h.Merge(&other)
	want := []struct {
		from time.Duration
		n    uint64
	}{{4, 3}, {8, 1}, {16, 0}, {32, 0}, {64, 2}, {128, 0}, {256, 0}, {512, 1}}
	i := 0
	for from, n := range h.Octaves() {
		if i == len(want) || from != want[i].from || n != want[i].n {
			t.Fatalf("octave %d: %d from %d", i, n, from)
		}
		i++
	}
	if i != len(want) || h.Count() != 7 || h.Max() != 1000 {
		t.Errorf("%d octaves, %d durations, the longest %d", i, h.Count(), h.Max())
	}
	var zero Histogram
	zero.Add(0)
	zero.Add(math.MaxInt64)
	var sum uint64
	for _, n := range zero.Octaves() {
		sum += n
	}
	if sum != 2 {
		t.Errorf("%d of 2 durations at the ends of the range", sum)
	}
}
