package db

import (
	"context"
	"errors"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/merge"
)

// MergeOptions say what one run of Store.Merge takes: see [merge.RunOptions].
type MergeOptions = merge.RunOptions

// MergeResult is what one run has done: see [merge.Result].
type MergeResult = merge.Result

// MergeStatus is what the background merge is doing: see [merge.Status].
type MergeStatus = merge.Status

// Finding is what Store.Check reports: see [bitcask.Finding].
type Finding = bitcask.Finding

// CheckResult counts what Store.Check has read: see [bitcask.CheckResult].
type CheckResult = bitcask.CheckResult

// The states of a store, in Stats.
const (
	StateOK     = bitcask.StateOK
	StateFull   = bitcask.StateFull
	StateFailed = bitcask.StateFailed
)

// SyncBuckets are the bounds of Stats.SyncTimes: see [bitcask.SyncTimes].
var SyncBuckets = bitcask.SyncBuckets

// ErrMergeBusy is returned by Store.Merge while another merge runs.
var ErrMergeBusy = bitcask.ErrMergeBusy

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

// SetExpiryCycle stops the cycle that deletes expired keys and fields, or lets it go on. They are never seen,
// deleted or not.
func (s *Store) SetExpiryCycle(on bool) { s.noExpiry.Store(!on) }
