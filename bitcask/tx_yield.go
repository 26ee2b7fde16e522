package bitcask

import (
	"runtime"
	"slices"
	"sync/atomic"
)

// A transaction that writes many records would keep out everybody whose keys share a stripe with
// its own. So it releases its stripes now and then, and continues when it has them again. Its keys
// stay its own: before it releases a stripe for the first time it claims them, and whoever gets the
// lock of the stripe and finds a claim in its way releases all it has and waits for the end of the
// transaction that has claimed. So nobody sees a part of the transaction, or changes what it has read.
//
// A transaction on other keys is not in the way. Everything else that locks a stripe waits for its
// claims: View and Update, scans, merges, INDEX, Check. So no record is moved or removed meanwhile
// that the transaction has a location of, be it only for its rollback.
//
// No one who waits for a claim holds a lock, and a transaction claims only what it has locked
// without finding a claim: no deadlock is possible. Nobody claims while somebody waits for a claim,
// so that a sequence of long transactions keeps out no one for longer than one of them takes.

// claim is a transaction's.
type claim struct {
	done chan struct{} // closed at the end of the transaction
}

// stripeClaim is the part of a claim that concerns one stripe.
type stripeClaim struct {
	*claim
	hashes []uint64 // of the keys, in order
}

// defaultYieldEvery is how many steps a transaction makes without releasing its stripes.
const defaultYieldEvery = 512

// Yield is called between two steps of a long transaction, each of which takes a microsecond or so. Now and then it
// lets other transactions use the stripes, and other goroutines the processor: where the garbage collector has the only
// other one, an event loop would wait until the scheduler interrupts the transaction, which takes 10 ms or more. What the
// caller has of the index stays valid but for names within collections that are not Collection.Private.
func (t *Tx) Yield() {
	if t.steps++; t.steps%t.s.opts.yieldEvery() == 0 && t.open && !t.system && t.locks.claimKeys() {
		t.locks.unlockStripes(t.locks.stripes)
		runtime.Gosched()
		t.locks.lockStripes()
	}
}

func (o *Options) yieldEvery() int {
	if n := o.seam.YieldEvery; n > 0 {
		return n
	}
	return defaultYieldEvery
}

// Apart runs fn, which does not use the transaction and may take long, and lets other transactions use the stripes
// meanwhile.
func (t *Tx) Apart(fn func()) {
	if !t.open {
		return
	}
	if !t.system && t.locks.claimKeys() { // who waits for the lock of system records may hold one of the stripes
		t.locks.unlockStripes(t.locks.stripes)
		defer t.locks.lockStripes()
	}
	fn()
}

// claimKeys claims the keys of the transaction, unless it has done so, and reports whether it has.
func (l *txLocks) claimKeys() bool {
	switch {
	case l.claim != nil:
		return true
	case !l.write || l.whole || l.steady || len(l.stripes) == 0 || l.waiters.Load() != 0:
		return false
	}
	l.claim = &claim{done: make(chan struct{})}
	hashes := []uint64{l.firstHash}
	if len(l.hashes) > 0 {
		hashes = l.inOrder()
	}
	for _, i := range l.stripes {
		st := &l.of[i]
		st.claims = append(st.claims, stripeClaim{l.claim, inStripe(hashes, int(i))})
	}
	return true
}

// releaseClaim ends the claim, with the stripes locked.
func (l *txLocks) releaseClaim() {
	if l.claim == nil {
		return
	}
	for _, i := range l.stripes {
		st := &l.of[i]
		st.claims = slices.DeleteFunc(st.claims, func(c stripeClaim) bool { return c.claim == l.claim })
	}
	close(l.claim.done)
	l.claim = nil
}

// claimed returns a claim of another transaction on a key of this one in a stripe that it has locked.
func (l *txLocks) claimed(stripe int) *claim {
	claims := l.of[stripe].claims
	if len(claims) == 0 {
		return nil
	}
	if l.whole {
		return claims[0].claim
	}
	if len(l.hashes) == 0 {
		return l.of[stripe].claimOf(l.firstHash)
	}
	for _, h := range inStripe(l.inOrder(), stripe) {
		if c := l.of[stripe].claimOf(h); c != nil {
			return c
		}
	}
	return nil
}

// claimOf returns the claim on a hash.
func (st *stripe) claimOf(h uint64) *claim {
	for _, c := range st.claims {
		if _, ok := slices.BinarySearch(c.hashes, h); ok {
			return c.claim
		}
	}
	return nil
}

// claimWait is how one that needs a lock waits for claims, until it has the lock.
type claimWait struct {
	waiters *atomic.Int64 // of the store
	waiting bool
}

// forEnd waits for the end of a transaction. The caller holds no stripe.
func (w *claimWait) forEnd(c *claim) {
	if !w.waiting {
		w.waiting = true
		w.waiters.Add(1)
	}
	<-c.done
}

// over is called with the lock held.
func (w *claimWait) over() {
	if w.waiting {
		w.waiters.Add(-1)
	}
}
