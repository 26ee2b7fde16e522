package bitcask

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Writing the INDEX: at Close, and in the background when replaying what came
// after the last one would take long.

const (
	// indexHold bounds the bytes dumped while a stripe is locked: some twenty microseconds.
	indexHold   = 64 << 10
	indexBuffer = 1 << 20

	// indexEvery is how often it is asked whether an INDEX is due.
	indexEvery = 100 * time.Millisecond

	// indexMinBacklog is the bytes of log from which replaying takes long.
	indexMinBacklog = 64 << 20
)

// indexState describes the INDEX on disk. maintenanceMu guards it.
type indexState struct {
	size    int64            // of the file; 0: none, or one that was ignored
	lengths map[uint32]int64 // how far it has replayed each segment
	opening uint64           // that its mark names
	failed  bool             // writing it failed: not tried again but at Close
}

func (s *Store) noteIndex(c *indexfile.Contents) {
	s.index = indexState{size: c.DataBytes, lengths: make(map[uint32]int64, len(c.Segments)), opening: c.End.Opening}
	for _, is := range c.Segments {
		s.index.lengths[is.ID] = int64(is.Length)
	}
	if _, known := s.index.lengths[c.End.Segment]; !known { // newer than those, and needed as they are
		s.index.lengths[c.End.Segment] = format.SegmentHeaderSize
	}
}

