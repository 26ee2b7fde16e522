package merge

import (
	"context"
	"time"
)

// throttle limits how fast a merge reads and writes. It is a token bucket: rate bytes a
// second, and no more than a fiftieth of a second's worth at once, so that they are used in
// small portions. Growth of the log adds to it: a merge slower than the writers make
// garbage would never end.
type throttle struct {
	rate     float64
	have     float64
	since    time.Time
	appended func() int64 // bytes the log has grown by so far
	counted  int64        // of them
}

// keepUp is how many bytes a merge may read and write for each byte appended.
// With the default policy about two suffice: from a segment that is 60 % dead,
// 0.4 bytes are read and 0.4 written for 0.6 given back.
const keepUp = 4

func newThrottle(bytesPerSecond int64, appended func() int64) *throttle {
	return &throttle{rate: float64(bytesPerSecond), since: time.Now(), appended: appended, counted: appended()}
}

// take waits until n bytes may be used. It never waits if the rate is not positive.
func (t *throttle) take(ctx context.Context, n int) error {
	if t.rate <= 0 {
		return nil
	}
	t.fill()
	t.have -= float64(n)
	for t.have < 0 {
		const longest = 20 * time.Millisecond // the log may have grown by then
		// Rounded up: the missing bytes may take less than a nanosecond.
		wait := time.NewTimer(min(time.Duration(-t.have/t.rate*float64(time.Second))+time.Microsecond, longest))
		select {
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		case <-wait.C:
		}
		t.fill()
	}
	return nil
}

// fill adds the bytes of the time and of the log's growth since the last call.
func (t *throttle) fill() {
	now, appended := time.Now(), t.appended()
	t.have += now.Sub(t.since).Seconds()*t.rate + float64(appended-t.counted)*keepUp
	t.have = min(t.have, t.rate/50)
	t.since, t.counted = now, appended
}
