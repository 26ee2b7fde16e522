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
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Loading the INDEX at Open.

var errIndex = errors.New("index does not fit the log or is damaged")

// loadIndex makes the keydir what the INDEX says, and returns how far that is
// the log. Any error means: do without, and nothing has been loaded. With
// NoIndex nothing is loaded either, and a writer learns whether it fits so far.
func (s *Store) loadIndex() (*indexContents, error) {
	if s.opts.NoIndex && s.opts.ReadOnly {
		return nil, nil
	}
	f, err := s.opts.FS.Open(filepath.Join(s.dir, IndexFile), vfs.ReadOnly)
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
func (s *Store) unload() {
	s.spaces.init(s.man.Seed)
	s.spaces.record = 0
	s.system.init()
	s.hintless, s.recovery.Replayed, s.recovery.Scanned = nil, 0, 0
	for _, sg := range s.segments.Load().all() {
		sg.LiveBytes.Store(0)
	}
}

func (s *Store) loadIndexFrom(f vfs.File) (*indexContents, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	l := &indexLoader{s: s, file: f, size: uint64(size), seal: format.NewChecksumSeed(s.man.Store, 0)}
	c, err := l.contents()
	if err != nil {
		return nil, err
	}
	pass := s.vouch
	if s.opts.NoIndex { // it is only looked at: the log says what is damaged
		pass = func(_ indexSegment, err error) error { return err }
	}
	if !s.man.Gave(c.end.Opening, c.end.Sequence) || !c.fits(s.segments.Load(), pass) {
		return nil, errIndex
	}
	if s.opts.NoIndex {
		return c, nil
	}
	s.spaces.mu.Lock()
	s.spaces.installLocked(c.moved, c.fresh)
	s.spaces.record = c.record
	s.spaces.mu.Unlock()
	for i := range c.sections {
		s.spaces.replaySpace(c.sections[i].space)
	}
	if m, ok := f.(vfs.Mapper); ok && !s.opts.NoMapping && strconv.IntSize == 64 {
		if data, err := m.Map(int(size)); err == nil {
			l.data = data
			defer func() {
				if err := m.Unmap(data); err != nil {
					s.opts.Logger.Warn("unmapping", "file", IndexFile, "err", err)
				}
			}()
		}
	}
	l.locations = newLocations(s.segments.Load())
	if c.record != 0 && !l.locations.see(c.record) {
		return nil, errIndex
	}
	for name, r := range c.system {
		if !l.locations.see(r.loc) {
			return nil, errIndex
		}
		s.system.put(name, r)
	}
	if err := l.loadAll(c.sections); err != nil {
		return nil, err
	}
	l.locations.count(s.segments.Load())
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
	locations locations
}

// contents reads header and contents.
func (l *indexLoader) contents() (*indexContents, error) {
	head := make([]byte, indexHeaderSize)
	if l.size < indexHeaderSize {
		return nil, errIndex
	}
	if _, err := l.file.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if format.OtherVersion(head, indexMagic, indexVersion) || format.OtherFlags(head, indexMagic, 0) {
		return nil, ErrVersion
	}
	at, length, sum, ok := parseIndexHeader(head, l.s.man.Store, l.s.man.Seed)
	if !ok || at > l.size || length != l.size-at {
		return nil, errIndex
	}
	b := make([]byte, length)
	if _, err := l.file.ReadAt(b, int64(at)); err != nil {
		return nil, err
	}
	if l.seal.Sum(uint32(at), b) != sum {
		return nil, errIndex
	}
	c, ok := decodeIndex(b)
	if !ok {
		return nil, errIndex
	}
	pos := uint64(indexHeaderSize)
	for _, is := range c.sections { // back to back, so they are never more than the file
		if is.offset != pos || is.length > at-pos {
			return nil, errIndex
		}
		pos += is.length
	}
	if pos != at {
		return nil, errIndex
	}
	c.dataBytes = int64(l.size)
	return c, nil
}

// loadAll loads the sections on all processors, the longest first: one huge
// collection makes a long section, and should not be what all wait for.
func (l *indexLoader) loadAll(sections []indexSection) error {
	list := slices.Clone(sections)
	slices.SortStableFunc(list, func(a, b indexSection) int { return cmp.Compare(b.length>>20, a.length>>20) })
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
func (l *indexLoader) work(list []indexSection) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			err = errIndex // the file was cut under us, or its disk fails
		}
	}()
	seen := newLocations(l.s.segments.Load())
	loader := keydir.Loader{OnLoc: seen.see}
	var buf []byte
	for {
		i := int(l.next.Add(1)) - 1
		if i >= len(list) {
			break
		}
		is := &list[i]
		if buf, err = l.bytes(buf, is); err != nil {
			return err
		}
		if l.seal.Sum(uint32(is.offset), buf) != is.crc {
			return errIndex
		}
		sp := l.s.spaces.byRecord(is.space)
		if err := loader.Load(sp.dir, int(is.stripe), buf); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locations.add(&seen)
	return nil
}

// bytes returns a section, from the mapping or read into buf.
func (l *indexLoader) bytes(buf []byte, is *indexSection) ([]byte, error) {
	if l.data != nil {
		return l.data[is.offset : is.offset+is.length], nil
	}
	buf = slices.Grow(buf[:0], int(is.length))[:is.length]
	_, err := l.file.ReadAt(buf, int64(is.offset))
	return buf, err
}

// locations checks that locations lead into segments, and counts the bytes
// that they lead to.
type locations struct {
	base  uint32
	sizes []uint32 // by id - base; 0 where there is no segment
	live  []int64
}

func newLocations(ss *segmentSet) locations {
	n := len(ss.byID)
	x := locations{base: ss.base, sizes: make([]uint32, n), live: make([]int64, n)}
	for i, sg := range ss.byID {
		if sg != nil {
			x.sizes[i] = uint32(min(sg.Size.Load(), 1<<32-1))
		}
	}
	return x
}

func (x *locations) see(loc keydir.Loc) bool {
	i := loc.Segment() - x.base
	if i >= uint32(len(x.sizes)) || loc.Offset() >= x.sizes[i] || loc.Offset() < format.SegmentHeaderSize {
		return false
	}
	x.live[i] += int64(loc.Size())
	return true
}

// add adds what another has counted.
func (x *locations) add(y *locations) {
	for i, n := range y.live {
		x.live[i] += n
	}
}

// count makes it the counts of the segments.
func (x *locations) count(ss *segmentSet) {
	for i, sg := range ss.byID {
		if sg != nil {
			sg.LiveBytes.Store(x.live[i])
		}
	}
}
