package bitcask

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/stavedb/stave/keydir"
)

// stripe guards everything in RAM about the keys whose hash begins with its number.
type stripe struct {
	sync.RWMutex

	// removed has keydir.RemovedBit of every slot that the transaction holding the
	// lock has removed: until its end a missing slot may come back.
	removed atomic.Uint64

	// claims are those of transactions that have released the lock for a while: see Tx.Yield. The lock guards them.
	claims []stripeClaim

	// unloaded says that the keydir does not have the stripe yet (index_lazy.go). The lock guards it.
	unloaded bool

	// unchanged is what a walk remembers of the stripe (store_walk.go): see walk and endWalks.
	unchanged atomic.Uint32

	_ [64 - (unsafe.Sizeof(sync.RWMutex{})+8+24+8)%64]byte // a cache line each
}

// walk returns a number that st.unchanged has until a writer locks the stripe, of which the caller has the shared lock. It is odd.
func (st *stripe) walk() uint32 {
	st.unchanged.Or(1)
	return st.unchanged.Load()
}

// endWalks makes st.unchanged another number than what walk has returned. It is called before anything changes.
func (st *stripe) endWalks() {
	if n := st.unchanged.Load(); n&1 != 0 {
		st.unchanged.Store(n + 1)
	}
}

// Lock locks the stripe for a writer.
func (st *stripe) Lock() {
	st.RWMutex.Lock()
	st.endWalks()
}

// TryLock is Lock, unless it would wait.
func (st *stripe) TryLock() bool {
	locked := st.RWMutex.TryLock()
	if locked {
		st.endWalks()
	}
	return locked
}

// lockWhole locks a stripe that is loaded and without claims. The caller holds no other.
func (s *Store) lockWhole(stripe int, write bool) error {
	if err := s.lazy.loadStripe(stripe); err != nil {
		return err
	}
	w := claimWait{waiters: &s.claimWaiters}
	for st := &s.stripes[stripe]; ; {
		if write {
			st.Lock()
		} else {
			st.RLock()
		}
		if len(st.claims) == 0 {
			w.over()
			return nil
		}
		c := st.claims[0].claim
		s.unlockWhole(stripe, write)
		w.forEnd(c)
	}
}

func (s *Store) unlockWhole(stripe int, write bool) {
	if write {
		s.stripes[stripe].Unlock()
	} else {
		s.stripes[stripe].RUnlock()
	}
}

// lockKey locks the stripe of a key, shared, when it is loaded and nobody claims the key.
func (s *Store) lockKey(h uint64) (*stripe, error) {
	i := keydir.StripeOf(h)
	if err := s.lazy.loadStripe(i); err != nil {
		return nil, err
	}
	w := claimWait{waiters: &s.claimWaiters}
	for st := &s.stripes[i]; ; {
		st.RLock()
		c := st.claimOf(h)
		if c == nil {
			w.over()
			return st, nil
		}
		st.RUnlock()
		w.forEnd(c)
	}
}
