package bitcask

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/keydir"
)

// txLocks are the keys that a transaction is on, and the locks of their stripes. It has these from Begin to End, but for
// moments in which it has claimed its keys: tx_yield.go.
type txLocks struct {
	of      *[keydir.Stripes]stripe // the store's
	waiters *atomic.Int64           // the store's, for claims

	write   bool
	all     bool
	whole   bool // it is about all keys of its stripes, not about some
	steady  bool // it releases no stripe before its end, for its owner must not wait for it again
	stripes []uint8
	held    [keydir.Stripes / 64]uint64

	// The first key that Begin got, and its hash: most transactions are about that one key.
	hashed    bool
	firstKey  string
	firstHash uint64
	hashes    []uint64 // of the keys, if there are several, in the order in which Begin got them
	sorted    []uint64 // the same in order, once it is needed
	at        int      // in hashes: the key that was used last

	claim *claim        // on the keys, once the stripes have been released; else nil
	turns *sync.RWMutex // locked for BeginInTurn; else nil
}

// everyStripe are the numbers of all stripes, in order.
var everyStripe = func() (all [keydir.Stripes]uint8) {
	for i := range all {
		all[i] = uint8(i)
	}
	return all
}()

// holdAll notes that the transaction is about all keys, and is to lock every stripe.
func (l *txLocks) holdAll() {
	l.all, l.whole = true, true
	l.stripes = append(l.stripes, everyStripe[:]...)
}

// holdKeys notes that the transaction is to lock the stripes of keys.
func (l *txLocks) holdKeys(seed keydir.Seed, keys []string) {
	for i, key := range keys {
		h := seed.Hash(key)
		if i == 0 {
			l.hashed, l.firstKey, l.firstHash = true, key, h
		}
		if len(keys) > 1 {
			l.hashes = append(l.hashes, h)
		}
		l.hold(keydir.StripeOf(h))
	}
	slices.Sort(l.stripes)
}

// hold notes that the transaction is to lock a stripe.
func (l *txLocks) hold(stripe int) {
	if bit := uint64(1) << (stripe % 64); l.held[stripe/64]&bit == 0 {
		l.held[stripe/64] |= bit
		l.stripes = append(l.stripes, uint8(stripe))
	}
}

// acquire takes the locks of the stripes when no key of the transaction is claimed.
func (l *txLocks) acquire() {
	w := claimWait{waiters: l.waiters}
	for c := l.tryAcquire(); c != nil; c = l.tryAcquire() {
		w.forEnd(c)
	}
	w.over()
}

// tryAcquire takes all locks, or none and returns the claim that is in the way.
func (l *txLocks) tryAcquire() *claim {
	for n, i := range l.stripes {
		l.lockStripe(int(i))
		if c := l.claimed(int(i)); c != nil {
			l.unlockStripes(l.stripes[:n+1])
			return c
		}
	}
	return nil
}

// lockStripes takes the locks that unlockStripes has released.
func (l *txLocks) lockStripes() {
	for _, i := range l.stripes {
		l.lockStripe(int(i))
	}
}

func (l *txLocks) unlockStripes(stripes []uint8) {
	for _, i := range stripes {
		l.unlockStripe(int(i))
	}
}

// tryLock takes the locks of the stripes, or none of them if somebody is in the way.
func (l *txLocks) tryLock() bool {
	for n, i := range l.stripes {
		if !l.tryLockStripe(int(i)) {
			l.unlockStripes(l.stripes[:n])
			return false
		}
	}
	return true
}

// takeTurn waits for those who have a turn: a writer for all of them, a reader for a writer.
func (l *txLocks) takeTurn(turns *sync.RWMutex) {
	if l.turns = turns; l.write {
		turns.Lock()
	} else {
		turns.RLock()
	}
}

func (l *txLocks) endTurn() {
	switch turns := l.turns; {
	case turns == nil:
	case l.write:
		turns.Unlock()
	default:
		turns.RUnlock()
	}
	l.turns = nil
}

// lockStripe locks a stripe, for an owner that has loaded it or wants nothing of it but the lock.
func (l *txLocks) lockStripe(i int) {
	if l.write {
		l.of[i].Lock()
	} else {
		l.of[i].RLock()
	}
}

// tryLockStripe takes the lock of a stripe if that is free, no key of the transaction claimed, and the stripe
// loaded: loading takes long.
func (l *txLocks) tryLockStripe(i int) bool {
	st := &l.of[i]
	if l.write && !st.TryLock() || !l.write && !st.TryRLock() {
		return false
	}
	if st.unloaded || l.claimed(i) != nil {
		l.unlockStripe(i)
		return false
	}
	return true
}

func (l *txLocks) unlockStripe(i int) {
	if l.write {
		// What one that has claimed keys has removed may come back, too.
		if st := &l.of[i]; st.removed.Load() != 0 && len(st.claims) == 0 {
			st.removed.Store(0)
		}
		l.of[i].Unlock()
	} else {
		l.of[i].RUnlock()
	}
}

// declared reports whether the transaction may use the keys of a hash. The lock of their stripe alone does not allow
// that: another transaction may have claimed them, and this one would not claim them when it releases the lock.
func (l *txLocks) declared(h uint64) bool {
	switch n := len(l.hashes); {
	case l.whole:
		return l.locked(h)
	case l.hashed && h == l.firstHash:
		return true
	case n == 0:
		return false
	case l.hashes[l.at] == h:
		return true
	case l.at+1 < n && l.hashes[l.at+1] == h: // mostly they are used one after the other
		l.at++
		return true
	}
	_, found := slices.BinarySearch(l.inOrder(), h)
	return found
}

// inOrder returns the hashes of several keys in order: those of a stripe stand together.
func (l *txLocks) inOrder() []uint64 {
	if len(l.sorted) != len(l.hashes) {
		l.sorted = append(l.sorted[:0], l.hashes...)
		slices.Sort(l.sorted)
	}
	return l.sorted
}

// inStripe returns the part of hashes, which are in order, that belongs to a stripe.
func inStripe(hashes []uint64, stripe int) []uint64 {
	byStripe := func(h uint64, stripe int) int { return cmp.Compare(keydir.StripeOf(h), stripe) }
	from, _ := slices.BinarySearchFunc(hashes, stripe, byStripe)
	to, _ := slices.BinarySearchFunc(hashes, stripe+1, byStripe)
	return hashes[from:to]
}

// locked reports whether the transaction holds the lock of a hash's stripe.
func (l *txLocks) locked(h uint64) bool {
	st := keydir.StripeOf(h)
	return l.all || l.held[st/64]&(1<<(st%64)) != 0
}
