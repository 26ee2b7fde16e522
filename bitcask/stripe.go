package bitcask

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// stripe guards everything in RAM about the keys whose hash begins with its number.
type stripe struct {
	sync.RWMutex

	// removed has keydir.RemovedBit of every slot that the transaction holding the
	// lock has removed: until its end a missing slot may come back.
	removed atomic.Uint64

	// claims are those of transactions that have released the lock for a while: see Tx.Yield. The
	// lock guards them.
	claims []stripeClaim

	// unloaded says that the keydir does not have the stripe yet (index_lazy.go). The lock guards it.
	unloaded bool

	_ [64 - (unsafe.Sizeof(sync.RWMutex{})+8+24+8)%64]byte // a cache line each
}
