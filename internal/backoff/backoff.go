// Package backoff spaces the attempts of background work that fails: no loop may try again at full rate for ever, nor write a line
// to the log each time.
package backoff

import "time"

// Backoff is what is known of some work that may fail. The zero value says that it is due. It is for one goroutine at a time.
type Backoff struct {
	wait time.Duration
	next time.Time
	text string // Of the last failure.
}

// Due reports whether to try.
func (b *Backoff) Due() bool { return b.wait == 0 || !time.Now().Before(b.next) }

// Failing reports whether the last attempt failed.
func (b *Backoff) Failing() bool { return b.wait > 0 }

// Failed notes a failure: the next attempt is due after the shortest time, after the one behind that twice as long, and so on up to
// the longest. It reports whether the failure is another than the one before, which is worth a line in the log.
func (b *Backoff) Failed(shortest, longest time.Duration, err error) (news bool) {
	b.wait = min(max(2*b.wait, shortest), longest)
	b.next = time.Now().Add(b.wait)
	news = b.text != err.Error()
	b.text = err.Error()
	return news
}

// Worked notes a success. It reports whether that is news.
func (b *Backoff) Worked() (news bool) {
	news = b.Failing()
	*b = Backoff{}
	return news
}
