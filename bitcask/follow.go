package bitcask

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/followlog"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/replay"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Following. A store that is open for reading with Options.Follow goes on with the log (package followlog) and changes
// its index as a replay would, one commit at a time, under the locks of the commit's stripes: readers see whole
// commits, in their order. What it shows is always a prefix of what the writer has committed.
//
// The writer does not know of it. It copies its commits through a mapping of the file, of which no system reports
// anything, so the follower looks: after a millisecond while commits come, and ever more rarely, down to twenty times a
// second, while none do. Reports of the system, of writes to the active segment, only make it look sooner.
//
//   - Merges: the segments that one replaces stay open, and so readable, until the index leads to the copies (follow_merge.go).
//   - Where commits are missing, or the end of the log was rewritten, the store is read whole again, and the content exchanged at one
//     moment (follow_reload.go).
//   - An error stands in FollowState until it has passed. Reads go on with what was reached.

// followRetry is the wait after an error.
const followRetry = 250 * time.Millisecond

// followDrain is how often the memory of what commits have dropped is released, also while they come without a pause.
const followDrain = 50 * time.Millisecond

// Following is what a store that follows calls, on a goroutine of its own. Any function may be nil. One that panics
// ends the process.
type Following struct {
	// Deadline is called for each change of a deadline of a key, with the key locked.
	Deadline func(DeadlineEvent)
	// Applied is called for each commit while its keys are locked, or all keys, if it is about namespaces. It must not
	// use the store. What it returns, if anything, is called when nothing is locked.
	Applied func(*Followed) (after func())
	// Reloading is called with nothing locked when the store had to be read whole again, as Open does, which has called
	// Options.Loading: fresh is what was read. ctx ends when the store closes. install is called with everything
	// locked, when the content is exchanged, and after, if there is one, with nothing locked.
	Reloading func(ctx context.Context, fresh *Store) (install func() (after func()), err error)
}

// Followed is a commit that a store which follows has applied.
type Followed struct {
	Sequence uint64        // of its last record
	Keys     []FollowedKey // in order; one may come more than once
	Whole    []int         // namespaces that were emptied or swapped
	Dropped  []uint32      // spaces that no namespace uses any more
}

// FollowedKey is a key that has changed.
type FollowedKey struct {
	Space uint32
	Key   string
	// FirstFieldDeadline is when the first of the key's fields expires now, Unix milliseconds; 0: none does.
	FirstFieldDeadline int64
	// Type is what the key holds now, which may have expired: None if nothing.
	Type keydir.Type
}

// FollowState says how far a store that follows has got.
type FollowState struct {
	Sequence uint64    // of the last record that it shows
	Reloads  int       // how often it had to read the store whole again
	Err      error     // why it cannot go on; nil: it does. It is tried again
	Since    time.Time // of Err
}

// ErrFollowing is returned by Backup and BackupTo of a store that follows: a segment that it lists may have more than
// it has applied.
var ErrFollowing = errors.New("stave: store follows another: back up that, or the directory opened for reading without Options.Follow")

// ErrNotFollowing is returned for a store that was not opened with Options.Follow.
var ErrNotFollowing = errors.New("stave: store does not follow: open it with Options.Follow")

// follower is the goroutine that follows, and what it knows.
type follower struct {
	s    *Store
	o    *opener // of the last Open
	a    *replay.Applier
	r    *followlog.Reader
	hook Following

	set       *segment.Set       // that a counts for
	adopt     []*segment.Segment // outputs of merges that the index is not led to yet
	unlisted  []*segment.Segment // to be closed
	hashes    []uint64           // of the commit at hand
	followed  Followed
	watched   uint32 // id of the segment that is watched; 0: none
	stopWatch func()
	woken     chan struct{}
	drained   time.Time // when what commits have dropped was released last

	mu       sync.Mutex // guards the rest
	state    FollowState
	troubled time.Time     // since when rounds fail; zero: they do not
	advanced chan struct{} // closed at the next commit; nil: nobody waits
}

func newFollower(o *opener) *follower {
	return &follower{s: o.Store, o: o, woken: make(chan struct{}, 1)}
}

// Follow begins to follow, until Close. It is called once.
func (s *Store) Follow(hook Following) error {
	f := s.follower
	if f == nil {
		return ErrNotFollowing
	}
	f.hook = hook
	if err := f.start(); err != nil && !errors.Is(err, followlog.ErrRewritten) {
		return err
	}
	f.note(nil)
	s.work.Go(f.run)
	return nil
}

