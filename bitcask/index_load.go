package bitcask

import (
	"cmp"
	"errors"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Loading the INDEX at Open.

// loadIndex makes the keydir what the INDEX says, and returns how far that is
// the log. Any error means: do without, and nothing has been loaded. With
// NoIndex nothing is loaded either, and a writer learns whether it fits so far.
func (s *opener) loadIndex() (*indexfile.Contents, error) {
	if s.opts.seam.NoIndex && s.opts.ReadOnly {
		return nil, nil
	}
	f, err := s.opts.seam.FS.Open(filepath.Join(s.dir, IndexFile), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	c, err := s.loadIndexFrom(f)
	if err = errors.Join(err, f.Close()); err != nil {
		s.unload()
		return nil, err
	}
	return c, nil
}

// unload makes the keydir empty again.
func (s *opener) unload() {
	s.spaces.Init(s.man.Seed)
	s.spaces.Record = 0
	s.system.Init()
	s.hintless, s.recovery.Replayed, s.recovery.Scanned = nil, 0, 0
	for _, sg := range s.segments.Load().All() {
		sg.LiveBytes.Store(0)
	}
}

func (s *opener) loadIndexFrom(f vfs.File) (*indexfile.Contents, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	l := &indexLoader{s: s.Store, file: f, size: uint64(size), seal: format.NewChecksumSeed(s.man.Store, 0)}
	c, err := l.contents()
	if err != nil {
		return nil, err
	}
	pass := s.vouch
	if s.opts.seam.NoIndex { // it is only checked: the log shows the damage
		pass = func(_ indexfile.Segment, err error) error { return err }
	}
	if s.cutAt > 0 && c.End.Sequence >= s.cutAt {
		return nil, indexfile.ErrUnfit // of a later moment
	}
	if !s.man.Gave(c.End.Opening, c.End.Sequence) || !c.Fits(s.segments.Load(), pass) {
		return nil, indexfile.ErrUnfit
	}
	if s.opts.seam.NoIndex {
		return c, nil
	}
	s.spaces.Mu.Lock()
	s.spaces.InstallLocked(c.Moved, c.Fresh)
	s.spaces.Record = c.Record
	s.spaces.Mu.Unlock()
	for i := range c.Sections {
		s.spaces.ReplaySpace(c.Sections[i].Space)
	}
	if m, ok := f.(vfs.Mapper); ok && !s.opts.seam.NoMapping && strconv.IntSize == 64 {
		if data, err := m.Map(int(size)); err == nil {
			l.data = data
			defer func() {
				if err := m.Unmap(data); err != nil {
					s.opts.Logger.Warn("unmapping", "file", IndexFile, "err", err)
				}
			}()
		}
	}
	l.locations = indexfile.NewLocations(s.segments.Load())
	if c.Record != 0 && !l.locations.See(c.Record) {
		return nil, indexfile.ErrUnfit
	}
	for name, r := range c.System {
		if !l.locations.See(r.Loc) {
			return nil, indexfile.ErrUnfit
		}
		s.system.Put(name, r)
	}
	if err := l.loadAll(c.Sections); err != nil {
		return nil, err
	}
	l.locations.Count(s.segments.Load())
	return c, nil
}

// indexLoader loads the sections of one INDEX.
type indexLoader struct {
	s         *Store
	file      vfs.File
	data      []byte // mapping, or nil
	size      uint64
	seal      format.ChecksumSeed
	next      atomic.Int64 // section to be taken
	mu        sync.Mutex   // guards locations
	locations indexfile.Locations
}

// contents reads header and contents.
func (l *indexLoader) contents() (*indexfile.Contents, error) {
	head := make([]byte, indexfile.HeaderSize)
	if l.size < indexfile.HeaderSize {
		return nil, indexfile.ErrUnfit
	}
	if _, err := l.file.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if format.OtherVersion(head, indexfile.Magic, indexfile.Version) || format.OtherFlags(head, indexfile.Magic, 0) {
		return nil, ErrVersion
	}
	at, length, sum, ok := indexfile.ParseHeader(head, l.s.man.Store, l.s.man.Seed)
	if !ok || at > l.size || length != l.size-at {
		return nil, indexfile.ErrUnfit
	}
	b := make([]byte, length)
	if _, err := l.file.ReadAt(b, int64(at)); err != nil {
		return nil, err
	}
	if l.seal.Sum(uint32(at), b) != sum {
		return nil, indexfile.ErrUnfit
	}
	c, ok := indexfile.Decode(b)
	if !ok {
		return nil, indexfile.ErrUnfit
	}
	pos := uint64(indexfile.HeaderSize)
	for _, is := range c.Sections { // back to back, so they are never more than the file
		if is.Offset != pos || is.Length > at-pos {
			return nil, indexfile.ErrUnfit
		}
		pos += is.Length
	}
	if pos != at {
		return nil, indexfile.ErrUnfit
	}
	c.DataBytes = int64(l.size)
	return c, nil
}

// loadAll loads the sections on all processors, the longest first: one huge
// collection makes a long section, and should not be what all wait for.
func (l *indexLoader) loadAll(sections []indexfile.Section) error {
	list := slices.Clone(sections)
	slices.SortStableFunc(list, func(a, b indexfile.Section) int { return cmp.Compare(b.Length>>20, a.Length>>20) })
	workers := min(runtime.GOMAXPROCS(0), len(list))
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { errs[i] = l.work(list) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// work loads sections until none is left.
func (l *indexLoader) work(list []indexfile.Section) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			err = indexfile.ErrUnfit // the file was cut under us, or its disk fails
		}
	}()
	seen := indexfile.NewLocations(l.s.segments.Load())
	loader := keydir.Loader{OnLoc: seen.See}
	var buf []byte
	for {
		i := int(l.next.Add(1)) - 1
		if i >= len(list) {
			break
		}
		if err := l.s.interrupted(); err != nil {
			return err
		}
		is := &list[i]
		if buf, err = l.bytes(buf, is); err != nil {
			return err
		}
		if l.seal.Sum(uint32(is.Offset), buf) != is.Crc {
			return indexfile.ErrUnfit
		}
		sp := l.s.spaces.ByRecord(is.Space)
		if err := loader.Load(sp.Dir, int(is.Stripe), buf); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locations.Add(&seen)
	return nil
}

// bytes returns a section, from the mapping or read into buf.
func (l *indexLoader) bytes(buf []byte, is *indexfile.Section) ([]byte, error) {
	if l.data != nil {
		return l.data[is.Offset : is.Offset+is.Length], nil
	}
	buf = slices.Grow(buf[:0], int(is.Length))[:is.Length]
	_, err := l.file.ReadAt(buf, int64(is.Offset))
	return buf, err
}
