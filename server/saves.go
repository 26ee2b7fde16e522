package server

import (
	"sync/atomic"
	"time"
)

// The log is all there is to save, and it is written at every commit: SAVE and BGSAVE make what it has
// durable at once, whatever the store's sync mode. saves keeps what INFO and LASTSAVE report of that.
type saves struct {
	at       atomic.Int64 // Unix seconds of the last one that worked; at first, of the start
	sequence atomic.Uint64
	failed   atomic.Bool  // the last one did
	took     atomic.Int64 // nanoseconds of the last one
	count    atomic.Int64
}

func (a *saves) init(at time.Time, sequence uint64) {
	a.at.Store(at.Unix())
	a.sequence.Store(sequence)
}

// changes is how many records have been written since, which is what rdb_changes_since_last_save counts here.
func (a *saves) changes(sequence uint64) uint64 {
	if before := a.sequence.Load(); sequence > before {
		return sequence - before
	}
	return 0
}

// save makes every commit so far durable.
func (v *Server) save() error {
	start := time.Now()
	sequence := v.store.Log().Sequence() // before the sync: what comes meanwhile may not be part of it
	if err := v.store.Sync(); err != nil {
		v.saves.failed.Store(true)
		v.options.Logger.Error("a save failed", "error", err)
		return err
	}
	v.saves.failed.Store(false)
	v.saves.at.Store(time.Now().Unix())
	v.saves.sequence.Store(sequence)
	v.saves.count.Add(1)
	v.saves.took.Store(int64(time.Since(start)))
	return nil
}

// endedBy notes what ends a call of Serve, for SHUTDOWN. forget is to be called when Serve returns.
func (v *Server) endedBy(end func()) (forget func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.servings++
	id := v.servings
	v.serving[id] = end
	return func() {
		end()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.serving, id)
	}
}

// shutDown ends every call of Serve, and reports whether there is one.
func (v *Server) shutDown() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, end := range v.serving {
		end()
	}
	return len(v.serving) > 0
}