// start makes the follower ready to go on where its opener has ended.
func (f *follower) start() error {
	s, o := f.s, f.o
	o.replayed = func(ev DeadlineEvent) {
		if f.hook.Deadline != nil {
			f.hook.Deadline(ev)
		}
	}
	man, err := manifest.Read(s.opts.seam.FS, s.dir, s.opts.mode(), nil)
	if err != nil {
		return err
	}
	r := &followlog.Reader{
		FS: s.guard.held, Dir: s.dir, Manifest: man, Open: map[uint32]*segment.Segment{}, Merged: true,
		Opened: f.openedSegment, Listed: f.listed, Footed: s.log.FollowFooter,
	}
	for _, sg := range s.segments.Load().All() {
		r.Open[sg.ID] = sg
	}
	f.r, f.set, f.a = r, nil, nil
	f.flushCounts()
	r.Next = s.log.Next()
	for i, sg := range o.tail {
		if err = r.Begin(sg, sg.Footer); err != nil || sg == s.log.Active() {
			r.Waiting = append(r.Waiting, o.tail[i+1:]...)
			break
		}
	}
	if err != nil {
		f.r = nil
		return errors.Join(err, man.Close())
	}
	if r.OpenListed() != nil || f.listed() != nil { // the manifest may be newer than that of the opener
		r.Manifest.Size = -1 // it will be read again
	}
	return nil
}

// openedSegment lists a segment that the log goes on in. One that a merge has written is listed when the index is to
// lead to it.
func (f *follower) openedSegment(sg *segment.Segment) error {
	sg.MapTo(f.s.opts.mapFor(sg))
	if sg.Merged {
		f.adopt = append(f.adopt, sg)
		return nil
	}
	f.list([]*segment.Segment{sg}, nil)
	return nil
}

// listed takes over what the manifest says by now.
func (f *follower) listed() error {
	s, now := f.s, f.r.Manifest
	s.man.mu.Lock()
	m := s.man.Manifest
	m.Sealed, m.Tail, m.NextID, m.MaxSeq, m.Origins, m.Openings = now.Sealed, now.Tail, now.NextID, now.MaxSeq, now.Origins, now.Openings
	m.Features, m.Through, m.Collided, m.ClosedID, m.ClosedLen = now.Features, now.Through, now.Collided, now.ClosedID, now.ClosedLen
	m.Booted, m.Boot = now.Booted, now.Boot
	s.man.mu.Unlock()
	for id, si := range now.Sealed {
		sg := f.r.Open[id]
		if sg == nil || sg.Sealed() || si.MaxSeq >= f.r.Next || f.r.Frames != nil && f.r.Frames.Segment == sg && !f.r.Frames.HasFooter {
			continue
		}
		sealed := segment.New(sg.StoreID, sg.ID, sg.File)
		sealed.Size.Store(int64(si.Length))
		if err := sealed.ReadFooter(); err != nil {
			return err
		}
		s.log.FollowSeal(sg, sealed.Footer, int64(si.Length))
	}
	return nil
}

