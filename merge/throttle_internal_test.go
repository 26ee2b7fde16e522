package merge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestThrottle(t *testing.T) {
	const rate = 10 << 20
	for name, tt := range map[string]struct {
		rate     int64
		appended int64 // bytes a second
		want     time.Duration
	}{
		"alone":             {rate, 0, 4 * time.Second},
		"beside a writer":   {rate, rate * 3 / keepUp, time.Second},
		"beside a fast one": {rate, 10 * rate, time.Second},
		"without a rate":    {-1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				b := newThrottle(tt.rate, func() int64 { return int64(time.Since(start).Seconds() * float64(tt.appended)) })
				var longest time.Duration
				for range 640 {
					before := time.Now()
					if err := b.take(t.Context(), rate*4/640); err != nil {
						t.Fatal(err)
					}
					longest = max(longest, time.Since(before))
				}
				if took := time.Since(start); took > tt.want+tt.want/10 || tt.appended <= rate && took < tt.want-tt.want/10 {
					t.Errorf("%d bytes took %v, want about %v", 4*rate, took, tt.want)
				}
				if longest > 20*time.Millisecond {
					t.Errorf("one portion took %v", longest)
				}
			})
		})
	}
}

// A rest too small for the clock is waited for as well.
func TestThrottleWaitsForRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThrottle(64<<20, func() int64 { return 0 })
		b.have = 58303 - 1e-3
		if err := b.take(t.Context(), 58303); err != nil {
			t.Error(err)
		}
	})
}

func TestThrottleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		b := newThrottle(1000, func() int64 { return 0 })
		if err := b.take(ctx, 1<<20); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