// replayBacklog is how many bytes of segments opening would have to replay after the
// INDEX, or for lack of one.
func (s *Store) replayBacklog() int64 {
	var n int64
	set := s.segments.Load()
	lengths := s.index.lengths
	for id := range lengths {
		if set.Find(id) == nil { // merged away: the INDEX is of no use
			lengths = nil
			break
		}
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
	if !s.maintenanceMu.TryLock() { // a merge, which may take long
		return true
	}
	defer s.maintenanceMu.Unlock()
	if !s.index.failed && s.Err() == nil && !s.Full() && s.replayBacklog() >= max(indexMinBacklog, 4*s.indexSize()) {
		_ = s.saveIndex(s.stopping) // logged, and it only saves time
	}
	return true
}

// indexSize estimates the length of an INDEX written now: a string takes 17 to 20 bytes in memory and 12 there, an element 24 and 19.
func (s *Store) indexSize() int64 {
	var n int64
	for _, sp := range s.spaces.Now.Load().ByID {
		n += sp.Dir.Bytes()
	}
	return n * 2 / 3
}

// SaveIndex writes the file INDEX now, so that the next Open need not replay the log. Close does so
// by itself, and so does the background when it is worth it. It does nothing in a store that is
// read-only or has seam.Options.NoIndex, and gives up, without an error, while namespaces are
// flushed or swapped continually.
func (s *Store) SaveIndex() error {
	if s.opts.ReadOnly || s.opts.seam.NoIndex {
		return nil
	}
	s.maintenanceMu.Lock()
	defer s.maintenanceMu.Unlock()
	if s.closed.Load() {
		return ErrClosed
	}
	for range indexTries {
		err := s.saveIndex(s.stopping)
		if errors.Is(err, failure.ErrCancelled) {
			return ErrClosed
		}
		if !errors.Is(err, errMoved) {
			return err
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
	if err != nil && !errors.Is(err, failure.ErrCancelled) && !errors.Is(err, errMoved) {
		s.index.failed = true
		s.opts.Logger.Warn("index not written", "file", IndexFile, "err", err)
	}
	return err
}

// closeIndex writes the INDEX at Close, unless there is one that leaves next to nothing to replay.
// The log is closed: all of it is on disk, and nothing is being written.
func (s *Store) closeIndex() {
	if s.opts.ReadOnly || s.opts.seam.NoIndex {
		return
	}
	if s.Full() { // the last bytes are for what frees space
		s.opts.Logger.Warn("index not written: the disk is full", "file", IndexFile)
		return
	}
	if s.index.size > 0 && s.replayBacklog() <= s.index.size/16 && !s.man.Aging(s.index.opening) {
		return
	}
	_ = s.saveIndex(nil) // logged, and it only saves time
}

// writeIndex makes the file: temporary file, sync, rename, directory sync, so that a file named
// INDEX is never half written. Writers continue; maintenanceMu is held, so that no location leads
// into a segment that is about to be removed.
//
// What a crash leaves: before the rename the old INDEX and an INDEX.new that
// the next Open removes; after it the old or the new one. Every location in it
// is on disk before its name is.
func (s *Store) writeIndex(cancelled func() bool) error {
	temp, name := filepath.Join(s.dir, indexfile.TempName), filepath.Join(s.dir, IndexFile)
	f, err := vfs.Temporary(s.opts.seam.FS, temp)
	if err != nil {
		return err
	}
	w := &indexWriter{s: s, file: f, pos: indexfile.HeaderSize, cancelled: cancelled, seal: format.NewChecksumSeed(s.man.Store, 0)}
	if err := vfs.Publish(s.opts.seam.FS, f, temp, name, w.write()); err != nil {
		return fmt.Errorf("%s: %w", IndexFile, err)
	}
	s.noteIndex(&w.contents)
	return s.opts.seam.FS.SyncDir(s.dir)
}

// indexWriter writes one INDEX.
type indexWriter struct {
	s         *Store
	file      vfs.File
	seal      format.ChecksumSeed
	pos       int64 // where buf goes
	buf       []byte
	contents  indexfile.Contents
	cancelled func() bool
}

// errMoved means that namespaces were flushed or swapped while the keydir was
// dumped. The next attempt will find them settled.
var errMoved = errors.New("namespaces changed meanwhile")

func (w *indexWriter) write() error {
	s, c := w.s, &w.contents
	if err := w.begin(); err != nil {
		return err
	}
	s.spaces.Mu.Lock()
	moved := s.spaces.Now.Load().Moved
	c.Fresh, c.Record, c.Moved = s.spaces.Fresh, s.spaces.Record, maps.Clone(moved)
	s.spaces.Mu.Unlock()
	c.System = s.system.Dump()
	for stripe := range keydir.Stripes {
		// Read before the lock is taken: a writer that has appended a record of this stripe by now
		// will have changed the keydir by the time we hold the lock.
		c.Stripes[stripe] = s.Sequence()
		byID := s.spaces.Now.Load().ByID
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			if err := w.section(byID[id], stripe); err != nil {
				return err
			}
		}
	}
	s.spaces.Mu.Lock()
	same := s.spaces.Record == c.Record && s.spaces.Fresh == c.Fresh && maps.Equal(s.spaces.Now.Load().Moved, moved)
	s.spaces.Mu.Unlock()
	if !same {
		return errMoved
	}
	// Every record that the sections know must be on disk: after a power cut
	// the log may not end before them, or its sequence numbers would be given
	// again.
	var err error
	if c.End, err = s.Mark(); err != nil {
		return err
	}
	if err := s.log.Sync(); err != nil {
		return err
	}
	at := w.pos + int64(len(w.buf))
	b := c.Encode()
	w.buf = append(w.buf, b...)
	if err := w.flush(); err != nil {
		return err
	}
	c.DataBytes = w.pos
	head := indexfile.EncodeHeader(s.man.Store, s.man.Seed, uint64(at), uint64(len(b)), w.seal.Sum(uint32(at), b))
	_, err = w.file.WriteAt(head, 0)
	return err
}

// begin notes the segments and how far they reach. Records after that are replayed, if they are not
// older than their stripe.
func (w *indexWriter) begin() error {
	list, next := w.s.log.Segments()
	w.contents.UpTo = next - 1
	for _, c := range list {
		is := indexfile.Segment{ID: c.ID, Length: uint64(c.Frames), Foot: c.Foot}
		if c.Frames == 0 {
			is.Length = uint64(c.Size.Load())
		}
		var err error
		if is.End, err = c.EndSum(int64(is.Length)); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		w.contents.Segments = append(w.contents.Segments, is)
	}
	return nil
}

// section writes one stripe of one space, holding the stripe a little at a time.
func (w *indexWriter) section(sp *namespace.Space, stripe int) error {
	at := w.pos + int64(len(w.buf))
	section := indexfile.Section{Space: sp.ID, Stripe: uint32(stripe), Offset: uint64(at), Crc: w.seal.Start(uint32(at))}
	lock := &w.s.stripes[stripe]
	for dump := sp.Dir.Dump(stripe); !dump.Done(); {
		if w.cancelled != nil && w.cancelled() {
			return failure.ErrCancelled
		}
		n := len(w.buf)
		lock.RLock()
		w.buf = dump.Append(w.buf, indexHold)
		lock.RUnlock()
		section.Crc = format.ExtendSum(section.Crc, w.buf[n:])
		section.Length += uint64(len(w.buf) - n)
		if len(w.buf) >= indexBuffer {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if section.Length > 0 {
		w.contents.Sections = append(w.contents.Sections, section)
	}
	return nil
}

func (w *indexWriter) flush() error {
	if _, err := w.file.WriteAt(w.buf, w.pos); err != nil {
		return fmt.Errorf("writing at %d: %w", w.pos, err)
	}
	w.pos += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// IndexFile is the name of the snapshot of the keydir in a store's directory.
const IndexFile = indexfile.FileName
