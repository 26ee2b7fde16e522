package transport

import (
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// What is tried again and again, such as the link to a master that is away, is logged when it changes, and after that at a
// decreasing rate: a log that grows with every try hides everything else.

// steady is how long a connection must have lasted for the next failure to be a new matter.
const steady = time.Minute

// isNoted reports whether the event of a number is logged: the first one, and those whose number is a power of two.
func isNoted(n int) bool { return n&(n-1) == 0 }

// retries are those of one link since it was last up for so long. Only its goroutine uses it.
type retries struct {
	failures int
	ups      int
	kinds    map[string]struct{} // of failures that were logged
	upSince  time.Time           // zero while it is down
}

// maxKinds bounds the kinds of failures that are told apart.
const maxKinds = 8

// digits are what differs between failures of one kind: ports, numbers, times.
var digits = regexp.MustCompile(`[0-9]+`)

// failed counts a failure, and reports whether it is to be logged.
func (r *retries) failed(err error, now time.Time) (isLogged bool) {
	if !r.upSince.IsZero() && now.Sub(r.upSince) >= steady {
		*r = retries{}
	}
	r.upSince = time.Time{}
	r.failures++
	kind := digits.ReplaceAllString(err.Error(), "#")
	if _, known := r.kinds[kind]; known || len(r.kinds) == maxKinds {
		return isNoted(r.failures)
	}
	if r.kinds == nil {
		r.kinds = map[string]struct{}{}
	}
	r.kinds[kind] = struct{}{}
	return true
}

// begins reports whether the beginning of a try is to be logged.
func (r *retries) begins() (isLogged bool) { return isNoted(r.failures + 1) }

// up notes that a try has worked, and reports whether that is to be logged.
func (r *retries) up(now time.Time) (isLogged bool) {
	r.upSince = now
	r.ups++
	return isNoted(r.ups)
}

// forLog is an error as the log has it: one that names keys or values, wherever it is in a chain, says itself what is left
// out (slog.LogValuer), which slog does not find within another error.
func forLog(err error) any {
	var own slog.LogValuer
	if errors.As(err, &own) {
		return own
	}
	return err
}

// visits counts how often replicas have come whose connections did not last, by address.
type visits struct {
	mu    sync.Mutex
	count map[string]int
}

// maxVisitors bounds the addresses.
const maxVisitors = 64

// begin counts a visit, and reports whether it is to be logged.
func (v *visits) begin(address string) (number int, isLogged bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.count == nil || len(v.count) >= maxVisitors && v.count[address] == 0 {
		v.count = map[string]int{}
	}
	v.count[address]++
	return v.count[address], isNoted(v.count[address])
}

// end ends one that has lasted for so long.
func (v *visits) end(address string, lasted time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if lasted >= steady {
		delete(v.count, address)
	}
}
