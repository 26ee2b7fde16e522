package bitcask

import (
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

const lockName = "LOCK"

// Store is an open store. Its methods may be called from any goroutine.
//
// There is one family of locks. stripes guard everything in RAM about the keys
// whose hash begins with their number: directory, families, and, as long as
// one is held, the files that the locations lead to. log.mu is taken within
// them, manifestMu within that; upkeep before all of them.
type Store struct {
	dir    string
	opts   Options
	lock   io.Closer
	closed atomic.Bool

	stripes  [keydir.Stripes]sync.RWMutex
	spaces   namespaces
	segments atomic.Pointer[segmentSet]
	log      commitLog
	txs      sync.Pool

	manifestMu sync.Mutex // guards man once the store is open
	man        *manifest

	upkeep sync.Mutex // held by whoever reads whole segments or removes files: merge, hint builder, check

	leftMu     sync.Mutex // guards left and leftSpaces: dropped, not yet counted as dead
	left       []keydir.Dropped
	leftSpaces []*space

	recovery  Recovery
	tailEnd   int64    // where the valid frames of the active segment end, during Open
	openHints []*hints // during load
	replayed  func(DeadlineEvent)
	hintless  []uint32 // sealed segments that need a hint

	stop   chan struct{}
	hinter chan struct{}
	work   sync.WaitGroup
}

// Recovery says what Open found and did.
type Recovery struct {
	TornBytes    int64    // cut off the end of the active segment: never acknowledged as durable
	TornManifest bool     // the manifest ended in an edit nothing relied on
	Removed      []string // files that an interrupted rotation or merge left
	Unknown      []string // files that are not ours; untouched
	Scanned      int      // sealed segments read in full for want of a good hint
	Took         time.Duration
}

// Open opens the store in dir, creating both if need be. Errors: ErrLocked,
// ErrVersion, ErrManifest, ErrMissing, ErrForeign, *CorruptError (each with
// the file), or the file system's.
func Open(dir string, o *Options) (_ *Store, err error) {
	begin := time.Now()
	s := &Store{dir: dir, opts: o.withDefaults(), stop: make(chan struct{}), hinter: make(chan struct{}, 1)}
	s.txs.New = func() any { return new(Tx) }
	s.log.store = s
	s.log.changed.L = &s.log.mu
	s.log.nextSeq = 1
	s.segments.Store(new(segmentSet))
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open %s: %w", dir, err), s.release())
		}
	}()
	if err := s.openManifest(); err != nil {
		return nil, err
	}
	s.spaces.init(s.man.seed)
	if err := s.openSegments(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := s.cutTail(); err != nil {
		return nil, err
	}
	s.log.nextSeq = max(s.log.nextSeq, s.man.maxSeq+1)
	s.log.writeSeq = s.log.nextSeq
	s.recovery.Scanned = len(s.hintless)
	if !s.opts.ReadOnly {
		if err := s.startActive(); err != nil {
			return nil, err
		}
		s.startWork()
	}
	s.recovery.Took = time.Since(begin)
	return s, nil
}

// Recovery says what Open found and did.
func (s *Store) Recovery() Recovery { return s.recovery }

func (s *Store) mode() vfs.Mode {
	if s.opts.ReadOnly {
		return vfs.ReadOnly
	}
	return vfs.ReadWrite
}

// openManifest takes the lock and reads the manifest, or makes a new store
// where there is nothing yet.
func (s *Store) openManifest() (err error) {
	if !s.opts.ReadOnly {
		if err := s.opts.FS.MkdirAll(s.dir); err != nil {
			return err
		}
		if s.lock, err = s.opts.FS.Lock(filepath.Join(s.dir, lockName)); err != nil {
			if errors.Is(err, vfs.ErrLocked) {
				return fmt.Errorf("%w: %w", ErrLocked, err)
			}
			return err
		}
	}
	var torn bool
	s.man, torn, err = readManifest(s.opts.FS, s.dir, s.mode())
	if !errors.Is(err, fs.ErrNotExist) || s.opts.ReadOnly {
		s.recovery.TornManifest = torn
		return err
	}
	names, err := s.opts.FS.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, _, ours := parseName(name); ours {
			return fmt.Errorf("%w, but %s is there: repair the store", ErrManifest, name)
		}
	}
	var random [32]byte
	if _, err := io.ReadFull(crand.Reader, random[:]); err != nil {
		return err
	}
	var id [16]byte
	copy(id[:], random[:])
	seed := keydir.Seed{binary.LittleEndian.Uint64(random[16:]), binary.LittleEndian.Uint64(random[24:])}
	s.man, err = createManifest(s.opts.FS, s.dir, id, seed)
	return err
}

