package ttl

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/stavedb/stave/internal/ordered"
)

// shard holds the deadlines of one namespace whose keys' hashes select it.
type shard struct {
	earliest atomic.Int64 // The least deadline, never if there is none. Written under mu.

	mu       sync.RWMutex // Guards the rest.
	blocks   blockStore
	byHash   map[uint32]ref          // The block of a key hash; if keys collide, of one of them.
	collided map[uint32][]ref        // The blocks of the others.
	order    *btree.BTreeG[item]     // By deadline.
	sum      struct{ hi, lo uint64 } // Of all deadlines: a 128-bit two's complement number.
}

// never is the earliest deadline of an empty shard.
const never = math.MaxInt64

// item is a block in the order of deadlines. The deadline is split in two words so that an item takes 12 bytes, not 16.
//
// Equal deadlines are ordered by address, not by key: with millions of keys of one deadline, every comparison would
// otherwise read two keys, and a cursor could not continue after an item that has been removed.
type item struct {
	hi, lo uint32 // The deadline's order-preserving form.
	ref    ref
}

// degree makes a node of the order some 750 bytes long.
const degree = 32

func itemOf(deadline int64, r ref) item {
	u := ordered.Int(deadline)
	return item{uint32(u >> 32), uint32(u), r}
}

func (i item) deadline() int64 { return ordered.ToInt(uint64(i.hi)<<32 | uint64(i.lo)) }

// less orders items by deadline, then address.
func (i item) less(j item) bool {
	if i.hi != j.hi {
		return i.hi < j.hi
	}
	if i.lo != j.lo {
		return i.lo < j.lo
	}
	return i.ref < j.ref
}

// resetLocked empties the shard and releases its memory.
func (s *shard) resetLocked() {
	s.blocks = blockStore{}
	s.byHash = map[uint32]ref{}
	s.collided = nil
	s.order = btree.NewG(degree, item.less)
	s.sum.hi, s.sum.lo = 0, 0
	s.earliest.Store(never)
}

// findLocked returns the block of a key, or 0.
func (s *shard) findLocked(h uint32, key string) ref {
	r, ok := s.byHash[h]
	if !ok || s.blocks.holds(r, key) {
		return r
	}
	for _, r := range s.collided[h] {
		if s.blocks.holds(r, key) {
			return r
		}
	}
	return 0
}

// get returns the deadline of a key.
func (s *shard) get(h uint32, key string) (ms int64, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.findLocked(h, key)
	if r == 0 {
		return 0, false
	}
	return s.blocks.deadline(r), true
}

// set sets a deadline and reports whether the key is new.
func (s *shard) set(h uint32, key string, ms int64) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order == nil {
		s.resetLocked()
	}
	r := s.findLocked(h, key)
	added = r == 0
	if added {
		r = s.blocks.newBlock(key, ms)
		if _, taken := s.byHash[h]; !taken {
			s.byHash[h] = r
		} else {
			if s.collided == nil {
				s.collided = map[uint32][]ref{}
			}
			s.collided[h] = append(s.collided[h], r)
		}
	} else {
		old := s.blocks.deadline(r)
		if old == ms {
			return false
		}
		s.unorderLocked(old, r)
		s.blocks.setDeadline(r, ms)
	}
	s.order.ReplaceOrInsert(itemOf(ms, r))
	s.addLocked(ms)
	if ms < s.earliest.Load() {
		s.earliest.Store(ms)
	}
	return added
}

// clear removes a deadline and reports whether there was one.
func (s *shard) clear(h uint32, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.findLocked(h, key)
	if r == 0 {
		return false
	}
	if s.order.Len() == 1 && len(s.blocks.chunks) > 1 {
		s.resetLocked() // Releases the memory, but not for a single key that comes and goes.
		return true
	}
	s.unorderLocked(s.blocks.deadline(r), r)
	s.unlinkLocked(h, r)
	s.blocks.freeBlock(r)
	return true
}

// unlinkLocked removes a block from the blocks of its hash.
func (s *shard) unlinkLocked(h uint32, r ref) {
	others := s.collided[h]
	if i := slices.Index(others, r); i >= 0 {
		s.collided[h] = slices.Delete(others, i, i+1)
	} else if len(others) > 0 {
		s.byHash[h] = others[0]
		s.collided[h] = others[1:]
	} else {
		delete(s.byHash, h)
	}
	if len(others) == 1 {
		delete(s.collided, h)
	}
}

// unorderLocked removes a block from the order and the sum.
func (s *shard) unorderLocked(deadline int64, r ref) {
	s.order.Delete(itemOf(deadline, r))
	s.subLocked(deadline)
	if deadline > s.earliest.Load() {
		return
	}
	if min, ok := s.order.Min(); ok {
		s.earliest.Store(min.deadline())
	} else {
		s.earliest.Store(never)
	}
}

// addLocked adds a deadline to the sum.
func (s *shard) addLocked(ms int64) {
	var carry uint64
	s.sum.lo, carry = bits.Add64(s.sum.lo, uint64(ms), 0)
	s.sum.hi += uint64(ms>>63) + carry // The first term is the extended sign.
}

// subLocked subtracts a deadline from the sum.
func (s *shard) subLocked(ms int64) {
	var borrow uint64
	s.sum.lo, borrow = bits.Sub64(s.sum.lo, uint64(ms), 0)
	s.sum.hi -= uint64(ms>>63) + borrow
}

// appendFrom appends entries to batch, in order from the given item on, until it is full or they are later than until.
// It returns the item to continue from, and whether there may be more.
func (s *shard) appendFrom(ns uint32, from item, until int64, batch []Entry) (_ []Entry, next item, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.order == nil {
		return batch, from, false
	}
	s.order.AscendGreaterOrEqual(from, func(i item) bool {
		ms := i.deadline()
		if ms > until {
			return false
		}
		if len(batch) == cap(batch) {
			next, more = i, true
			return false
		}
		batch = append(batch, Entry{Namespace: ns, Key: s.blocks.key(i.ref), Deadline: ms})
		return true
	})
	return batch, next, more
}

// random returns any entry: a walk over a map begins anywhere.
func (s *shard) random(ns uint32) (e Entry, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.byHash {
		return Entry{Namespace: ns, Key: s.blocks.key(r), Deadline: s.blocks.deadline(r)}, true
	}
	return e, false
}
