package bitcask

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/internal/vfs"
)

// A bound of the directory. The store measures what its directory takes, and knows between two measurements what has
// been committed since, and what merges have written. It refuses a commit that adds something beyond fifteen sixteenths of the
// bound. What frees space later needs some now: deletes, outputs of merges, hints, edits of the manifest. So whoever owns a store with a bound merges from
// NearBound on, has writers wait from TightBound on, and keeps the live data below half of the bound: dead bytes are then
// at least a third of the segments wherever space lacks, and a merge frees more than it takes.
//
// On a disk with less room the bound is what there is, but for a part of it that others may have.

// ErrBound is returned by a commit that adds something, in a store whose directory takes what its bound allows. It is a
// *BoundError, and passes by itself when there is room.
var ErrBound = errors.New("the directory of the store takes all that its bound allows")

// BoundError is an ErrBound with the figures.
type BoundError struct {
	Used, Bound int64 // bytes
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("%v: %d bytes of %d; raise the bound (maxdisk), delete keys, or have keys evicted", ErrBound, e.Used, e.Bound)
}

// Is reports whether target is [ErrBound].
func (e *BoundError) Is(target error) bool { return target == ErrBound }

// Parts of the bound.
const (
	nearBound  = 3.0 / 4   // from where on merges take what has few dead bytes
	tightBound = 7.0 / 8   // from where on writers wait
	fullBound  = 15.0 / 16 // what commits that add something may fill; the rest is for deletes and merges
	liveBound  = 1.0 / 2   // what live data may take
	freeFloor  = 1.0 / 32  // of the bound is left free on the disk
)

// bound is that of a store.
type bound struct {
	set     atomic.Int64 // what was asked for; 0: none
	now     atomic.Int64 // that, or less on a disk that has no more
	grown   atomic.Int64 // bytes of commits and of outputs of merges
	before  atomic.Int64 // what the directory takes, without what grown counts
	lenient atomic.Bool  // nothing is refused
	living  atomic.Int64 // what the directory would take without dead bytes, as last counted

	mu    sync.Mutex       // held while the directory is measured; guards the rest
	hints map[string]int64 // lengths of hints of sealed segments, which do not change
}

// SetBound bounds what the directory of the store takes, in bytes; 0: not. Segments become shorter, a 160th of that if it is large. The
// bound is kept from the first MeasureBound on. With lenient set nothing is refused.
func (s *Store) SetBound(bytes int64, lenient bool) {
	s.bound.lenient.Store(lenient)
	if s.bound.set.Swap(bytes) != bytes {
		s.bound.now.Store(0)
		s.measureDisk()
		s.log.Shorten()
	}
}

// DirectoryBytes is what the directory takes, with what has been written since the last MeasureBound, and what it would take without
// dead bytes, as last counted. bound is what it may take: less than was asked for on a disk that has no more; 0: there is
// none, or nothing has been measured.
func (s *Store) DirectoryBytes() (used, live, bound int64) {
	if bound = s.bound.now.Load(); bound == 0 {
		return 0, 0, 0
	}
	return s.bound.used(), s.bound.living.Load(), bound
}

func (b *bound) used() int64 { return b.before.Load() + b.grown.Load() }

// grow counts what has been written. What is removed counts until the next measurement.
func (b *bound) grow(bytes int64) { b.grown.Add(bytes) }

// reached reports whether a part of the bound is in use.
func (b *bound) reached(part float64) bool {
	now := b.now.Load()
	return now != 0 && float64(b.used()) > part*float64(now)
}

// NearBound reports whether dead bytes take what may soon be needed.
func (s *Store) NearBound() bool { return s.bound.reached(nearBound) }

// TightBound reports whether writes that add something are to wait for merges, or to be refused if these find nothing.
func (s *Store) TightBound() bool { return s.bound.reached(tightBound) }

// FullBound reports whether commits that add something are refused.
func (s *Store) FullBound() bool { return s.bound.reached(fullBound) }

// LiveExcess counts the live data anew, in O(segments), and returns how many bytes they exceed half of the bound by: evictions are
// to make so many dead. It is negative if they do not.
func (s *Store) LiveExcess() int64 {
	bound := s.bound.now.Load()
	if bound == 0 {
		return -1
	}
	s.countLiving()
	return s.bound.living.Load() - int64(liveBound*float64(bound))
}

