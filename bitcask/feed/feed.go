// Package feed reads the commits of a store's directory one after another, as what they change: for a program that
// keeps something else in step with the store, in another process. bitcask.OpenFeed opens a [Feed], whose Next returns
// each [Commit] once, with its changes in order.
//
// A commit is returned once it is known to be on the disk, so none is ever taken back: not by a power cut, and not by a
// writer whose write has failed half way. What is on the disk is said by later commits, by the manifest after a pause,
// and by Close. So a commit comes when a sync has followed, and with it another commit or a pause
// (bitcask.Options.SyncEvery each). The end of the log of a writer that was killed comes when the next one has opened
// the store and written something, or closed it.
//
// A feed takes no lock and changes no byte, and the writer does not know of it. Merges remove commits: a feed that
// begins before what is left is refused. docs/FOLLOW.md says what a program does then.
package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/followlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// A Feed reads the commits of one directory. A followlog.Reader reads ahead; what it has found is read a second time,
// once it is known to be on the disk.
//
// A Feed is for one goroutine.
type Feed struct {
	src    Source
	r      *followlog.Reader
	spaces map[uint32]uint32 // namespaces whose space has another number, at the last commit that was returned
	last   uint64            // of the last commit that was returned, or after which the feed begins
	runs   []*run
	closed bool // what has been read is of a writer that has closed the store
	begun  bool // the log reaches as far as the feed begins
	gap    uint64
	known  bool               // the end of the log has been reached once, and was not only counted
	man    *manifest.Manifest // as it was read last, perhaps closed

	counting bool   // the changes are not looked at
	synced   uint64 // of Synced
	commit   Commit
	frame    Frame // of commit, without Spaces
}

// A Commit is what one transaction has changed.
type Commit struct {
	First, Last uint64   // sequence numbers of its records
	Changes     []Change // in order; none if it was about the store itself
}

// A run is the commits of one segment that have been read ahead.
type run struct {
	sg     *segment.Segment
	fr     *segment.Frames // as far as they were returned
	read   int64           // as far as they were read ahead
	synced int64           // as far as a commit says that they are on the disk
}

// Source is what a feed reads. Package bitcask fills it in.
type Source struct {
	Held *vfs.Held // of Dir; Close closes it
	Dir  string
	// Spaces opens the store for reading and returns which namespaces have a space of another number, and the sequence
	// number of the record that says so; 0: there is none. Without it commits come without changes, as frames.
	Spaces func(context.Context) (moved map[uint32]uint32, newest uint64, err error)
}

// A MissingCommitsError says that the log does not have all commits after a sequence number any more: merges have
// removed the rest.
type MissingCommitsError struct {
	After uint64 // the one that was asked for
	From  uint64 // all commits after this one are there
}

func (e *MissingCommitsError) Error() string {
	return fmt.Sprintf("the log has no longer every commit after sequence %d: merges have removed some. It has those after %d", e.After, e.From)
}

// A FutureError says that the log ends before the sequence number after which a feed was to begin: it is another store,
// or an older copy.
type FutureError struct {
	After uint64 // the one that was asked for
	End   uint64 // of the log
}

func (e *FutureError) Error() string {
	return fmt.Sprintf("the log ends with sequence %d, before %d: this is another store, or an older copy of it", e.End, e.After)
}

// ahead is how many bytes are read ahead of what can be returned.
const ahead = 4 << 20

var errAhead = errors.New("enough was read ahead")