// openSegments opens the files the manifest names, after making sure that
// they are all there, and clears away what an interrupted rotation or merge
// left.
func (s *Store) openSegments() error {
	names, err := s.opts.FS.List(s.dir)
	if err != nil {
		return err
	}
	present := make(map[string]bool, len(names))
	for _, name := range names {
		present[name] = true
	}
	var list []*segment
	open := func(id uint32) (*segment, error) {
		if !present[dataName(id)] {
			return nil, fmt.Errorf("%s: %w", dataName(id), ErrMissing)
		}
		sg, err := openSegment(s.opts.FS, s.dir, s.man.store, id, s.mode())
		if err == nil {
			list = append(list, sg)
			s.segments.Store(newSegmentSet(list)) // so that release closes it
		}
		return sg, err
	}
	for id, si := range s.man.sealed {
		sg, err := open(id)
		if err != nil {
			return err
		}
		if err := sg.readFooter(); err != nil {
			return err
		}
		if sg.info() != si {
			return &CorruptError{sg.name, int64(si.length), "footer does not agree with the manifest"}
		}
		sg.mapTo(s.mapFor(sg))
	}
	if s.man.active != 0 {
		sg, err := open(s.man.active)
		if err != nil {
			return err
		}
		s.log.active = sg
		sg.mapTo(s.mapFor(sg))
	}
	return s.clearAway(names)
}

// cutTail cuts off a torn tail, durably, before anything can be appended
// behind it or read from it.
func (s *Store) cutTail() error {
	sg := s.log.active
	if sg == nil {
		return nil
	}
	size, end := sg.size.Load(), s.tailEnd
	s.recovery.TornBytes = size - end
	sg.size.Store(end)
	if s.opts.ReadOnly {
		return nil
	}
	if end < size {
		s.opts.Logger.Warn("torn tail cut off", "file", sg.name, "offset", end, "bytes", size-end)
		if err := sg.file.Truncate(end); err != nil {
			return fmt.Errorf("%s: cutting off torn tail: %w", sg.name, err)
		}
	}
	// What recovery serves must not be lost by a power cut after it: a killed
	// process leaves written but unsynced bytes in the page cache.
	if err := sg.file.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", sg.name, err)
	}
	return nil
}

// mapLength is the length to map of a segment that will still grow.
func (s *Store) mapLength() int {
	if s.opts.NoMapping {
		return 0
	}
	return int(s.opts.SegmentSize)
}

func (s *Store) mapFor(sg *segment) int {
	if s.opts.NoMapping {
		return 0
	}
	if sg.sealed {
		return int(sg.size.Load())
	}
	return max(s.mapLength(), int(sg.size.Load()))
}

// clearAway removes files with our names that the manifest does not know. All
// that it does know are there. One that holds commits and was not written by a
// merge is not a leftover: the manifest has lost an edit.
func (s *Store) clearAway(names []string) error {
	for _, name := range names {
		id, suffix, ours := parseName(name)
		_, sealed := s.man.sealed[id]
		switch {
		case name == manifestName || name == lockName || name == TTLName:
			continue
		case name == manifestTemp || name == TTLName+".new":
		case !ours:
			s.recovery.Unknown = append(s.recovery.Unknown, name)
			continue
		case sealed || id == s.man.active && suffix == dataSuffix:
			continue
		case suffix == dataSuffix:
			if err := s.checkLeftover(id); err != nil {
				return err
			}
		}
		if s.opts.ReadOnly {
			continue
		}
		if err := s.opts.FS.Remove(filepath.Join(s.dir, name)); err != nil {
			return err
		}
		s.recovery.Removed = append(s.recovery.Removed, name)
	}
	if len(s.recovery.Removed) == 0 {
		return nil
	}
	return s.opts.FS.SyncDir(s.dir)
}

// TTLName is the file of deadlines beside the log; package ttl owns it.
const TTLName = "TTL"

func (s *Store) checkLeftover(id uint32) error {
	sg, err := openSegment(s.opts.FS, s.dir, s.man.store, id, vfs.ReadOnly)
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrVersion) {
		return err
	}
	if err != nil {
		return nil // not even a header: an interrupted creation
	}
	held := sg.size.Load() > segmentHeaderSize && !sg.merged && id >= s.man.nextID
	if held {
		// Only frames count: a crash may have left a longer file of zeros.
		_, ferr := newFrames(sg).next()
		held = ferr == nil
	}
	if err := sg.close(); err != nil {
		return err
	}
	if held {
		return &CorruptError{manifestName, s.man.size, fmt.Sprintf("%s holds commits but is not listed", dataName(id))}
	}
	return nil
}

