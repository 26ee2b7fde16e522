package bitcask

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Writing the INDEX: at Close, and in the background when replaying what came after the last one would take long.

const (
	// indexEvery is how often it is asked whether an INDEX is due.
	indexEvery = time.Second

	// indexMinBacklog is the bytes of log from which replaying takes long.
	indexMinBacklog = 64 << 20
)

// indexState describes the INDEX on disk. maintenanceMu guards it.
type indexState struct {
	size    int64            // of the file; 0: none, or one that was ignored
	lengths map[uint32]int64 // how far it has replayed each segment
	opening uint64           // that its mark names
	failed  bool             // writing it failed: the background does not try again
	upTo    uint64           // no record before it is missing
	lazy    bool             // a store can be opened without loading it
}

// note is about an INDEX that was just loaded, or written.
func (x *indexState) note(c *indexfile.Contents) {
	*x = indexState{size: c.DataBytes, lengths: make(map[uint32]int64, len(c.Segments)), opening: c.End.Opening, upTo: c.UpTo, lazy: c.Promises}
	for _, is := range c.Segments {
		x.lengths[is.ID] = int64(is.Length)
	}
	if _, known := x.lengths[c.End.Segment]; !known { // newer than those, and needed as they are
		x.lengths[c.End.Segment] = format.SegmentHeaderSize
	}
}

// usable reports whether there is an INDEX, and no segment that it needs was merged away.
func (x *indexState) usable(set *segment.Set) bool {
	for id := range x.lengths {
		if set.Find(id) == nil {
			return false
		}
	}
	return x.size > 0
}

// backlog is how many bytes of segments opening would have to replay after the INDEX, or for lack of one.
func (x *indexState) backlog(set *segment.Set) (n int64) {
	lengths := x.lengths
	if !x.usable(set) {
		lengths = nil
	}
	for _, sg := range set.All() {
		length, known := lengths[sg.ID]
		if !known {
			length = format.SegmentHeaderSize
		}
		n += max(sg.Size.Load()-length-format.FooterSize, 0) // it may have been sealed since
	}
	return n
}

// indexIfDue writes an INDEX if one is due: when the log has grown by four times the INDEX's size.
// So it adds at most a quarter to the bytes written.
func (s *Store) indexIfDue() (more bool) {
	if s.lazy != nil && s.lazy.left.Load() > 0 { // soon it is loaded, and the size of the keydir is known
		return true
	}
	if !s.maintenanceMu.TryLock() { // a merge, which may take long
		return true
	}
	defer s.maintenanceMu.Unlock()
	if !s.index.failed && s.Err() == nil && !s.Full() && s.index.backlog(s.segments.Load()) >= max(indexMinBacklog, 4*indexLength(s.IndexBytes())) {
		_ = s.saveIndex(s.work.stopping) // logged, and it only saves time
	}
	return true
}

// indexLength estimates the length of an INDEX written now: a string takes 17 to 20 bytes in memory and 12 there, an
// element 24 and 19.
func indexLength(inMemory int64) int64 { return inMemory * 2 / 3 }

// SaveIndex writes the file INDEX now, so that the next Open need not replay the log. Close does so by itself, and so
// does the background when it is worth it. It does nothing in a store that is read-only or has seam.Options.NoIndex,
// and gives up, without an error, while namespaces are flushed or swapped continually.
func (s *Store) SaveIndex() error {
	if s.opts.ReadOnly || s.opts.seam.NoIndex {
		return nil
	}
	s.maintenanceMu.Lock()
	defer s.maintenanceMu.Unlock()
	if s.closed.Load() {
		return ErrClosed
	}
	if err := s.writing.prepare(); err != nil {
		return err
	}
	for range indexTries {
		err := s.saveIndex(s.work.stopping)
		if errors.Is(err, failure.ErrCancelled) {
			return ErrClosed
		}
		if !errors.Is(err, indexfile.ErrMoved) {
			return failure.NameNoSpace(err)
		}
	}
	return nil
}

// indexTries is how often SaveIndex begins again because namespaces moved.
const indexTries = 5

// saveIndex writes the INDEX with maintenanceMu held. It only saves time, so that a
// failure is logged, and left to the caller to make more of.
func (s *Store) saveIndex(cancelled func() bool) error {
	err := s.writeIndex(cancelled)
	if err != nil && !errors.Is(err, failure.ErrCancelled) && !errors.Is(err, indexfile.ErrMoved) {
		s.index.failed = true
		s.opts.Logger.Warn("index not written", "file", IndexFile, "err", err)
	}
	return err
}

// closeIndex writes the INDEX at Close, unless there is one that leaves next to nothing to replay. Only with an INDEX do
// small hashes and sets keep their order: the log of a merged store has elements in the order of their last writes.
// The log is closed: all of it is on disk, and nothing is being written.
func (s *Store) closeIndex() {
	if s.opts.ReadOnly || s.opts.seam.NoIndex {
		return
	}
	s.removeDamagedIndex()
	if s.Full() { // the last bytes are for what frees space
		s.opts.Logger.Warn("index not written: the disk is full", "file", IndexFile)
		return
	}
	set := s.segments.Load()
	if s.index.usable(set) && s.index.backlog(set) <= s.index.size/16 && !s.man.Aging(s.index.opening) && !s.index.opensLate(s.Sequence()) {
		return
	}
	if err := s.lazy.loadRest(); err != nil {
		s.opts.Logger.Warn("index not written", "file", IndexFile, "err", err)
		return
	}
	_ = s.saveIndex(nil) // logged, and it only saves time
}

// opensLate reports whether Open would have to load much of the INDEX for the records after it up to last, or all because
// it is of a version that promises nothing. A record concerns one stripe at most.
func (x *indexState) opensLate(last uint64) bool {
	if x.size < lazyFrom {
		return false
	}
	stripes := min(last-min(x.upTo, last), keydir.Stripes)
	return !x.lazy || x.size/keydir.Stripes*int64(stripes) > lazyTail
}

// writeIndex makes the file: temporary file, sync, rename, directory sync, so that a file named
// INDEX is never half written. Writers continue; maintenanceMu is held, so that no location leads
// into a segment that is about to be removed.
//
// What a crash leaves: before the rename the old INDEX and an INDEX.new that the next Open removes; after it the old or
// the new one. Every location in it is on disk before its name is.
func (s *Store) writeIndex(cancelled func() bool) error {
	temp, name := filepath.Join(s.dir, indexfile.TempName), filepath.Join(s.dir, IndexFile)
	f, err := vfs.Temporary(s.opts.seam.FS, temp)
	if err != nil {
		return err
	}
	c, err := indexfile.Write(f, &indexfile.Source{
		Store: s.man.Store, Seed: s.man.Seed, Spaces: &s.spaces, System: &s.system, Log: &s.log,
		Mark: s.Mark, Lock: s.lockWhole, Unlock: s.unlockWhole, Ended: cancelled,
	})
	if err := vfs.Publish(s.opts.seam.FS, f, temp, name, err); err != nil {
		return fmt.Errorf("%s: %w", IndexFile, err)
	}
	s.index.note(c)
	if s.lazy != nil {
		s.lazy.replaced = true
	}
	return s.opts.seam.FS.SyncDir(s.dir)
}

// Names of files in a store's directory.
const (
	ManifestFile = format.ManifestName
	LockFile     = format.LockName
	IndexFile    = indexfile.FileName // the snapshot of the keydir
	DataSuffix   = format.DataSuffix  // what those of segments end in
)
