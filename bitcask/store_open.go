package bitcask

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/chanmutex"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Recovery says what Open found and did.
type Recovery struct {
	TornBytes    int64          // truncated, or to be truncated, at the end of the log: no part of a commit known to have been on disk
	TornManifest bool           // the manifest ended in an edit nothing relied on
	Truncated    []Remains      // those of the two that were not all zeros; a store open for reading has truncated nothing
	Remains      []string       // files in which an opening before this one has kept such
	Removed      []string       // files that an interrupted rotation or merge left
	Stale        []string       // INDEX or hints that did not fit the log; removed. So is an INDEX that is found damaged after Open
	Unknown      []string       // files that are not ours; untouched
	Indexed      bool           // the file INDEX spared replaying the log from its beginning
	Replayed     uint64         // records replayed
	Scanned      int            // sealed segments read in full for lack of a good hint
	Damage       []CorruptError // tolerated: Options.ReadDamaged
	Took         time.Duration
}

// Recovery says what Open found and did.
func (s *Store) Recovery() Recovery {
	s.recoveryMu.Lock()
	defer s.recoveryMu.Unlock()
	return s.recovery
}

// Open opens the store in dir, creating both if need be. Errors: ErrOption, ErrLocked, ErrVersion, ErrManifest,
// ErrMissing, ErrForeign, *CorruptError (each with the file), or the file system's.
func Open(dir string, o *Options) (*Store, error) { return openUntil(context.Background(), dir, o) }

// openUntil is Open, unless the context ends before the log has been read.
func openUntil(ctx context.Context, dir string, o *Options) (*Store, error) {
	const tries = 1000 // a live writer would have to be faster than us so many times
	for i := 1; ; i++ {
		s, err := open(ctx, dir, o)
		if !errors.Is(err, errOutdated) || i == tries {
			return s, failure.NameNoSpace(err)
		}
	}
}

// errOutdated is why opening for reading failed if a live writer has since changed the store.
var errOutdated = errors.New("the store has changed while it was opened")

// opener is a store that is being opened, with what only the opening knows.
type opener struct {
	*Store
	present  map[string]bool       // names in the directory
	leftover []string              // those that an interrupted rotation or merge left
	tail     []*segment.Segment    // the unsealed segments in log order
	replayed func(DeadlineEvent)   // the receiver of deadlines
	hintless []uint32              // sealed segments that need a hint
	stale    []string              // files that describe the log and are not used
	only     *[keydir.Stripes]bool // stripes that are replayed; nil: all
}

// newStore is a store without files.
func newStore(dir string, o Options) *Store {
	s := &Store{dir: dir, maintenanceMu: chanmutex.New(), backups: chanmutex.New(), opts: o, work: background{stop: make(chan struct{})}, hinter: make(chan struct{}, 1)}
	s.syncing.mode.Store(int32(o.Sync))
	s.txs.New = func() any { return &Tx{locks: txLocks{of: &s.stripes, waiters: &s.claimWaiters}} }
	s.segments.Store(new(segment.Set))
	s.segmentSize.Store(o.SegmentSize)
	s.dead.segments = &s.segments
	s.guard = directoryGuard{dir: dir, log: &s.log, man: &s.man, work: &s.work, logger: o.Logger}
	s.pins.Remove = s.guard.removeSegments
	s.log.Init(commitlog.Environment{
		SegmentSize: s.SegmentSize, SyncAlways: o.Sync == SyncAlways, CopyStep: o.copyStep(), Logger: o.Logger, Segments: &s.segments, Stop: s.work.stop, LogEdit: s.man.logEdit,
		AddSegment: s.addSegment, CheckDirectory: s.guard.check, Unlinked: s.guard.unlinked, Sealed: s.wakeHinter,
	})
	return s
}

