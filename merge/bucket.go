package merge

import (
	"context"
	"time"
)

// bucket is a token bucket: rate bytes a second, and no more than a tenth of a
// second's worth at once.
type bucket struct {
	rate  float64
	have  float64
	since time.Time
}

func newBucket(bytesPerSecond int64) *bucket {
	return &bucket{rate: float64(bytesPerSecond), since: time.Now()}
}

// take waits until n bytes may be used. Without a rate it never waits.
func (b *bucket) take(ctx context.Context, n int) error {
	if b.rate <= 0 {
		return nil
	}
	now := time.Now()
	b.have = min(b.have+now.Sub(b.since).Seconds()*b.rate, b.rate/10)
	b.since = now
	b.have -= float64(n)
	if b.have >= 0 {
		return nil
	}
	wait := time.NewTimer(time.Duration(-b.have / b.rate * float64(time.Second)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return nil
	}
}
