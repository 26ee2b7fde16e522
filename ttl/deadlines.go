package ttl

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Deadlines holds deadlines by namespace and key, and in order of time. A deadline takes 65 to 75 bytes of memory with
// a key of 16 bytes (BenchmarkDeadlineBytes measures it), without a pointer for each.
//
// It is safe for concurrent use. Get of a namespace without deadlines takes no lock; otherwise a call locks a sixteenth
// of its namespace, so that keys rarely wait for each other. Calls that concern several keys do not see one moment:
// concurrent changes may or may not show.
type Deadlines struct {
	seed   maphash.Seed
	spaces atomic.Pointer[map[uint32]*space] // Replaced, never changed: readers need no lock.
	mu     sync.Mutex                        // Held to replace spaces.
}

// space is one namespace.
type space struct {
	count  atomic.Int64
	shards [shardCount]shard
}

const shardCount = 16

// NewDeadlines returns an empty set of deadlines.
func NewDeadlines() *Deadlines {
	d := &Deadlines{seed: maphash.MakeSeed()}
	d.spaces.Store(&map[uint32]*space{})
	return d
}

// pick returns the shard of a key and its hash there. The hash is keyed with a random seed, because users choose the
// keys.
func (d *Deadlines) pick(sp *space, key string) (*shard, uint32) {
	h := maphash.String(d.seed, key)
	return &sp.shards[h>>32%shardCount], uint32(h)
}

// Get returns a key's deadline. O(1).
func (d *Deadlines) Get(ns uint32, key string) (ms int64, ok bool) {
	sp := (*d.spaces.Load())[ns]
	if sp == nil || sp.count.Load() == 0 {
		return 0, false
	}
	s, h := d.pick(sp, key)
	return s.get(h, key)
}

// Set gives a key a deadline, replacing the one it had. The key's bytes are copied. O(log n).
func (d *Deadlines) Set(ns uint32, key string, ms int64) {
	sp := (*d.spaces.Load())[ns]
	if sp == nil {
		sp = d.makeSpace(ns)
	}
	s, h := d.pick(sp, key)
	if s.set(h, key, ms) {
		sp.count.Add(1)
	}
}

// makeSpace finds or makes a namespace.
func (d *Deadlines) makeSpace(ns uint32) *space {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := *d.spaces.Load()
	if sp := old[ns]; sp != nil {
		return sp // Another goroutine was first.
	}
	sp := &space{}
	for i := range sp.shards {
		sp.shards[i].earliest.Store(never)
	}
	spaces := maps.Clone(old)
	spaces[ns] = sp
	d.spaces.Store(&spaces)
	return sp
}

// Clear removes a key's deadline and reports whether it had one. O(log n).
func (d *Deadlines) Clear(ns uint32, key string) bool {
	sp := (*d.spaces.Load())[ns]
	if sp == nil || sp.count.Load() == 0 {
		return false
	}
	s, h := d.pick(sp, key)
	if !s.clear(h, key) {
		return false
	}
	sp.count.Add(-1)
	return true
}

// Len returns how many keys of a namespace have a deadline. O(1).
func (d *Deadlines) Len(ns uint32) int {
	sp := (*d.spaces.Load())[ns]
	if sp == nil {
		return 0
	}
	return int(sp.count.Load())
}

// Fresh returns deadlines without an entry, for Take.
func (d *Deadlines) Fresh() *Deadlines {
	fresh := &Deadlines{seed: d.seed}
	fresh.spaces.Store(&map[uint32]*space{})
	return fresh
}

// Take replaces all entries by those of other, which Fresh of d has returned and nobody uses any more.
func (d *Deadlines) Take(other *Deadlines) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spaces.Store(other.spaces.Load())
}

// DropNamespace removes the deadlines of all keys of a namespace. O(1): the garbage collector frees the memory. A
// concurrent Set of the same namespace counts as made before.
func (d *Deadlines) DropNamespace(ns uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := *d.spaces.Load()
	if old[ns] == nil {
		return
	}
	spaces := maps.Clone(old)
	delete(spaces, ns)
	d.spaces.Store(&spaces)
}

// AnyDue reports whether a key of any namespace is due at a moment. O(namespaces).
func (d *Deadlines) AnyDue(now int64) bool {
	for _, sp := range *d.spaces.Load() {
		for i := range sp.shards {
			if sp.shards[i].earliest.Load() <= now {
				return true
			}
		}
	}
	return false
}

// Average returns the mean time to the deadlines of a namespace, in milliseconds; 0 if there are none or the mean is
// past. O(1).
func (d *Deadlines) Average(ns uint32, now int64) int64 {
	sp := (*d.spaces.Load())[ns]
	if sp == nil {
		return 0
	}
	var hi, lo, n uint64
	for i := range sp.shards {
		s := &sp.shards[i]
		s.mu.RLock()
		if s.order != nil {
			var carry uint64
			lo, carry = bits.Add64(lo, s.sum.lo, 0)
			hi += s.sum.hi + carry
			n += uint64(s.order.Len())
		}
		s.mu.RUnlock()
	}
	if n == 0 || int64(hi) < 0 {
		return 0
	}
	mean, _ := bits.Div64(hi, lo, n) // At most the largest of the deadlines, so it fits.
	return max(int64(mean)-now, 0)
}
