package indexfile

import (
	"cmp"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Reader reads one INDEX.
type Reader struct {
	Locations Locations // that have been loaded; LoadAll adds to it

	file  vfs.File
	data  []byte       // mapping, or nil
	finds sync.RWMutex // shared by Find, exclusive to Close
	size  uint64
	store [16]byte
	seed  keydir.Seed
	seal  format.ChecksumSeed
}

// NewReader returns a reader of the INDEX of a store. Close closes the file.
func NewReader(f vfs.File, store [16]byte, seed keydir.Seed) (*Reader, error) {
	size, err := f.Size()
	return &Reader{file: f, size: uint64(size), store: store, seed: seed, seal: format.NewChecksumSeed(store, 0)}, err
}

// Map has the sections read from a mapping, where there is one.
func (l *Reader) Map() {
	if m, ok := l.file.(vfs.Mapper); ok && strconv.IntSize == 64 {
		if data, err := m.Map(int(l.size)); err == nil {
			l.data = data
		}
	}
}

// Close releases mapping and file, when nobody searches in it.
func (l *Reader) Close() error {
	l.finds.Lock()
	defer l.finds.Unlock()
	var err error
	if l.data != nil {
		err = l.file.(vfs.Mapper).Unmap(l.data)
		l.data = nil
	}
	return errors.Join(err, l.file.Close())
}

// Contents reads header and contents.
func (l *Reader) Contents() (*Contents, error) {
	head := make([]byte, HeaderSize)
	if l.size < HeaderSize {
		return nil, ErrUnfit
	}
	if _, err := l.file.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if format.OtherVersion(head, Magic, Versions...) || format.OtherFlags(head, Magic, 0) {
		return nil, failure.ErrVersion
	}
	h, ok := ParseHeader(head, l.store, l.seed)
	at := h.Offset
	if !ok || at > l.size || h.Length != l.size-at {
		return nil, ErrUnfit
	}
	b := make([]byte, h.Length)
	if _, err := l.file.ReadAt(b, int64(at)); err != nil {
		return nil, err
	}
	if l.seal.Sum(uint32(at), b) != h.Sum {
		return nil, ErrUnfit
	}
	c, ok := Decode(b, h.Version)
	if !ok {
		return nil, ErrUnfit
	}
	pos := uint64(HeaderSize)
	for _, is := range c.Sections { // back to back, so they are never more than the file
		if is.Offset != pos || is.Length > at-pos {
			return nil, ErrUnfit
		}
		pos += is.Length
	}
	if pos != at {
		return nil, ErrUnfit
	}
	c.DataBytes = int64(l.size)
	return c, nil
}

// LoadAll loads the sections on all processors, the longest first: one huge
// collection makes a long section, and should not be what all wait for. interrupted ends it early.
func (l *Reader) LoadAll(sections []Section, spaces *namespace.Table, interrupted func() error) error {
	list := slices.Clone(sections)
	slices.SortStableFunc(list, func(a, b Section) int { return cmp.Compare(b.Length>>20, a.Length>>20) })
	workers := min(runtime.GOMAXPROCS(0), len(list))
	errs := make([]error, workers)
	works := make([]*Work, workers)
	var next atomic.Int64 // section to be taken
	var wg sync.WaitGroup
	for k := range workers {
		works[k] = l.NewWork(spaces)
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(list) && errs[k] == nil; i = int(next.Add(1)) - 1 {
				if errs[k] = interrupted(); errs[k] == nil {
					errs[k] = works[k].Load(&list[i])
				}
			}
		})
	}
	wg.Wait()
	for _, w := range works {
		l.Locations.Add(&w.Seen)
	}
	return errors.Join(errs...)
}

// Work is what one goroutine needs to load sections.
type Work struct {
	Seen   Locations // of the sections that it has loaded
	Loader keydir.Loader

	l      *Reader
	spaces *namespace.Table
	buf    []byte
}

// NewWork returns what loads sections into the directories of spaces.
func (l *Reader) NewWork(spaces *namespace.Table) *Work {
	w := &Work{l: l, spaces: spaces, Seen: l.Locations.Fresh()}
	w.Loader.OnLoc = w.Seen.See
	return w
}

// Load loads a section.
func (w *Work) Load(is *Section) error { return w.LoadInto(w.spaces.ByRecord(is.Space).Dir, is) }

// LoadInto loads a section into a directory.
func (w *Work) LoadInto(dir *keydir.Directory, is *Section) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverFault(&err)
	b, err := w.verified(is)
	if err != nil {
		return err
	}
	return w.Loader.Load(dir, int(is.Stripe), b)
}

// Verify reports whether the checksum of a section agrees.
func (w *Work) Verify(is *Section) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverFault(&err)
	_, err = w.verified(is)
	return err
}

// verified returns the bytes of a section, valid until the next call. A page fault is the caller's.
func (w *Work) verified(is *Section) ([]byte, error) {
	b, err := w.l.bytes(w.buf, is)
	if w.l.data == nil {
		w.buf = b
	}
	if err == nil && w.l.seal.Sum(uint32(is.Offset), b) != is.Crc {
		err = ErrUnfit
	}
	return b, err
}

// Find is keydir.FindInDump of a section that verifies. It returns LookupRetry if it does not, or if it is not mapped or
// not in memory, so that nobody waits for the disk here. Any number of goroutines may call it, alongside Close and after it.
func (l *Reader) Find(is *Section, h uint64) (loc keydir.Loc, lookup keydir.Lookup) {
	if !l.finds.TryRLock() {
		return 0, keydir.LookupRetry
	}
	defer l.finds.RUnlock()
	if l.data == nil {
		return 0, keydir.LookupRetry
	}
	b := l.data[is.Offset : is.Offset+is.Length]
	if !l.file.(vfs.Mapper).Resident(b, nil) {
		return 0, keydir.LookupRetry
	}
	var fault error // which leaves LookupRetry
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverFault(&fault)
	if l.seal.Sum(uint32(is.Offset), b) != is.Crc {
		return 0, keydir.LookupRetry
	}
	return keydir.FindInDump(b, int(is.Stripe), h)
}

// recoverFault makes a page fault an error: the file was cut under us, or its disk fails.
func recoverFault(err *error) {
	if r := recover(); r != nil {
		if _, fault := r.(interface{ Addr() uintptr }); !fault {
			panic(r)
		}
		*err = ErrUnfit
	}
}

// bytes returns a section, from the mapping or read into buf.
func (l *Reader) bytes(buf []byte, is *Section) ([]byte, error) {
	if l.data != nil {
		return l.data[is.Offset : is.Offset+is.Length], nil
	}
	buf = slices.Grow(buf[:0], int(is.Length))[:is.Length]
	_, err := l.file.ReadAt(buf, int64(is.Offset))
	return buf, err
}
