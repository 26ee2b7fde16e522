package ttl

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Index holds deadlines by namespace and key, and in order of time. It costs 65 to 75 bytes of memory for a key of 16 bytes
// (BenchmarkIndexBytes measures it), without a pointer for each.
//
// It is safe for concurrent use. Get of a namespace without deadlines takes no lock; otherwise a call locks a sixteenth of
// its namespace, so that keys rarely wait for each other. Calls for several keys do not see one moment: what changes
// during them may or may not show.
type Index struct {
	seed   maphash.Seed
	spaces atomic.Pointer[map[uint32]*space] // Never changed, but replaced: readers need no lock.
	mu     sync.Mutex                        // Held to replace spaces.
}

// space is one namespace.
type space struct {
	count  atomic.Int64
	shards [shardCount]shard
}

const shardCount = 16

// NewIndex returns an empty index.
func NewIndex() *Index {
	x := &Index{seed: maphash.MakeSeed()}
	x.spaces.Store(&map[uint32]*space{})
	return x
}

// pick returns the shard of a key and the hash it has there. The hash is keyed with a random seed: users choose the keys.
func (x *Index) pick(sp *space, key string) (*shard, uint32) {
	h := maphash.String(x.seed, key)
	return &sp.shards[h>>32%shardCount], uint32(h)
}

// Get returns a key's deadline. O(1).
func (x *Index) Get(ns uint32, key string) (ms int64, ok bool) {
	sp := (*x.spaces.Load())[ns]
	if sp == nil || sp.count.Load() == 0 {
		return 0, false
	}
	s, h := x.pick(sp, key)
	return s.get(h, key)
}

// Set gives a key a deadline, replacing the one it had. The key's bytes are copied. O(log n).
func (x *Index) Set(ns uint32, key string, ms int64) {
	sp := (*x.spaces.Load())[ns]
	if sp == nil {
		sp = x.makeSpace(ns)
	}
	s, h := x.pick(sp, key)
	if s.set(h, key, ms) {
		sp.count.Add(1)
	}
}

// makeSpace finds or makes a namespace.
func (x *Index) makeSpace(ns uint32) *space {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := *x.spaces.Load()
	if sp := old[ns]; sp != nil {
		return sp // Someone else was first.
	}
	sp := &space{}
	for i := range sp.shards {
		sp.shards[i].earliest.Store(never)
	}
	spaces := maps.Clone(old)
	spaces[ns] = sp
	x.spaces.Store(&spaces)
	return sp
}

// Clear takes a key's deadline away and reports whether it had one. O(log n).
func (x *Index) Clear(ns uint32, key string) bool {
	sp := (*x.spaces.Load())[ns]
	if sp == nil || sp.count.Load() == 0 {
		return false
	}
	s, h := x.pick(sp, key)
	if !s.clear(h, key) {
		return false
	}
	sp.count.Add(-1)
	return true
}

// Len returns how many keys of a namespace have a deadline. O(1).
func (x *Index) Len(ns uint32) int {
	sp := (*x.spaces.Load())[ns]
	if sp == nil {
		return 0
	}
	return int(sp.count.Load())
}

// DropNamespace takes the deadlines of all keys of a namespace away. O(1): the memory is the garbage collector's. A
// concurrent Set of the same namespace counts as made before.
func (x *Index) DropNamespace(ns uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := *x.spaces.Load()
	if old[ns] == nil {
		return
	}
	spaces := maps.Clone(old)
	delete(spaces, ns)
	x.spaces.Store(&spaces)
}

// Average returns the mean time left until the deadlines of a namespace, in milliseconds, and 0 if there are none or most are long past.
// O(1).
func (x *Index) Average(ns uint32, now int64) int64 {
	sp := (*x.spaces.Load())[ns]
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

// Next returns the earliest deadline of all. O(number of namespaces).
func (x *Index) Next() (ms int64, ok bool) {
	for _, sp := range *x.spaces.Load() {
		if sp.count.Load() == 0 {
			continue
		}
		for i := range sp.shards {
			if at := sp.shards[i].earliest.Load(); !ok || at < ms {
				ms, ok = at, true
			}
		}
	}
	return ms, ok
}

// Due appends to dst up to max entries whose deadline is not after now, the earliest first. The order of equal deadlines is
// arbitrary. The entries stay in the index.
func (x *Index) Due(now int64, max int, dst []Entry) []Entry {
	c := dueOf(now, []Queue{{Index: x}})
	for ; max > 0; max-- {
		e, _, ok := c.next()
		if !ok {
			break
		}
		dst = append(dst, e)
	}
	return dst
}