func open(ctx context.Context, dir string, o *Options) (opened *Store, err error) {
	begin := time.Now()
	options, err := o.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	s := &opener{Store: newStore(dir, options)}
	if s.loadingUntil = ctx; options.seam.Until != nil {
		s.loadingUntil = options.seam.Until
	}
	defer func() {
		if err == nil && opened == nil { // Options.Loading has panicked, or has ended the goroutine
			err = s.release()
			return
		}
		if err != nil {
			gone := errors.Is(err, ErrMissing) || failure.IsNotExist(err) || len(s.recovery.Damage) > 0
			if s.opts.ReadOnly && gone && s.outdated() {
				err = errors.Join(errOutdated, err)
			}
			err = errors.Join(fmt.Errorf("open %s: %w", dir, err), s.release())
		}
	}()
	if err := s.takeDirectory(); err != nil {
		return nil, err
	}
	if err := s.openManifest(); err != nil {
		return nil, err
	}
	if !s.opts.ReadOnly {
		s.man.Spare = &s.reserve
	}
	s.spaces.Init(s.man.Seed)
	s.system.Init()
	if err := s.openSegments(); err != nil {
		return nil, err
	}
	s.measureDisk()
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := s.learnFeatures(); err != nil {
		return nil, err
	}
	if len(s.recovery.Damage) > 0 && s.outdated() {
		return nil, errOutdated // what is missing may have been merged
	}
	if err := s.checkSystem(); err != nil {
		return nil, err
	}
	s.log.Reach(s.man.MaxSeq + 1)
	if err := s.serve(); err != nil {
		return nil, err
	}
	if s.opts.seam.Until != nil { // which has no say from here on
		s.loadingUntil, s.opts.seam.Until = nil, nil
	}
	if s.lazy != nil && s.opts.seam.Load != seam.LoadOnDemand {
		s.lazy.steadily = true
		s.work.Go(s.prepareInBackground)
		s.work.Go(s.loadInBackground)
	}
	s.startResidency()
	s.recovery.Took = time.Since(begin)
	return s.Store, nil
}

// serve makes the files good and the store ready for use: for writes as well, or, if nothing speaks against it, only for
// reads; then the background makes it ready for writes, and a write that comes before waits for that.
func (s *opener) serve() error {
	if s.preparesLater() {
		s.noteLog()
		return s.prepareLater()
	}
	if err := s.makeGood(); err != nil {
		return err
	}
	s.noteLog()
	if s.opts.ReadOnly {
		s.log.Show(s.tail)
		if s.opts.Follow {
			s.follower = newFollower(s)
		}
		return nil
	}
	if err := s.noteOpening(s.log.Next()); err != nil {
		return err
	}
	if err := s.reserve.With(reserve.LeaveOpen, s.startLog); err != nil {
		return err
	}
	s.reserve.Begin()
	s.startWork(s.hintless)
	err := s.openHistory()
	if err != nil {
		s.work.end()
	}
	return err
}

// startReserve says what the reserve wants to know of the store. Nothing is read: that is Reserve.Open.
func (s *opener) startReserve() {
	s.reserve.Start(reserve.Environment{
		FS: s.opts.seam.FS, Dir: s.dir, Logger: s.opts.Logger, Store: s.StoreID, SegmentSize: s.SegmentSize, Longest: s.longestSegment, Want: s.opts.Reserve,
		LogSize: s.logSize, SpaceAgain: s.wakeHinter,
	})
}

