package main

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
	var h histogram
	for i := 1; i <= 10_000; i++ {
		h.add(time.Duration(i))
	}
	for _, test := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 5001}, {0.99, 9901}, {0.999, 9991}, {1, 10_000}} {
		if got := h.quantile(test.q); got < test.want || float64(got) > float64(test.want)*(1+1.0/64) {
			t.Errorf("quantile %v is %d, want about %d", test.q, got, test.want)
		}
	}
}
