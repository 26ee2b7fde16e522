package bitcask

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask/internal/chanmutex"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/pins"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/keydir"
)

// Store is an open store. Its methods may be called from any goroutine.
//
// There is one family of locks. stripes guard everything in RAM about the keys whose hash begins with their number:
// directory, collections, and, as long as one is held, the files that the locations lead to. The log's own lock is
// taken within them, man.mu within that; writing.mu and maintenanceMu before all of them.
type Store struct {
	dir    string
	opts   Options
	guard  directoryGuard
	closed atomic.Bool

	stripes [keydir.Stripes]stripe
	turns   sync.RWMutex // see BeginInTurn; held before the stripes

	claimWaiters atomic.Int64 // how many wait for a claim: see claimWait

	spaces   namespace.Table
	system   system.Records
	segments atomic.Pointer[segment.Set]
	log      commitlog.Log
	txs      sync.Pool

	man lockedManifest

	backups       chanmutex.Mutex // held by the one backup that is made
	pins          pins.Pins
	maintenanceMu chanmutex.Mutex // held while whole segments are read or files removed: merge, hint builder, check

	dead deadBytes

	follower *follower // nil without Options.Follow

	index   indexState
	lazy    *lazyIndex // stripes that are loaded after Open; nil: none are. Does not change once the store is open
	reserve reserve.Reserve
	grown   nap.Nap // of adjustReserve: the log has grown

	segmentSize atomic.Int64 // see measureDisk
	bound       bound

	spareID uint32 // of a segment that no merge has written after all; maintenanceMu guards it

	syncing syncMode
	effects effects

	recoveryMu   sync.Mutex // guards recovery once the store is open
	recovery     Recovery
	cutAt        uint64          // of a snapshot: the sequence after the last one that it has; 0: it is none
	loadingUntil context.Context // ends loading early; nil: nothing does
	released     func()          // called when all is released; may be nil

	writing firstWrite

	hinter chan struct{}
	work   background
}

// background is the goroutines of a store, which begin with it, or when it is ready for writes, and end with Close.
type background struct {
	sync.WaitGroup
	stop chan struct{} // closed when they are to end
}

// end ends them.
func (b *background) end() {
	close(b.stop)
	b.Wait()
}

// every calls fn at the moments of nap.Until until the store closes or fn returns false.
func (b *background) every(d time.Duration, fn func() bool) {
	for b.sleep(nap.Until(d)) {
		if !fn() {
			return
		}
	}
}

// sleep waits for d, and reports false if the store closes first.
func (b *background) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-b.stop:
		return false
	case <-t.C:
		return true
	}
}

func (b *background) stopping() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

// startWork starts the background goroutines; Close stops them. hintless are the sealed segments without a hint.
func (s *Store) startWork(hintless []uint32) {
	s.work.Go(s.log.Run)
	s.work.Go(s.guard.watch)
	s.work.Go(func() { s.work.every(s.opts.SyncEvery, func() bool { return s.syncLog() && s.log.NoteIdle() }) })
	s.work.Go(s.adjustReserve)
	if !s.opts.seam.NoIndex {
		s.work.Go(func() { s.work.every(indexEvery, s.indexIfDue) })
	}
	if !s.opts.seam.NoHints {
		done := make(map[uint32]bool)
		for id := range s.man.Sealed {
			done[id] = !slices.Contains(hintless, id)
		}
		s.work.Go(func() { s.hintLoop(done) })
		if len(hintless) > 0 {
			s.wakeHinter()
		}
	}
}

// adjustReserve keeps the reserve as long as it should be. That depends on the length of the log, so it sleeps while that does not
// change.
func (s *Store) adjustReserve() {
	before, stirred := int64(-1), true
	for !stirred || s.work.sleep(reserve.Every) {
		length := s.logSize()
		settled := s.reserve.Adjust() && length == before
		before, stirred = length, true
		if settled {
			stirred = s.grown.Sleep(s.work.stop, nap.Until(time.Second), math.MaxInt64, func() bool { return s.logSize() != length })
		}
		if s.work.stopping() {
			return
		}
	}
}

// Close makes everything durable and releases the store. It waits for running transactions. A second call does nothing.
func (s *Store) Close() error {
	t := s.newTx(true)
	t.locks.holdAll()
	t.locks.acquire()
	was := s.closed.Swap(true)
	t.unlock()
	t.Recycle()
	if was {
		return nil
	}
	if !s.opts.ReadOnly && s.guard.check() == nil { // else closeLog says why not
		if err := s.closeHistory(); err != nil { // the next Open begins a new one
			s.opts.Logger.Warn("history not closed", "err", err)
		}
	}
	begun, err := !s.opts.ReadOnly, error(nil)
	if begun {
		begun, err = s.writing.prepareForClose()
	}
	s.work.end()
	s.backups.Lock() // one that is being made sees stopping and ends
	defer s.backups.Unlock()
	s.maintenanceMu.Lock() // so does a merge
	defer s.maintenanceMu.Unlock()
	if begun {
		if err = s.closeLog(); err == nil {
			s.closeIndex()
		}
	}
	if !s.opts.ReadOnly {
		s.pins.Close(s.opts.Logger)
	}
	err = errors.Join(err, s.release())
	if s.released != nil {
		s.released()
	}
	return err
}

// closeLog syncs, and notes in the manifest how far the active segment reaches, so that damage to
// it can be told from a torn tail, and that the store is closed.
func (s *Store) closeLog() error {
	if err := s.log.Sync(); err != nil {
		return err
	}
	if err := s.guard.check(); err != nil {
		return err
	}
	return s.log.Close()
}

// release closes the files and releases the lock.
func (s *Store) release() error {
	var errs []error
	if s.lazy != nil && s.lazy.left.Load() > 0 {
		s.lazy.release()
	}
	if s.lazy != nil {
		s.lazy.logMessages()
	}
	for _, sg := range s.segments.Swap(new(segment.Set)).All() { // unlisted before they are unmapped: read_lockfree.go
		errs = append(errs, sg.Close())
	}
	if s.man.Manifest != nil {
		errs = append(errs, s.man.Close())
	}
	return errors.Join(append(errs, s.guard.close())...)
}
