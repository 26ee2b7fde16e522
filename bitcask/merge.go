package bitcask

import (
	"context"

	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/mergeselect"
	"github.com/stavedb/stave/bitcask/internal/rewrite"
)

// RewriteOptions steer a rewrite.
type RewriteOptions struct {
	// Throttle is called with the number of bytes just read or written, mostly some thousands. It may sleep, and its
	// error ends the rewrite. The calls come from goroutines of the rewrite, one at a time. If Throttle panics or ends
	// its goroutine, the rewrite ends as if it were cancelled, and then Rewrite panics or ends its goroutine, too.
	// Default: no limit.
	Throttle func(bytes int) error
	// Progress is called at intervals with how many more bytes of the inputs have been processed,
	// in the way of Throttle. Default: none.
	Progress func(bytes int64)

	// OneOutput makes the output of a single segment as long as that needs, and of several as long as a segment: if that does not
	// suffice, the rewrite ends with ErrNoSpace. So one that finds no space leaves nothing behind: an output that has been
	// published while its inputs stay takes space for nothing. Default: false.
	OneOutput bool

	liveScan *mergeselect.Bounds // nil: the usual ones
}

// RewriteResult is what a rewrite did.
type RewriteResult struct {
	In, Out           []uint32 // ids of segments removed and written
	BytesIn, BytesOut int64    // of them
	Copied, Dropped   uint64   // records, followers not counted
}

// Rewrite copies the live records of the given sealed segments and removes the segments. Calls wait for each other. If
// it fails, or the context is cancelled, what has been published stays, the result says how much that is, and all else
// is as it was. A live record that does not verify is never left out: it ends the rewrite with a *CorruptError, and its
// segment stays.
func (s *Store) Rewrite(ctx context.Context, ids []uint32, o RewriteOptions) (RewriteResult, error) {
	if s.opts.ReadOnly {
		return RewriteResult{}, ErrReadOnly
	}
	if err := s.maintenanceMu.LockUnless(ctx); err != nil {
		return RewriteResult{}, err
	}
	defer s.maintenanceMu.Unlock()
	if s.closed.Load() {
		return RewriteResult{}, ErrClosed
	}
	if err := s.writing.prepare(); err != nil {
		return RewriteResult{}, err
	}
	if err := s.lazy.loadAll(); err != nil { // no file goes that a late replay may need: index_lazy.go
		return RewriteResult{}, err
	}
	ro := rewrite.Options{Throttle: o.Throttle, Progress: o.Progress, LiveScan: mergeselect.Usual, OneOutput: o.OneOutput}
	if o.liveScan != nil {
		ro.LiveScan = *o.liveScan
	}
	// internal/mergeselect says what is live; internal/rewrite copies it (rewrite.go), then edits the manifest, moves the
	// locations and removes the segments (publish.go).
	r, failed, err := rewrite.Run(ctx, s.rewriteEnvironment(), ids, ro)
	s.wakeHinter() // on a full disk outputs have none
	if failed != nil {
		failed()
	}
	return RewriteResult(r), err
}

// rewriteEnvironment is what a rewrite needs of the store.
func (s *Store) rewriteEnvironment() *rewrite.Environment {
	index := &mergeselect.Index{Spaces: &s.spaces, System: &s.system, Seed: s.man.Seed, Lock: s.lockWhole, Unlock: s.unlockWhole}
	return &rewrite.Environment{
		FS: s.opts.seam.FS, Dir: s.dir, NoHints: s.opts.seam.NoHints, NoMapping: s.opts.seam.NoMapping, SegmentSize: s.SegmentSize,
		Log: &s.log, Manifest: s.man.Manifest, ManifestMu: &s.man.mu, Segments: &s.segments, Pins: &s.pins, Reserve: &s.reserve, SpareID: &s.spareID,
		Inputs: s.inputEnvironment(), Index: index, CheckDirectory: s.guard.check, Stopping: s.work.stopping, Dead: s.dead.add, Grown: s.bound.grow,
	}
}

// inputEnvironment is what the inputs of a merge need of the store.
func (s *Store) inputEnvironment() *mergeinput.Environment {
	return &mergeinput.Environment{FS: s.opts.seam.FS, Dir: s.dir, ReadOnly: s.opts.ReadOnly, NoHints: s.opts.seam.NoHints, Logger: s.opts.Logger, Seed: s.man.Seed}
}