// Open begins to read after a sequence number, or, if newest is not 0, so many commits before the end of the log.
// Programs call bitcask.OpenFeed, which says more.
func Open(ctx context.Context, src Source, after uint64, newest int) (f *Feed, err error) {
	f = &Feed{src: src, last: after}
	if newest > 0 {
		err = f.beginBeforeEnd(ctx, newest)
	} else {
		err = f.restart(ctx, true)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close closes the files.
func (f *Feed) Close() error { return errors.Join(f.stop(), f.src.Held.Close()) }

// stop closes what start has opened.
func (f *Feed) stop() error {
	if f.r == nil {
		return nil
	}
	errs := []error{f.r.Manifest.Close()}
	for _, sg := range f.r.Open {
		errs = append(errs, sg.Close())
	}
	f.r, f.runs = nil, nil
	return errors.Join(errs...)
}

// Next returns the next commit that is known to be on the disk, or io.EOF if there is none so far; it may be called
// again then. The commit is valid until the next call. Other errors: *MissingCommitsError, if merges were
// faster; *FutureError, or bitcask.ErrReplaced, if an older copy of the store is there now; *bitcask.CorruptError;
// bitcask.ErrVersion; those of the file system and the context.
func (f *Feed) Next(ctx context.Context) (*Commit, error) {
	damaged := time.Time{}
	for {
		if c, err := f.take(); c != nil || err != nil {
			return c, err
		}
		if err := f.look(ctx); err != nil {
			return nil, err
		}
		if f.ready() {
			continue
		}
		// This is the end of the log, unless it is a damaged place. A writer alongside may be copying a commit to a
		// place after which others stand already.
		err := f.judgeEnd()
		switch {
		case err == nil:
			return nil, io.EOF
		case damaged.IsZero():
			damaged = time.Now()
		case time.Since(damaged) > followlog.Patience:
			return nil, err
		}
		if err := pause(ctx, followlog.Latest); err != nil {
			return nil, err
		}
	}
}

// Wait returns when Next has a commit to return. Errors are as of Next.
func (f *Feed) Wait(ctx context.Context) error {
	for wait := followlog.Soonest; !f.ready(); wait = min(2*wait, followlog.Latest) {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		if err := f.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ready reports whether a commit that was read ahead is on the disk, new or not.
func (f *Feed) ready() bool {
	return slices.ContainsFunc(f.runs, func(run *run) bool { return run.fr.Pos < f.durable(run) })
}

// durable is the offset up to which the frames of a segment that were read ahead are known to be on the disk.
func (f *Feed) durable(run *run) int64 {
	at := f.r.Frames.Segment
	sealed := !slices.Contains(f.r.Manifest.Tail, run.sg.ID)
	// Nothing is noted as on the disk in a segment before all of the one before it is.
	passed := at != run.sg && max(f.r.Frames.Synced, f.r.Manifest.ClosedUpTo(at.ID)) > format.SegmentHeaderSize
	if f.closed || sealed || passed || f.last < f.synced { // the last one: so are the commits up to f.synced, and f.last+1 is the next one
		return run.read
	}
	return min(run.read, max(run.synced, f.r.Manifest.ClosedUpTo(run.sg.ID)))
}

// take returns the next commit of those that were read ahead; nil if none of them is known to be on the disk.
func (f *Feed) take() (*Commit, error) {
	for len(f.runs) > 0 {
		run := f.runs[0]
		for end := f.durable(run); run.fr.Pos < end; {
			if run.fr.End != end {
				run.fr.Extend(end)
			}
			if c, err := f.takeOne(run); c != nil || err != nil {
				return c, err
			}
		}
		if run.fr.Pos < run.read || len(f.runs) == 1 {
			return nil, nil
		}
		f.runs = f.runs[1:]
	}
	return nil, nil
}

// takeOne reads a commit; nil if it is one that was seen.
func (f *Feed) takeOne(run *run) (*Commit, error) {
	at := run.fr.Pos
	raw, h, entries, err := run.fr.NextFrame()
	if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) || err == io.EOF {
		return nil, &failure.CorruptError{File: run.sg.Name, Offset: at, Reason: "what stood there a moment ago does not verify"}
	}
	if err != nil {
		return nil, err
	}
	c := &f.commit
	c.First, c.Last, c.Changes = h.Seq, run.fr.MaxSeq, c.Changes[:0]
	if c.Last <= f.last {
		return nil, nil
	}
	for i := 0; i < len(entries) && !f.counting && f.src.Spaces != nil; i++ { // a commit is shown as a whole, or not at all
		if err := followlog.Validate(run.sg, &entries[i]); err != nil {
			return nil, err
		}
	}
	switch {
	case f.counting:
	case f.src.Spaces == nil:
		f.frame = Frame{Segment: run.sg, Offset: at, Bytes: raw}
	default:
		if err := f.changes(run.sg, at, raw, &h); err != nil {
			return nil, err
		}
	}
	f.last = c.Last
	return c, nil
}

// look reads ahead.
func (f *Feed) look(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var troubled time.Time
	for {
		err := f.lookOnce(ctx)
		if err == nil {
			return f.tidy()
		}
		if troubled.IsZero() {
			troubled = time.Now()
		}
		missing, future := (*MissingCommitsError)(nil), (*FutureError)(nil)
		lasting := failure.IsDamage(err) || errors.Is(err, failure.ErrVersion) || errors.Is(err, failure.ErrForeign) || errors.Is(err, failure.ErrReplaced) || errors.As(err, &missing) || errors.As(err, &future)
		if lasting || time.Since(troubled) > followlog.Patience {
			return err
		}
		if err := pause(ctx, followlog.Latest); err != nil { // the writer may be in the middle of something
			return err
		}
	}
}

func (f *Feed) lookOnce(ctx context.Context) error {
	if f.r == nil { // a restart has failed
		if err := f.restart(ctx, false); err != nil {
			return err
		}
	}
	f.closed = false
	current, err := f.r.Round(f.readAhead)
	switch {
	case errors.Is(err, followlog.ErrRewritten):
		return f.restart(ctx, false)
	case errors.Is(err, followlog.ErrGap):
		return f.overGap(ctx)
	case err != nil && err != errAhead:
		return err
	}
	// If the manifest still says that the writer has closed the store, what was just read is of that writer, or of one
	// before it.
	if _, err := f.r.Refresh(); errors.Is(err, followlog.ErrRewritten) {
		return f.restart(ctx, false)
	} else if err != nil {
		return err
	}
	f.closed = f.r.Manifest.Closed()
	if current && !f.begun {
		if end := f.r.Next - 1; end < f.last {
			return &FutureError{After: f.last, End: end}
		}
		f.begun = true
	}
	f.known = f.known || current && !f.counting
	return nil
}

// readAhead notes a commit.
func (f *Feed) readAhead(*format.FrameHeader, []format.Entry) error {
	fr := f.r.Frames
	if n := len(f.runs); n == 0 || f.runs[n-1].sg != fr.Segment {
		f.runs = append(f.runs, &run{sg: fr.Segment, fr: segment.NewFrames(fr.Segment)})
	}
	run := f.runs[len(f.runs)-1]
	run.read, run.synced = fr.Pos, fr.Synced
	if first := f.runs[0]; first.read-first.fr.Pos >= ahead && f.durable(first)-first.fr.Pos >= ahead {
		return errAhead
	}
	return nil
}

// continues makes sure that what was returned is still in the log, as a manifest that was just read has it: nobody has
// put an older copy there.
func (f *Feed) continues(now *manifest.Manifest) error {
	before := f.man
	f.man = now
	if before == nil || !f.known {
		return nil
	}
	if now.Store != before.Store {
		return fmt.Errorf("%s: %w", manifest.FileName, failure.ErrForeign)
	}
	if !now.Continues(before.Openings, f.last) {
		f.man = before // Next says so again
		return fmt.Errorf("%s: %w", f.src.Dir, failure.ErrReplaced)
	}
	return nil
}

// overGap goes on where commits were missing: once more from the beginning, for they may have been about to be written,
// and then no more.
func (f *Feed) overGap(ctx context.Context) error {
	r := f.r
	if r.Frames != nil && !r.Frames.HasFooter {
		if si, sealed := r.Manifest.Sealed[r.Frames.Segment.ID]; sealed && si.MaxSeq >= r.Next {
			return f.sealedDamage(&si)
		}
	}
	if f.gap == r.Next {
		name, at := manifest.FileName, int64(0)
		if r.Frames != nil {
			name, at = r.Frames.Segment.Name, r.Frames.Pos
		}
		return &failure.CorruptError{File: name, Offset: at, Reason: fmt.Sprintf("the commit with sequence %d should follow, and is not there", r.Next)}
	}
	f.gap = r.Next
	return f.restart(ctx, false)
}

// sealedDamage finds the damage that keeps the commits of a sealed segment from being read to the end.
func (f *Feed) sealedDamage(si *format.SealedInfo) error {
	fr := segment.NewFramesAfter(f.r.Frames.Segment, f.r.Frames.Pos, format.Footer{})
	fr.Extend(int64(si.Length))
	_, err := fr.Next()
	if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) {
		return &failure.CorruptError{File: fr.Segment.Name, Offset: bad.At, Reason: bad.Reason}
	}
	return err // nil: it was being written
}

// judgeEnd finds what says that the place where the log ends is damaged.
func (f *Feed) judgeEnd() error {
	if f.r == nil || f.r.Frames == nil || f.r.Frames.HasFooter {
		return nil
	}
	return f.r.JudgeEnd()
}

// tidy closes the segments that are read. A merge may have removed them, and their space on the disk is released then.
func (f *Feed) tidy() error {
	var errs []error
	for id, sg := range f.r.Open {
		if f.r.Frames != nil && f.r.Frames.Segment == sg || slices.ContainsFunc(f.runs, func(run *run) bool { return run.sg == sg }) || slices.Contains(f.r.Manifest.Tail, id) {
			continue
		}
		si, listed := f.r.Manifest.Sealed[id]
		if listed && si.MaxSeq < f.r.Next || !listed && (sg.Merged || !slices.Contains(f.r.Waiting, sg)) {
			f.r.Forget(sg)
			errs = append(errs, sg.Close())
		}
	}
	return errors.Join(errs...)
}