// openManifest reads the manifest, or makes a new store where there is nothing yet.
func (s *opener) openManifest() (err error) {
	s.man.Manifest, err = manifest.Read(s.opts.seam.FS, s.dir, s.opts.mode(), s.tolerance())
	if err == nil {
		s.recovery.TornManifest = len(s.man.Rest) > 0
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	missing := err
	names, err := s.opts.seam.FS.List(s.dir)
	if err != nil {
		return err
	}
	if s.opts.ReadOnly && slices.Contains(names, manifest.FileName) {
		return errOutdated // it has just been made
	}
	for _, name := range names {
		if _, _, ours := format.ParseName(name); ours {
			return fmt.Errorf("%w, but %s is there: repair the store", ErrManifest, name)
		}
	}
	if s.opts.ReadOnly {
		return missing
	}
	id, seed, err := manifest.NewIdentity()
	if err != nil {
		return err
	}
	if err := files.SyncNames(s.opts.seam.FS, s.dir); err != nil {
		return err
	}
	s.man.Manifest, err = manifest.Create(s.opts.seam.FS, s.dir, id, seed)
	return err
}

// makeGood brings the files into the state that Open has determined, when it is certain that the store opens: until
// here nothing has been changed (I7). What is truncated is kept first. A crash at any step leaves what the next Open
// finds and judges in the same way: the last edit of the manifest says that this opening has begun.
func (s *opener) makeGood() error {
	if s.opts.ReadOnly {
		s.foreseeTruncation()
		return nil
	}
	if err := s.keepAllRemains(); err != nil {
		return err
	}
	if err := s.reserve.With(reserve.LeaveNone, s.man.MakeGood); err != nil {
		return err
	}
	if err := s.clearAway(); err != nil {
		return err
	}
	if err := s.removeStale(); err != nil {
		return err
	}
	if err := s.reserve.With(reserve.LeaveEighth, s.truncateTail); err != nil {
		return err
	}
	if !s.man.Has(manifest.FeatureBoot|manifest.FeatureOpenings) && len(s.man.Sealed)+len(s.tail) > 0 {
		s.opts.Logger.Warn("the store gets a newer format now: versions before it cannot open it any more", "file", manifest.FileName)
	}
	if err := s.reserve.With(reserve.LeaveEighth, func() error { return s.man.Need(manifest.FeatureBoot | manifest.FeatureOpenings) }); err != nil {
		return err
	}
	return s.man.Log(manifest.EditBoot, s.bootOf())
}

// bootOf is what the manifest is to say of this writer's life of the kernel. One that is unknown is like no other.
func (s *opener) bootOf() []byte {
	if s.man.Here != (vfs.BootID{}) {
		return s.man.Here[:]
	}
	return []byte(crand.Text())[:len(s.man.Here)]
}

// outdated reports whether a live writer alongside us has progressed since we read the manifest: merges remove files
// that it lists, rotations add files that it does not list. An edit is written before the files of a merge go, and
// before a new segment holds anything, so a reader that checks for the edit after the files finds it.
func (s *opener) outdated() bool {
	if !s.opts.ReadOnly || s.man.Manifest == nil {
		return false
	}
	now, err := manifest.Read(s.opts.seam.FS, s.dir, vfs.ReadOnly, s.tolerance()) // corrected as before
	if err != nil {
		return false
	}
	same := now.NextID == s.man.NextID && slices.Equal(now.Tail, s.man.Tail) && maps.Equal(now.Sealed, s.man.Sealed)
	return now.Close() == nil && !same
}

// learnFeatures learns the features that a live writer alongside us has announced since we read the manifest: what it
// has written by then may use them, and has been read.
func (s *opener) learnFeatures() error {
	if !s.opts.ReadOnly {
		return nil
	}
	now, err := manifest.Read(s.opts.seam.FS, s.dir, vfs.ReadOnly, s.tolerance())
	if err != nil {
		return err
	}
	s.man.Features |= now.Features
	return now.Close()
}

// noteOpening notes in the manifest that this writer gives the sequence numbers from here on. A full disk is no reason
// not to open: then there is no id, and nothing that this writer writes about the log will be believed.
func (s *opener) noteOpening(first uint64) error {
	var id uint64
	for id == 0 {
		var b [8]byte
		if _, err := io.ReadFull(crand.Reader, b[:]); err != nil {
			return err
		}
		id = binary.LittleEndian.Uint64(b[:])
	}
	err := s.man.Log(manifest.EditOpening, manifest.Opening{ID: id, First: first}.Body())
	if failure.IsRetryable(err) {
		s.opts.Logger.Warn("INDEX and TTL will not be of use: the manifest cannot note who writes them", "file", manifest.FileName, "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("noting that the store is open: %w", err)
	}
	s.man.opening = id
	return nil
}

// startLog makes the store ready for commits.
func (s *opener) startLog() error {
	sealed, err := s.log.Start(s.tail, s.man.ClosedID, int64(s.man.ClosedLen))
	s.hintless = append(s.hintless, sealed...)
	return err
}

// startResidency starts the goroutine that lets what is known of pages in memory expire, if any segment is mapped.
func (s *opener) startResidency() {
	if !slices.ContainsFunc(s.segments.Load().All(), func(sg *segment.Segment) bool { return sg.Data != nil }) {
		return
	}
	store := s.Store // what the opener has besides is not kept for as long
	store.work.Go(func() {
		store.work.every(segment.ResidencyEvery, func() (more bool) {
			for _, sg := range store.segments.Load().All() {
				sg.Residency.Round.Add(1)
			}
			return true
		})
	})
}
