package transport

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestRetriesAreLoggedRarely: a thousand failures leave few lines, of each kind at least one, and a link that goes up and down
// all the time does not leave more; after it was up for a while all begins anew.
func TestRetriesAreLoggedRarely(t *testing.T) {
	now := time.Unix(1, 0)
	var r retries
	lines := func(rounds int, isUp bool, fail func(n int) error) (n int) {
		for i := range rounds {
			if r.begins() {
				n++
			}
			if isUp && r.up(now) {
				n++
			}
			if now = now.Add(10 * time.Second); r.failed(fail(i), now) {
				n++
			}
		}
		return n
	}
	port := func(n int) error { return fmt.Errorf("read tcp 127.0.0.1:%d: connection reset", 40000+n) }
	if n := lines(1, false, port); n != 2 {
		t.Errorf("the first failure has %d lines, want its beginning and its end", n)
	}
	if n := lines(1000, false, port); n > 20 {
		t.Errorf("1000 failures of one kind have %d lines", n)
	}
	if !r.failed(errors.New("the master refused PSYNC"), now) {
		t.Error("a failure of another kind is not logged")
	}
	if !r.up(now) {
		t.Error("it is not logged that the link is up again")
	}
	if n := lines(1000, true, port); n > 40 {
		t.Errorf("a link that went up and down 1000 times has %d lines", n)
	}
	word := func(n int) error { return errors.New(string(rune('a'+n/26%26)) + string(rune('a'+n%26))) }
	if n := lines(600, false, word); n > 30 {
		t.Errorf("failures of 600 kinds have %d lines", n)
	}
	r.up(now)
	if now = now.Add(steady); !r.failed(port(1), now) || r.failures != 1 {
		t.Error("a failure after a long time is none of before")
	}
}

// TestVisitsAreLoggedRarely: at the master too, and the addresses that are remembered are bounded.
func TestVisitsAreLoggedRarely(t *testing.T) {
	var v visits
	visit := func(address string, lasted time.Duration) (isLogged bool) {
		_, isLogged = v.begin(address)
		v.end(address, lasted)
		return isLogged
	}
	lines := 0
	for range 1000 {
		if visit("10.0.0.1:6380", time.Second) {
			lines++
		}
	}
	if lines == 0 || lines > 10 {
		t.Errorf("1000 visits have %d lines", lines)
	}
	visit("10.0.0.1:6380", steady)
	if !visit("10.0.0.1:6380", 0) {
		t.Error("a replica that was there for long comes back, and that is not logged")
	}
	for i := range 1000 {
		if !visit(strconv.Itoa(i), 0) {
			t.Fatalf("the first visit of %d is not logged", i)
		}
	}
	if len(v.count) > maxVisitors {
		t.Errorf("%d addresses are remembered", len(v.count))
	}
}
