package acl

import (
	"errors"
	"net/netip"
	"sync"
	"time"
)

// An address from which many passwords were wrong has to wait before the next is looked at: 1 s after the tenth, twice
// as long after each further one. Passwords that arrive meanwhile are refused unseen, right or wrong: a guess must not
// be answered faster because it is right.

const (
	freeFailures  = 10
	firstPause    = time.Second
	longestPause  = time.Minute
	forgetAfter   = 10 * time.Minute
	keptAddresses = 4096
)

// ErrTooManyFailures is returned for an address that has to wait.
var ErrTooManyFailures = errors.New("too many wrong passwords from this address; wait a minute and try again")

// backoff counts failures by address.
type backoff struct {
	mu        sync.Mutex // guards the rest
	addresses map[string]failures
}

type failures struct {
	count int
	last  time.Time
}

// pause is how long an address has to wait after its last failure.
func (f failures) pause() time.Duration {
	if f.count < freeFailures {
		return 0
	}
	return min(firstPause<<min(f.count-freeFailures, 10), longestPause)
}

// admit says whether a password from an address may be looked at. An empty address is one that cannot be told from
// others, such as that of a Unix socket, and never waits.
func (b *backoff) admit(address string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.addresses[address]
	return !known || now.Sub(f.last) >= f.pause()
}

// fail notes a wrong password.
func (b *backoff) fail(address string, now time.Time) {
	if address == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.addresses[address]
	if now.Sub(f.last) > forgetAfter {
		f = failures{}
	}
	f.count++
	f.last = now
	if b.addresses == nil {
		b.addresses = make(map[string]failures)
	}
	b.addresses[address] = f
	if len(b.addresses) > keptAddresses {
		b.dropOldestLocked(address)
	}
}

// dropOldestLocked keeps the map bounded: of some addresses, in the random order of a map, the one goes that has been
// quiet for longest.
func (b *backoff) dropOldestLocked(except string) {
	oldest, tried := "", 0
	for address, f := range b.addresses {
		if address != except && (oldest == "" || f.last.Before(b.addresses[oldest].last)) {
			oldest = address
		}
		if tried++; tried == 16 {
			break
		}
	}
	delete(b.addresses, oldest)
}

// backoffAddress is what failures of a connection are counted by: its IP address without the port, of IPv6 the /64,
// which one host may have all of. It is empty for a connection without an IP address.
func backoffAddress(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return ""
	}
	return prefix.String()
}