// run looks for commits until the store closes.
func (f *follower) run() {
	defer func() {
		f.ended()
		if f.stopWatch != nil {
			f.stopWatch()
		}
		for _, sg := range append(f.adopt, f.unlisted...) { // which no list has
			if err := sg.Close(); err != nil {
				f.s.opts.Logger.Warn("closing", "file", sg.Name, "err", err)
			}
		}
		if f.r == nil {
			return
		}
		if err := f.r.Manifest.Close(); err != nil {
			f.s.opts.Logger.Warn("closing", "file", manifest.FileName, "err", err)
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := followlog.Soonest; ; {
		select {
		case <-f.s.work.stop:
			return
		case <-f.woken:
			timer.Stop()
		case <-timer.C:
		}
		before := f.s.Sequence()
		err := f.look()
		switch {
		case err != nil:
			wait = followRetry
			if f.note(err) {
				f.s.opts.Logger.Warn("the log cannot be followed", "dir", f.s.dir, "err", err)
			}
		case f.s.Sequence() != before:
			wait = followlog.Soonest
		default:
			wait = min(2*wait, followlog.Latest)
		}
		f.drain()
		timer.Reset(wait)
	}
}

// drain releases the memory of what commits have dropped, if that is due. Nothing is locked.
func (f *follower) drain() {
	if now := time.Now(); now.Sub(f.drained) >= followDrain {
		f.s.DrainDropped()
		f.drained = now
	}
}

// ended notes why nothing is followed any more, if the store is open.
func (f *follower) ended() {
	if f.s.work.stopping() {
		return
	}
	f.mu.Lock()
	f.state.Err, f.state.Since = errFollowEnded, time.Now()
	f.mu.Unlock()
	f.advance() // who waits for a commit finds that there will be none
}

var errFollowEnded = errors.New("a function that was called for a commit has ended the goroutine that follows")

// look is one look for commits.
func (f *follower) look() error {
	var err error
	if f.r == nil { // the opener, or a reload, has read frames that have been overwritten or truncated since
		err = f.start()
	}
	if err == nil {
		var current bool
		current, err = f.r.Round(f.apply)
		f.flushCounts()
		if err == nil && current {
			err = f.adoptMerged()
		}
	}
	if errors.Is(err, followlog.ErrGap) || errors.Is(err, followlog.ErrRewritten) {
		f.s.opts.Logger.Info("the store is read whole again", "dir", f.s.dir, "reason", err)
		if err = f.reload(); err != nil {
			return &reloadError{err}
		}
	}
	if err != nil {
		return err
	}
	f.note(nil)
	f.watch()
	return nil
}

// A reloadError is why the store could not be read whole again. Damage in it may be what the writer, which has just
// rolled something back, is about to write.
type reloadError struct{ error }

func (e *reloadError) Unwrap() error { return e.error }

// watch has the system report writes to the segment at hand, if it can.
func (f *follower) watch() {
	if f.r == nil || f.r.Frames == nil || f.r.Frames.Segment.ID == f.watched {
		return
	}
	if f.stopWatch != nil {
		f.stopWatch()
	}
	f.watched = f.r.Frames.Segment.ID
	f.stopWatch = f.s.guard.held.Watch(filepath.Join(f.s.dir, f.r.Frames.Segment.Name), func() {
		select {
		case f.woken <- struct{}{}:
		default:
		}
	})
}

// note notes how a look has ended, and reports whether its error is a new one that is to be logged.
func (f *follower) note(err error) (reported bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.troubled, f.state.Err = time.Time{}, nil
		return false
	}
	if f.troubled.IsZero() {
		f.troubled = time.Now()
	}
	_, reloading := errors.AsType[*reloadError](err)
	lasting := failure.IsDamage(err) && !reloading || errors.Is(err, ErrVersion) || errors.Is(err, ErrForeign) || errors.Is(err, ErrReplaced)
	if !lasting && time.Since(f.troubled) < followlog.Patience {
		return false
	}
	reported = f.state.Err == nil
	f.state.Err, f.state.Since = err, f.troubled
	return reported
}

// FollowState says how far a store that follows has got. Of any other it is the zero value, but for Err.
func (s *Store) FollowState() FollowState {
	f := s.follower
	if f == nil {
		return FollowState{Err: ErrNotFollowing}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	st := f.state
	st.Sequence = s.Sequence()
	return st
}

// WaitSequence returns when the store shows the record with a sequence number, which in a store that follows the writer
// has to append. In any other store it is there, or ErrNotFollowing is returned. Other errors: ErrClosed, that of
// FollowState once nothing is followed any more, and the context's.
func (s *Store) WaitSequence(ctx context.Context, sequence uint64) error {
	for {
		var advanced chan struct{}
		var ended error
		if f := s.follower; f != nil {
			f.mu.Lock()
			if f.state.Err == errFollowEnded {
				ended = errFollowEnded
			}
			if f.advanced == nil {
				f.advanced = make(chan struct{})
			}
			advanced = f.advanced
			f.mu.Unlock()
		}
		switch {
		case s.closed.Load():
			return ErrClosed
		case s.Sequence() >= sequence:
			return nil
		case advanced == nil:
			return ErrNotFollowing
		case ended != nil:
			return ended
		}
		select {
		case <-advanced:
		case <-s.work.stop:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// advance wakes who waits for a commit.
func (f *follower) advance() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.advanced != nil {
		close(f.advanced)
		f.advanced = nil
	}
}

// list lists segments, and others no more.
func (f *follower) list(add, drop []*segment.Segment) {
	f.flushCounts()
	f.s.segments.Store(f.s.segments.Load().With(add, drop))
	f.flushCounts()
}

// flushCounts adds what has become live and dead to the segments that were listed meanwhile.
func (f *follower) flushCounts() {
	s := f.s
	if f.a != nil && f.a.Replayed > 0 && f.set == s.segments.Load() {
		s.recoveryMu.Lock()
		s.recovery.Replayed += f.a.Flush()
		s.recoveryMu.Unlock()
	}
	if set := s.segments.Load(); set != f.set {
		f.set, f.a = set, replay.NewApplier(f.o.replayIndex(), new(indexfile.Contents))
	}
}
