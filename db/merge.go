package db

import (
	"context"
	"errors"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/merge"
)

// MergeOptions say what one run of Store.Merge takes: see [merge.RunOptions].
type MergeOptions = merge.RunOptions

// MergeResult is what one run has done: see [merge.Result].
type MergeResult = merge.Result

// MergeStatus is what the background merge is doing: see [merge.Status].
type MergeStatus = merge.Status

// ErrMergeBusy is returned by Store.Merge while another merge runs.
var ErrMergeBusy = bitcask.ErrMergeBusy

const (
	// mergeEvery is how often the merge policy is asked.
	mergeEvery = time.Second
	// fullEvery is how often writes that meet a full disk may ask for a merge.
	fullEvery = 50 * time.Millisecond
)

// MergeSoon starts one merge in the background of the segments that Options.Merge picks, though they would
// not trigger one, and returns at once. It reports false if the store has no background merge: it is read-only,
// or Options.NoMerge is set. While another merge runs, nothing happens.
func (s *Store) MergeSoon() bool {
	if s.opts.ReadOnly || s.opts.NoMerge {
		return false
	}
	select {
	case s.mergeSoon <- struct{}{}:
	default: // one has been asked for already
	}
	return true
}

// MergeRoom is how many bytes a merge can write: what is left of the disk, and what the store holds in reserve. known is
// false where nobody knows what is left of the disk.
func (s *Store) MergeRoom() (bytes int64, known bool) { return s.base.Room() }

// mergeNow runs the merge that MergeSoon has asked for.
func (s *Store) mergeNow(ctx context.Context) {
	r, err := s.merger.Run(ctx, MergeOptions{})
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, bitcask.ErrClosed), errors.Is(err, ErrMergeBusy):
	case err != nil:
		s.opts.Logger.Error("merge failed", "err", err)
	default:
		s.opts.Logger.Info("merged on request", "segments", r.Segments, "written", r.Written, "reclaimed", r.Reclaimed(), "took", r.Took)
	}
}

// mergeLoop asks the merge policy until the store closes.
func (s *Store) mergeLoop(ctx context.Context) {
	tick := time.NewTimer(mergeEvery) // not earlier: who opens a store to merge it is not to find a merge running
	defer tick.Stop()
	for ; ; tick.Reset(nap.Until(mergeEvery)) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.mergeSoon:
			s.mergeNow(ctx)
			continue
		case <-s.base.Lacking(): // the sooner there is space, the better
		case <-s.disk.soon:
		}
		s.mergeForBound(ctx)
		if s.base.Full() { // a refused write follows another at once
			wait(ctx, fullEvery)
		}
	}
}

// wait returns after some time, or when the context ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
