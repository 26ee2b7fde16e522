package merge

import (
	"context"
	"time"
)

// bucket is a token bucket: rate bytes a second, and no more than a fiftieth of
// a second's worth at once, so that what it lets through comes in small portions.
// What the log grows by gives more: a merge that was slower than the writers
// make garbage would never end.
type bucket struct {
	rate     float64
	have     float64
	since    time.Time
	appended func() int64 // bytes the log has grown by so far
	seen     int64        // of them
}

// keepUp is how many bytes a merge may read and write for each byte appended.
// With the default policy about two suffice: from a segment that is 60 % dead,
// 0.4 bytes are read and 0.4 written for 0.6 given back.
const keepUp = 4

func newBucket(bytesPerSecond int64, appended func() int64) *bucket {
	return &bucket{rate: float64(bytesPerSecond), since: time.Now(), appended: appended, seen: appended()}
}

// take waits until n bytes may be used. Without a rate it never waits.
func (b *bucket) take(ctx context.Context, n int) error {
	if b.rate <= 0 {
		return nil
	}
	b.fill()
	b.have -= float64(n)
	for b.have < 0 {
		const longest = 20 * time.Millisecond // then the log may have grown
		// Rounded up: what is missing may be worth less than a nanosecond.
		wait := time.NewTimer(min(time.Duration(-b.have/b.rate*float64(time.Second))+time.Microsecond, longest))
		select {
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		case <-wait.C:
		}
		b.fill()
	}
	return nil
}

func (b *bucket) fill() {
	now, appended := time.Now(), b.appended()
	b.have += now.Sub(b.since).Seconds()*b.rate + float64(appended-b.seen)*keepUp
	b.have = min(b.have, b.rate/50)
	b.since, b.seen = now, appended
}