// takeOfBound counts a commit, unless it is to be refused.
func (t *Tx) takeOfBound(bytes int64) error {
	b := &t.s.bound
	if b.set.Load() == 0 {
		return nil
	}
	b.grow(bytes)
	if used, now := b.used(), b.now.Load(); b.reached(fullBound) && !b.lenient.Load() && !t.draws() && !t.notesClock() {
		b.grow(-bytes)
		return &BoundError{Used: used, Bound: now}
	}
	return nil
}

// notesClock reports whether a transaction does nothing but note what has been shown as expired, which a clock that is put back would show
// again. The record is of eight bytes, and one takes the place of another.
func (t *Tx) notesClock() bool {
	return t.recs.Len() == 1 && t.recs.At(0).row().Home == format.HomeSystem && string(t.recs.At(0).key(t.buf)) == system.ClockName
}

// MeasureBound measures what the directory takes, if there is a bound, and how much of it is live. It lists the directory. An error
// says that nothing has been measured, or, with an *UncountedError, that a file has not been counted.
func (s *Store) MeasureBound() error {
	b := &s.bound
	b.mu.Lock()
	defer b.mu.Unlock()
	set := b.set.Load()
	if set == 0 {
		b.now.Store(0)
		return nil
	}
	if active := s.log.Active(); active != nil && active.Size.Load() > s.SegmentSize() { // begun before there was a bound
		if err := s.Rotate(); err != nil {
			return err
		}
	}
	grown := b.grown.Load() // before: what is committed meanwhile may be counted twice
	total, err := s.directoryBytes()
	if _, some := err.(*UncountedError); err != nil && !some {
		return err
	}
	now := set
	if free, known := vfs.SpaceOf(s.opts.seam.FS, s.dir); known {
		now = max(min(now, total+free-int64(freeFloor*float64(set))), 1)
	}
	b.before.Store(total - grown)
	b.now.Store(now)
	s.countLiving()
	return err
}

// UncountedError says that the length of a file in the directory of a store is not known: a bound of the directory is kept without
// it.
type UncountedError struct {
	File string
	Err  error
}

func (e *UncountedError) Error() string {
	return fmt.Sprintf("bitcask: %s does not count towards the bound of the directory: %v", e.File, e.Err)
}

// Unwrap returns why.
func (e *UncountedError) Unwrap() error { return e.Err }

// boundedSegment is the length from which segments are sealed in a directory with a bound. Shorter ones let merges release
// little by little; each costs some syncs.
func boundedSegment(wanted, bound int64) int64 {
	return min(wanted, max(bound/160, min(bound/32, 2<<20)))
}

// directoryBytes adds the lengths of all files in the directory. An INDEX counts twice: the next one is written beside it. An
// *UncountedError names a file that is missing from the sum.
func (s *Store) directoryBytes() (total int64, err error) {
	names, err := s.opts.seam.FS.List(s.dir)
	if err != nil {
		return 0, err
	}
	sealed := map[string]int64{} // data files
	for _, sg := range s.segments.Load().All() {
		if sg.Sealed() {
			sealed[sg.Name] = sg.Size.Load()
		}
	}
	hints := make(map[string]int64, len(s.bound.hints))
	for _, name := range names {
		if size, is := sealed[name]; is {
			total += size
			continue
		}
		id, _, ok := format.ParseName(name)
		isHint := ok && name == format.HintName(id)
		if isHint {
			if size, known := s.bound.hints[name]; known {
				hints[name] = size
				total += size
				continue
			}
		}
		size, lost := s.fileSize(name)
		if lost != nil {
			err = &UncountedError{File: name, Err: lost}
		}
		if isHint {
			if _, is := sealed[format.DataName(id)]; is {
				hints[name] = size
			}
		}
		if strings.HasPrefix(name, IndexFile) {
			size *= 2
		}
		total += size
	}
	s.bound.hints = hints
	return total, err
}

// fileSize is the length of a file; 0 if it has been removed.
func (s *Store) fileSize(name string) (int64, error) {
	f, err := s.opts.seam.FS.Open(filepath.Join(s.dir, name), vfs.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return f.Size()
}

// countLiving estimates what the directory would take without dead bytes: the share of the segments that is live, applied to all
// files, since hints and the INDEX shrink with the segments.
func (s *Store) countLiving() {
	s.dead.drain()
	var live, all int64
	for _, info := range s.Segments() {
		live += info.LiveBytes
		all += info.Bytes
	}
	if all > 0 {
		s.bound.living.Store(int64(float64(live) / float64(all) * float64(s.bound.used())))
	}
}
