package keydir

import (
	"math/bits"
	"sync/atomic"
)

// Visited bits, for eviction by CLOCK (F. J. Corbató: A paging experiment with the Multics system, 1968). A slot has no
// bit to spare, and inserts move slots, so the bits lie alongside the tables and are found by the hash: each is of one
// range of the hash space, and there are four to eight for a key, so that few keys share one. The hand goes over the
// slots in the order of their hashes. It spares the keys of a range that was visited, once.
//
// A hand of another order cannot clear a bit at one key without taking it from others. It lets visits age instead, once in a turn: a
// key that was used in this turn or in the one before is spared.
//
// Bits are a hint. A visit that is noted while they are replaced is lost, and nothing depends on it.

const (
	visitsPerKey  = 4
	minVisitsLog  = 10
	bitsPerVisits = 6 // log of the bits of a word
)

// visits is the bits of a directory, 1<<log of them.
type visits struct {
	words []atomic.Uint64
	log   int
}

func newVisits(log int) *visits {
	return &visits{words: make([]atomic.Uint64, 1<<log>>bitsPerVisits), log: log}
}

// rangeOf is the number of the range, and so of the bit, of a hash.
func (v *visits) rangeOf(h uint64) uint64 { return h >> (64 - v.log) }

// has reports whether the bit of a hash is set.
func (v *visits) has(h uint64) bool {
	if v == nil {
		return false
	}
	word, bit := v.of(h)
	return word.Load()&bit != 0
}

// of returns the word of a hash, and its bit in there.
func (v *visits) of(h uint64) (word *atomic.Uint64, bit uint64) {
	n := v.rangeOf(h)
	return &v.words[n>>bitsPerVisits], 1 << (n & (1<<bitsPerVisits - 1))
}

// take reports whether the bit of a hash is set, and clears it.
func (v *visits) take(h uint64) bool {
	word, bit := v.of(h)
	return word.Load()&bit != 0 && word.And(^bit)&bit != 0
}

// each calls fn with the number of each bit that is set.
func (v *visits) each(fn func(n uint64)) {
	for i := range v.words {
		for w := v.words[i].Load(); w != 0; w &= w - 1 {
			fn(uint64(i)<<bitsPerVisits | uint64(bits.TrailingZeros64(w)))
		}
	}
}

// resized returns as many bits as 1<<log, which say what v does as far as they can.
func (v *visits) resized(log int) *visits {
	fresh := newVisits(log)
	v.each(func(n uint64) {
		first, count := n<<max(log-v.log, 0)>>max(v.log-log, 0), uint64(1)<<max(log-v.log, 0)
		for i := first; i < first+count; i++ {
			fresh.words[i>>bitsPerVisits].Or(1 << (i & (1<<bitsPerVisits - 1)))
		}
	})
	return fresh
}

// TrackVisits begins or ends to note visits. Called again, now and then, it makes as many bits as the keys need by then.
// It takes no lock, and serves one goroutine at a time. O(1), but for one time in as many inserts as there are keys.
func (d *Directory) TrackVisits(on bool) {
	v := d.visits.Load()
	if !on {
		d.visits.Store(nil)
		d.aged.Store(nil)
		return
	}
	log := max(bits.Len(uint(visitsPerKey*d.Len())), minVisitsLog)
	switch {
	case v == nil:
		d.visits.Store(newVisits(log))
	case log > v.log || log < v.log-1: // a number of keys that goes up and down replaces nothing
		d.visits.Store(v.resized(log))
	}
}

// Visit notes that the key of a hash has been used. It takes no lock, and writes only if nobody has visited its range
// since the hand was there.
func (d *Directory) Visit(h uint64) {
	if v := d.visits.Load(); v != nil {
		if word, bit := v.of(h); word.Load()&bit == 0 {
			word.Or(bit)
		}
	}
}

// Visited reports whether the key of a hash, or one that shares its bit, has been used since the hand was there. It takes
// no lock.
func (d *Directory) Visited(h uint64) bool { return d.visits.Load().has(h) || d.aged.Load().has(h) }

// AgeVisits ends a turn of a hand of another order: it takes back the visits of the turn before, and keeps those of this one. It
// serves one goroutine at a time, as TrackVisits.
func (d *Directory) AgeVisits() {
	if v := d.visits.Load(); v != nil {
		d.aged.Store(v)
		d.visits.Store(newVisits(v.log))
	}
}

// Sweep moves the hand over about most slots of a stripe, in ascending order of hash, from the hash from on. It takes the
// visits back of keys that have been used, and calls fn with the slots of the others, until fn returns false; with
// everyone set it calls fn with all, and takes no visit back. It returns the hash where the hand stands then: the first
// one of the next stripe, 0 after the last, if it has come to the end. It skips what stands alongside keys. fn must not
// change the directory.
func (d *Directory) Sweep(stripe int, from uint64, most int, everyone bool, fn func(h uint64, s Slot) bool) (next uint64) {
	v := d.visits.Load()
	next = uint64(stripe+1) << (64 - stripeBits)
	at, spared := ^uint64(0), false // in no range
	d.Scan(stripe, from, func(h uint64, s Slot) bool {
		if s.Type.Alongside() {
			return true
		}
		n := h
		if v != nil {
			n = v.rangeOf(h)
		}
		if n != at { // a visit is of a whole range: the hand stops before one, or after a key that it takes
			if most <= 0 {
				next = h
				return false
			}
			at, spared = n, v != nil && !everyone && v.take(h)
		}
		most--
		if !spared && !fn(h, s) {
			next = (h | typeMask) + 1
			return false
		}
		return true
	})
	return next
}