// startActive makes the store ready for appends.
func (s *Store) startActive() error {
	l := &s.log
	if sg := l.active; sg != nil && !sg.sealed {
		end := sg.size.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.startLocked(sg, l.foot, end, end)
		l.syncSeq = l.writeSeq
		if s.man.closedID == sg.id && int64(s.man.closedLen) == end {
			l.closeLen = end
		}
		return nil
	} else if sg != nil {
		// Sealed, but the crash came before the manifest knew.
		return s.addActive(editSeal, func(id uint32) []byte { return rotateBody(sg.info(), id) })
	}
	return s.addActive(editAdd, func(id uint32) []byte { return binary.LittleEndian.AppendUint32(nil, id) })
}

func (s *Store) addActive(edit byte, body func(id uint32) []byte) error {
	sg, err := createSegment(s.opts.FS, s.dir, s.man.store, s.man.nextID, false, s.mapLength())
	if err != nil {
		return err
	}
	if err := s.man.log(edit, body(sg.id)); err != nil {
		return errors.Join(err, sg.close())
	}
	s.segments.Store(s.segments.Load().with([]*segment{sg}, nil))
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startLocked(sg, footer{}, segmentHeaderSize, segmentHeaderSize)
	l.syncSeq = l.writeSeq
	return nil
}

// startWork starts the background goroutines; Close stops them.
func (s *Store) startWork() {
	if s.opts.Sync == SyncInterval {
		s.work.Go(s.syncLoop)
	}
	if !s.opts.NoHints {
		done := make(map[uint32]bool)
		for id := range s.man.sealed {
			done[id] = !slices.Contains(s.hintless, id)
		}
		s.work.Go(func() { s.hintLoop(done) })
		if len(s.hintless) > 0 {
			s.wakeHinter()
		}
	}
}

func (s *Store) syncLoop() {
	tick := time.NewTicker(s.opts.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			// A failure is kept: every later write returns it.
			if err := s.log.sync(); err != nil {
				s.opts.Logger.Error("background sync", "err", err)
				return
			}
		}
	}
}

func (s *Store) wakeHinter() {
	select {
	case s.hinter <- struct{}{}:
	default:
	}
}

// hintLoop writes the hints of newly sealed segments. A hint only saves time,
// so its failure is logged and no more.
func (s *Store) hintLoop(done map[uint32]bool) {
	for {
		select {
		case <-s.stop:
			return
		case <-s.hinter:
		}
		s.upkeep.Lock()
		for _, sg := range s.segments.Load().all() {
			if done[sg.id] || sg == s.activeSegment() || s.stopping() {
				continue
			}
			done[sg.id] = true
			if sg.merged && s.hasHint(sg) {
				continue
			}
			if err := writeHint(s.opts.FS, s.dir, s.man.store, sg, s.stopping); err != nil && !errors.Is(err, errCancelled) {
				s.opts.Logger.Warn("hint not written", "file", hintName(sg.id), "err", err)
			}
		}
		s.upkeep.Unlock()
	}
}

func (s *Store) hasHint(sg *segment) bool {
	hs, err := openHint(s.opts.FS, s.dir, s.man.store, sg)
	return err == nil && hs.close() == nil
}

func (s *Store) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *Store) activeSegment() *segment {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.active
}

// Sync makes every write so far durable.
func (s *Store) Sync() error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.opts.ReadOnly {
		return nil
	}
	return s.log.sync()
}

// Close makes everything durable and releases the store. It waits for
// running transactions. A second call does nothing.
func (s *Store) Close() error {
	for i := range s.stripes {
		s.stripes[i].Lock()
	}
	was := s.closed.Swap(true)
	for i := range s.stripes {
		s.stripes[i].Unlock()
	}
	if was {
		return nil
	}
	close(s.stop)
	s.work.Wait()
	s.upkeep.Lock() // a merge that still runs sees stopping and ends
	defer s.upkeep.Unlock()
	var err error
	if !s.opts.ReadOnly {
		err = s.closeLog()
	}
	return errors.Join(err, s.release())
}

// closeLog syncs and notes in the manifest how far the active segment reaches,
// so that damage to it can be told from a torn tail.
func (s *Store) closeLog() error {
	l := &s.log
	if err := l.sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	end := l.active.size.Load()
	if end == l.closeLen || end == segmentHeaderSize {
		return nil
	}
	s.manifestMu.Lock()
	defer s.manifestMu.Unlock()
	return s.man.log(editClose, s.man.closeBody(l.active.id, uint64(end), l.writeSeq-1))
}

// release closes files and lets go of the lock.
func (s *Store) release() error {
	var errs []error
	for _, sg := range s.segments.Load().all() {
		errs = append(errs, sg.close())
	}
	if s.man != nil {
		errs = append(errs, s.man.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
