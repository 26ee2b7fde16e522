package db

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/nap"
)

// The bound of the directory, Evict.Disk. The log measures what the directory takes, and refuses commits beyond the bound
// (bitcask/store_bound.go); merges free more of it the nearer it comes (merge/bounded.go). Here is what only a store with a policy can
// do: evict keys when live data take half of the bound, which makes bytes dead for merges to free, and have writers wait
// while that goes on. One goroutine measures and evicts; merges are those of the merge loop, which it wakes.

// ErrBound is returned by a write that adds something while the directory takes all that Evict.Disk allows, and nothing can be
// freed soon. It is a *BoundError. Deletes work.
var ErrBound = bitcask.ErrBound

// BoundError is an ErrBound with the figures.
type BoundError = bitcask.BoundError

// leastDisk is the least that Evict.Disk may be: less would be of buffers and reserves, not of data.
const leastDisk = 16 << 20

const (
	boundEvery   = 10 * time.Millisecond // between two measurements, or twenty times as long as one takes
	boundSeldom  = 100 * time.Millisecond
	boundBudget  = 5 * time.Millisecond // of one round of evictions
	boundPatient = time.Second          // how long a write waits for room
	boundRefused = 5 * time.Second      // the same, while it would be refused
	boundSlack   = 256                  // evictions go on until so small a part of the bound is free below the half
)

// diskBound is what a store has to keep its directory within a bound.
type diskBound struct {
	on     atomic.Bool
	idle   nap.Nap       // of the loop
	soon   chan struct{} // has a value when merges are to look
	evicts atomic.Bool   // live data take too much, and some may go
	vain   atomic.Int32  // how often in turn the merge loop has found nothing to merge near the bound

	mu      sync.Mutex
	changed chan struct{} // closed when it has been measured again; nil: nobody waits
	told    time.Time     // when it was last said that measuring has failed
}

// set begins or ends to bound the directory.
func (d *diskBound) set(s *Store, bytes int64) {
	if s.opts.ReadOnly {
		return
	}
	s.base.SetBound(bytes, s.replica.is.Load())
	s.measureBound() // before the next write, which is to wait rather than to be refused
	d.vain.Store(0)  // there may be more room, and the new policy may evict what the old one did not
	d.on.Store(bytes > 0)
	d.idle.Stir(nap.Any)
	d.notify()
}

// boundLoop measures the directory, and evicts, until the store closes.
func (s *Store) boundLoop(ctx context.Context) {
	d := &s.disk
	defer d.notify() // of those that wait, which find the store closed then
	defer d.on.Store(false)
	for {
		if !d.on.Load() {
			d.idle.Sleep(ctx.Done(), time.Hour, 1<<62, d.on.Load)
		}
		if ctx.Err() != nil {
			return
		}
		rest := s.keepBound(ctx)
		d.notify()
		if !s.base.NearBound() && s.base.LiveExcess() < 0 {
			rest = max(rest, boundSeldom)
		}
		wait(ctx, rest)
	}
}

// keepBound is one round of the loop, and returns how long to rest after it.
func (s *Store) keepBound(ctx context.Context) (rest time.Duration) {
	d := &s.disk
	began := time.Now()
	s.measureBound()
	rest = min(max(boundEvery, 20*time.Since(began)), boundSeldom)
	d.evicts.Store(s.evictForDisk())
	if !s.base.NearBound() {
		d.vain.Store(0)
	} else if !s.opts.NoMerge {
		select {
		case d.soon <- struct{}{}:
		default:
		}
	}
	return rest
}

// measureBound measures the directory, and says so once a minute if it cannot.
func (s *Store) measureBound() {
	err := s.base.MeasureBound()
	if err == nil || errors.Is(err, ErrClosed) {
		return
	}
	d := &s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.told) >= time.Minute {
		d.told = now
		s.opts.Logger.Warn("what the directory takes is not known exactly", "err", err)
	}
}

// mergeForBound merges if that is due, and then measures what it has released.
func (s *Store) mergeForBound(ctx context.Context) {
	before := s.merger.Status().Merges
	s.merger.Tick(ctx)
	s.measureBound()
	if s.merger.Status().Merges != before || !s.base.NearBound() {
		s.disk.vain.Store(0)
	} else {
		s.disk.vain.Add(1)
	}
}

// mostVain is how many times the merge loop finds nothing before nothing is expected from it: it takes turns (merge/bounded.go).
const mostVain = 2

// isHopeful reports whether room may be expected soon.
func (s *Store) isHopeful() bool {
	return s.disk.evicts.Load() || s.disk.vain.Load() < mostVain && !s.opts.NoMerge || s.merger.Status().Running
}

// evictForDisk evicts keys while live data take too much, and reports whether there are such.
func (s *Store) evictForDisk() (evicts bool) {
	e := &s.evictor
	rule := e.rule.Load()
	if rule == nil || rule.disk == 0 || s.expiryIsHeld() || !s.canEvict(rule) || s.base.LiveExcess() <= 0 || !e.begins(s, rule) {
		return false
	}
	s.disk.evicts.Store(true) // while it works, too
	_, _, bound := s.base.DirectoryBytes()
	for began := time.Now(); time.Since(began) < boundBudget; {
		excess := s.base.LiveExcess() + bound/boundSlack
		if excess <= 0 {
			break
		}
		_, live, _ := s.base.DirectoryBytes()
		_, keys, _ := s.base.EntryBytes()
		mean := live/int64(max(keys, 1)) + 1
		victims, err := s.someVictims(rule, int(min(excess/mean+1, evictBatch)))
		done := true
		if err == nil && len(victims) > 0 {
			done, err = s.evictAll(victims, rule.timed, excess, (*txn).diskUsage)
			if err == nil {
				s.disk.vain.Store(0) // merges will find that
			}
		}
		if e.failed(err) {
			s.opts.Logger.Error("eviction", "err", err)
		}
		if !done || err != nil {
			break
		}
	}
	return s.canEvict(rule)
}

// diskUsage is about what a key takes in the log.
func (t *txn) diskUsage(key string) (bytes int64, ok bool, err error) {
	const samples = 16
	u, ok, err := t.base.Usage(t.ns, key, samples)
	return u.Disk, ok, err
}

// notify lets writers look again that wait for room.
func (d *diskBound) notify() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// next is closed when the directory has been measured again.
func (d *diskBound) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

// isTight reports whether writes that add something are to wait for room, if there is some to come.
func (s *Store) isTight() bool {
	return s.disk.on.Load() && s.base.TightBound() && s.isHopeful() && !s.replica.is.Load()
}

// awaitDisk has a write wait while the directory takes nearly all that it may, and some of that is being freed. Nothing is locked by
// the caller.
func (s *Store) awaitDisk() {
	if !s.isTight() {
		return
	}
	for began := time.Now(); s.isTight(); {
		most := boundPatient
		if s.base.FullBound() {
			most = boundRefused
		}
		left := most - time.Since(began)
		if left <= 0 {
			return
		}
		select {
		case <-s.disk.next():
		case <-time.After(left):
		}
	}
}

// diskIsShort reports whether writes that add something are refused, or will be soon.
func (s *Store) diskIsShort() bool {
	return s.disk.on.Load() && s.base.TightBound() && !s.isHopeful() && !s.replica.is.Load()
}
