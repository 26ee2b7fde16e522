// Package backoff spaces the retries of background work that fails: no loop may retry at full rate, nor write a line to
// the log each time. A [Backoff] starts no goroutine and never sleeps: its owner asks whether a retry is due.
package backoff

import "time"

// Backoff is the state of some work that may fail. The zero value is due. It serves one goroutine at a time.
type Backoff struct {
	wait time.Duration
	next time.Time
	text string // Of the last failure.
}

// Due reports whether to try now.
func (b *Backoff) Due() bool { return b.wait == 0 || !time.Now().Before(b.next) }

// Failing reports whether the last attempt failed.
func (b *Backoff) Failing() bool { return b.wait > 0 }

// Failed records a failure: the next attempt is due after the shortest time, the one after that after twice the time,
// and so on up to the longest. It reports whether the failure differs from the last one, which is worth a line in the
// log.
func (b *Backoff) Failed(shortest, longest time.Duration, err error) (news bool) {
	b.wait = min(max(2*b.wait, shortest), longest)
	b.next = time.Now().Add(b.wait)
	news = b.text != err.Error()
	b.text = err.Error()
	return news
}

// Worked records a success. It reports whether the last attempt failed, which makes the success worth a line, too.
func (b *Backoff) Worked() (news bool) {
	news = b.Failing()
	*b = Backoff{}
	return news
}
