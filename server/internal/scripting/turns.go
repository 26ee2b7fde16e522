package scripting

import (
	"hash/maphash"
	"sync"
)

// Turns are the clients that wait for locks which a script holds, in the order of their arrival. A script that begins
// waits until those have had their turn that came before it and need its locks: otherwise scripts that only read, and
// overlap, or one that is sent again as soon as it has ended, keep out a writer for as long as they like.
//
// A script that an event loop runs does not wait, because it is over, or has left the loop, before anyone notices.
type Turns struct {
	mu      sync.Mutex // guards waiting
	waiting []*Turn    // oldest first
}

// Turn is a client that waits.
type Turn struct {
	write  bool
	whole  bool          // it wants the locks of all keys
	keys   keySet        // that it wants the locks of
	script bool          // it waits for its turn, and bars nobody until then
	over   chan struct{} // closed once the client has the locks, or gives up
}

// keySet has a bit for each key, by its hash. That two sets share one does not mean that they share a key, as with the
// stripes of the store's locks.
type keySet [8]uint64

var keySeed = maphash.MakeSeed()

// newTurn is a client that wants the locks of keys, or of all if there are none.
func newTurn(write bool, keys []string) *Turn {
	t := &Turn{write: write, whole: len(keys) == 0, over: make(chan struct{})}
	for _, key := range keys {
		bit := maphash.String(keySeed, key) % 512
		t.keys[bit/64] |= 1 << (bit % 64)
	}
	return t
}

// bars reports whether two clients cannot have their locks at the same time.
func (t *Turn) bars(other *Turn) bool {
	if !t.write && !other.write {
		return false
	}
	if t.whole || other.whole {
		return true
	}
	for i := range t.keys {
		if t.keys[i]&other.keys[i] != 0 {
			return true
		}
	}
	return false
}

// Any reports whether somebody waits.
func (q *Turns) Any() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// Enter adds a client. Leave follows it. A script waits for its turn.
func (q *Turns) Enter(write bool, keys []string, script bool) *Turn {
	t := newTurn(write, keys)
	t.script = script
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, t)
	return t
}

// Leave removes a client that has its locks, or has given up.
func (q *Turns) Leave(t *Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == t {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			break
		}
	}
	close(t.over)
}

// Before returns a channel that is closed once somebody has had its turn who came before t and bars it; nil if there is
// nobody, and t has its turn.
func (q *Turns) Before(t *Turn) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, other := range q.waiting {
		if other == t {
			break
		}
		if !other.script && other.bars(t) {
			return other.over
		}
	}
	t.script = false
	return nil
}
