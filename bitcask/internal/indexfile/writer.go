package indexfile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

const (
	// DumpStep bounds the bytes dumped while a stripe is locked: some twenty microseconds.
	DumpStep    = 64 << 10
	writeBuffer = 1 << 20
)

// Source is the store whose keydir an INDEX is to be.
type Source struct {
	Store  [16]byte
	Seed   keydir.Seed
	Spaces *namespace.Table
	System *system.Records
	Log    *commitlog.Log
	Mark   func() (format.Mark, error)
	Lock   func(stripe int, write bool) error // the stripe is loaded then, and no transaction claims a part of it
	Unlock func(stripe int, write bool)
	Ended  func() bool // gives the writing up; may be nil
}

// Write writes an INDEX to an empty file and returns what it says. Writers of the store continue; no location may come
// to lead into a segment that is removed meanwhile.
func Write(f vfs.File, s *Source) (*Contents, error) {
	w := &writer{s: s, file: f, pos: HeaderSize, seal: format.NewChecksumSeed(s.Store, 0)}
	return &w.contents, w.write()
}

// writer writes one INDEX.
type writer struct {
	s        *Source
	file     vfs.File
	seal     format.ChecksumSeed
	pos      int64 // where buf goes
	buf      []byte
	contents Contents
	live     *Sum
}

// ErrMoved means that namespaces were flushed or swapped while the keydir was
// dumped. The next attempt will find them settled.
var ErrMoved = errors.New("namespaces changed meanwhile")

func (w *writer) write() error {
	s, c := w.s, &w.contents
	if err := w.begin(); err != nil {
		return err
	}
	s.Spaces.Mu.Lock()
	moved := s.Spaces.Now.Load().Moved
	c.Fresh, c.Record, c.Moved = s.Spaces.Fresh, s.Spaces.Record, maps.Clone(moved)
	s.Spaces.Mu.Unlock()
	c.System = s.System.Dump()
	for _, r := range c.System {
		w.live.See(r.Loc)
	}
	if c.Record != 0 {
		w.live.See(c.Record)
	}
	for stripe := range keydir.Stripes {
		// Read before the lock is taken: a writer that has appended a record of this stripe by now
		// will have changed the keydir by the time we hold the lock.
		c.Stripes[stripe] = s.Log.Stats().Sequence
		byID := s.Spaces.Now.Load().ByID
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			if err := w.section(byID[id], stripe); err != nil {
				return err
			}
		}
	}
	s.Spaces.Mu.Lock()
	same := s.Spaces.Record == c.Record && s.Spaces.Fresh == c.Fresh && maps.Equal(s.Spaces.Now.Load().Moved, moved)
	s.Spaces.Mu.Unlock()
	if !same {
		return ErrMoved
	}
	// Every record that the sections know must be on disk: after a power cut
	// the log may not end before them, or its sequence numbers would be given
	// again.
	var err error
	if c.End, err = s.Mark(); err != nil {
		return err
	}
	if err := s.Log.Sync(); err != nil {
		return err
	}
	at := w.pos + int64(len(w.buf))
	c.Live, c.Promises = w.live.Live(), true
	b := c.Encode()
	w.buf = append(w.buf, b...)
	if err := w.flush(); err != nil {
		return err
	}
	c.DataBytes = w.pos
	head := EncodeHeader(s.Store, s.Seed, uint64(at), uint64(len(b)), w.seal.Sum(uint32(at), b))
	_, err = w.file.WriteAt(head, 0)
	return err
}

// begin notes the segments and how far they reach. Records after that are replayed, if they are not
// older than their stripe.
func (w *writer) begin() error {
	list, next := w.s.Log.Segments()
	w.contents.UpTo = next - 1
	first := uint32(math.MaxUint32)
	for _, c := range list {
		first = min(first, c.ID)
	}
	w.live = NewSum(first)
	for _, c := range list {
		is := Segment{ID: c.ID, Length: uint64(c.Frames), Foot: c.Foot}
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
func (w *writer) section(sp *namespace.Space, stripe int) error {
	at := w.pos + int64(len(w.buf))
	section := Section{Space: sp.ID, Stripe: uint32(stripe), Offset: uint64(at), Crc: w.seal.Start(uint32(at))}
	dump := sp.Dir.Dump(stripe)
	for dump.OnLoc = w.live.See; !dump.Done(); {
		if w.s.Ended != nil && w.s.Ended() {
			return failure.ErrCancelled
		}
		n := len(w.buf)
		if err := w.s.Lock(stripe, false); err != nil {
			return err
		}
		w.buf = dump.Append(w.buf, DumpStep)
		w.s.Unlock(stripe, false)
		section.Crc = format.ExtendSum(section.Crc, w.buf[n:])
		section.Length += uint64(len(w.buf) - n)
		if len(w.buf) >= writeBuffer {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if section.Counts = dump.Counts; section.Length > 0 {
		w.contents.Sections = append(w.contents.Sections, section)
	}
	return nil
}

func (w *writer) flush() error {
	if _, err := w.file.WriteAt(w.buf, w.pos); err != nil {
		return fmt.Errorf("writing at %d: %w", w.pos, err)
	}
	w.pos += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}
