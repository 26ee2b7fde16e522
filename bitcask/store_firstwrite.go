package bitcask

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/seam"
)

// Beginning to write. Before its first write a writer makes durable what it builds on, and notes in the manifest that
// it has the store open (opener.makeGood, noteOpening): five syncs, one after another. A store that was closed, and
// whose INDEX is loaded after Open (index_lazy.go), is served meanwhile. Nothing that Open shows could be lost: Close
// has synced the log, and then noted in the manifest that it has. That edit itself may not be on disk, if its sync
// failed; without it a later Open replays the log, and finds the same. Nor is anything written before all five are
// done: whatever writes calls firstWrite.prepare first.
//
// So the files are as Close has left them until then, and a crash leaves a store that is closed.

const (
	// prepareRetry is how long the background waits after prepare has found no space on the disk.
	prepareRetry = time.Second
	// prepareShare is the part of the time, 1/prepareShare, that further attempts take while writes keep finding none, for
	// each of them syncs: one that takes t is followed by prepareShare*t without any, but by no more than prepareRetry.
	prepareShare = 20
)

// firstWrite makes a store ready for writes, once.
type firstWrite struct {
	due atomic.Pointer[opener] // what is to be done for that; nil: nothing

	mu     sync.Mutex // held while it is done; guards what follows
	ended  bool       // Close has given it up
	failed error      // of the last attempt, if it may be repeated
	next   time.Time  // until then it stands; zero: the first failure may have been of a moment
}

// failing notes a failure that may be repeated. The attempt has taken so long.
func (w *firstWrite) failing(err error, took time.Duration) {
	if w.failed != nil {
		w.next = time.Now().Add(min(prepareShare*took, prepareRetry))
	}
	w.failed = err
}

// preparesLater reports whether there is nothing to be made good that has to be done before the store is served.
func (s *opener) preparesLater() bool {
	if s.opts.ReadOnly || s.lazy == nil || s.opts.seam.Load == seam.LoadAtOpen {
		return false
	}
	if !s.man.Closed() || len(s.man.Rest) > 0 || !s.man.Has(manifest.FeatureBoot|manifest.FeatureOpenings) {
		return false
	}
	if e, err := readEpoch(&s.system); err != nil || e != nil { // of which a commit is due: openHistory
		return false
	}
	if len(s.leftover)+len(s.stale) > 0 || len(s.tail) == 0 || s.reserve.Full() {
		return false
	}
	for i, sg := range s.tail {
		if sg.HasFooter || i > 0 && sg.Footer.Records > 0 || sg.TornBytes() > 0 || sg.Size.Load() != sg.FramesEnd {
			return false // to be sealed, or truncated
		}
	}
	return true
}

// prepareLater makes the store ready for all but writes.
func (s *opener) prepareLater() error {
	for _, sg := range s.tail {
		sg.EndAtFrames()
	}
	s.man.past = &manifest.Manifest{MaxSeq: s.man.MaxSeq, Openings: slices.Clone(s.man.Openings)}
	s.writing.due.Store(s)
	return s.startLog() // which has no segment to seal or to make: see preparesLater
}

// prepare makes the store ready for writes, unless it is. The caller holds no lock but maintenanceMu, or stripes
// by BeginHold, which wait for it. After an error nothing is written: it is tried again, at once and then now and then,
// or the log has failed.
func (w *firstWrite) prepare() error {
	if w.due.Load() == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil && !w.ended && time.Now().Before(w.next) {
		return w.failed
	}
	return w.prepareLocked()
}

// prepareForClose is the last prepare, for Close. It reports whether anything can have been written.
func (w *firstWrite) prepareForClose() (begun bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.prepareLocked()
	if failure.IsRetryable(err) { // a full disk: there is nothing to be noted, as nothing has been written
		err = nil
	}
	begun = w.due.Load() == nil
	w.ended = !begun
	return begun, err
}

func (w *firstWrite) prepareLocked() error {
	o := w.due.Load()
	if o == nil {
		return nil
	}
	if w.ended {
		return ErrClosed
	}
	if err := o.log.Err(); err != nil {
		return err
	}
	if err := o.guard.check(); err != nil { // another process may have the store by now
		return err
	}
	started := time.Now()
	if err := o.writeOpening(); err != nil {
		if failure.IsRetryable(err) {
			if failure.NoSpace(err) {
				o.reserve.NoteLack(err)
			}
			err = failure.NameNoSpace(err)
			w.failing(err, time.Since(started))
			return err
		}
		return o.log.Fail(err)
	}
	o.reserve.Begin()
	o.startWork(o.hintless)
	w.due.Store(nil)
	return nil
}

func (s *opener) writeOpening() error {
	first := s.log.Next() // the log's lock is not taken within the manifest's
	s.man.mu.Lock()
	defer s.man.mu.Unlock()
	if err := s.makeGood(); err != nil {
		return err
	}
	return s.noteOpening(first)
}

// prepareInBackground is prepare for whoever writes first, until it succeeds, the log fails, or the store closes.
func (s *opener) prepareInBackground() {
	warned := false
	again := func() bool {
		err := s.writing.prepare()
		if err != nil && !errors.Is(err, ErrClosed) && !warned {
			s.opts.Logger.Warn("not ready for writes", "err", err)
			warned = true
		}
		return failure.IsRetryable(err)
	}
	if again() {
		s.work.every(prepareRetry, again)
	}
}
