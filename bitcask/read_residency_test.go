package bitcask_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// pagedFS is the operating system's, but decides itself which parts of the data files are in
// memory, and counts the questions.
type pagedFS struct {
	vfs.FS
	cold         atomic.Bool
	gaps         atomic.Bool // every fourth page is not in memory
	asked, reads atomic.Int64
}

func (p *pagedFS) Open(name string, mode vfs.Mode) (vfs.File, error) {
	f, err := p.FS.Open(name, mode)
	if err != nil || filepath.Ext(name) != ".data" {
		return f, err
	}
	m, ok := f.(vfs.Mapper)
	if !ok {
		return f, nil
	}
	return &pagedFile{f, m, p}, nil
}

type pagedFile struct {
	vfs.File
	mapper vfs.Mapper
	fs     *pagedFS
}

func (f *pagedFile) Map(length int) ([]byte, error) { return f.mapper.Map(length) }
func (f *pagedFile) Unmap(mapping []byte) error     { return f.mapper.Unmap(mapping) }

func (f *pagedFile) Resident(part []byte, pages *vfs.ResidentPages) bool {
	f.fs.asked.Add(1)
	if pages != nil {
		for i := range pages {
			pages[i].Store(0)
		}
	}
	if !f.fs.gaps.Load() || f.fs.cold.Load() {
		return !f.fs.cold.Load()
	}
	all := true
	start := int(uintptr(unsafe.Pointer(unsafe.SliceData(part))) / vfs.ResidentUnit)
	end := int((uintptr(unsafe.Pointer(unsafe.SliceData(part))) + uintptr(len(part)) - 1) / vfs.ResidentUnit)
	for i := start; i <= end; i++ {
		switch {
		case i%4 == 0:
			all = false
		case pages != nil:
			pages.Add(i-start, i-start)
		}
	}
	return all
}

func (f *pagedFile) ReadAt(b []byte, off int64) (int, error) {
	f.fs.reads.Add(1)
	return f.File.ReadAt(b, off)
}

// counts returns how often the kernel was asked and the file read since the last call.
func (p *pagedFS) counts() (asked, reads int64) { return p.asked.Swap(0), p.reads.Swap(0) }

// pagedStore is a store of some megabytes, and reads of it.
type pagedStore struct {
	t    *testing.T
	fs   *pagedFS
	s    *bitcask.Store
	keys int
}

func newPagedStore(t *testing.T) *pagedStore {
	p := &pagedStore{t: t, fs: &pagedFS{FS: vfs.OS()}, keys: 3000}
	s, err := bitcask.Open(t.TempDir(), seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: p.fs}))
	if err != nil {
		t.Fatal(err)
	}
	p.s = s
	for i := range p.keys {
		put(t, s, keyName(i), p.value(i))
	}
	tx, err := s.Begin(true, "hash")
	if err != nil {
		t.Fatal(err)
	}
	coll, err := tx.Collection(0, "hash", keydir.Hash)
	if err == nil {
		err = tx.PutElem(0, "hash", coll, "field", []byte("of the hash"))
	}
	if err == nil {
		_, err = tx.Commit()
	}
	tx.End()
	if err != nil {
		t.Fatal(err)
	}
	p.fs.counts()
	return p
}

func (p *pagedStore) value(i int) string {
	return fmt.Sprint(i, " ", strings.Repeat("v", 1000))
}

// readAll gets every string and the field.
func (p *pagedStore) readAll() {
	p.t.Helper()
	for i := range p.keys {
		want(p.t, p.s, keyName(i), p.value(i))
	}
	tx, err := p.s.Begin(false, "hash")
	if err != nil {
		p.t.Fatal(err)
	}
	defer tx.End()
	_, coll, err := tx.Find(0, "hash")
	if err != nil {
		p.t.Fatal(err)
	}
	loc, _ := coll.Get("field")
	if got, err := tx.Value(nil, 0, "hash", "field", keydir.Hash, loc); err != nil || string(got) != "of the hash" {
		p.t.Fatalf("field: %q, %v", got, err)
	}
}

func TestColdRecordsAreReadFromTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPagedStore(t)
		pages := int64(p.keys * 1000 / vfs.ResidentUnit)
		defer func() {
			if err := p.s.Close(); err != nil {
				t.Error(err)
			}
		}()
		p.readAll()
		p.readAll()
		if asked, reads := p.fs.counts(); asked > 4 || reads != 0 {
			t.Errorf("in memory: asked %d times about 3 or 4 chunks, read the file %d times", asked, reads)
		}
		p.fs.cold.Store(true)
		p.readAll()
		if asked, reads := p.fs.counts(); asked != 0 || reads != 0 {
			t.Errorf("just looked at: asked %d times, read the file %d times", asked, reads)
		}
		const minute = time.Minute + time.Second // not just when looks expire
		time.Sleep(minute)                       // pages in memory then need not be now
		p.readAll()
		if asked, reads := p.fs.counts(); asked > 4 || reads < pages || reads > 2*pages {
			t.Errorf("not in memory: asked %d times, read the file %d times for %d pages", asked, reads, pages)
		}
		p.readAll()
		if asked, reads := p.fs.counts(); asked != 0 || reads != 0 {
			t.Errorf("the same again: asked %d times, read the file %d times", asked, reads)
		}
		time.Sleep(minute)
		p.fs.cold.Store(false)
		p.readAll()
		if asked, reads := p.fs.counts(); asked > 4 || reads != 0 {
			t.Errorf("in memory again: asked %d times, read the file %d times", asked, reads)
		}
	})
}

// Of a chunk of which a part is in memory the system is asked once. The pages that were not are read once.
func TestPagesOfAChunkAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPagedStore(t)
		defer p.s.Close()
		p.fs.gaps.Store(true)
		p.readAll()
		pages := int64(p.keys * 1000 / vfs.ResidentUnit)
		if asked, reads := p.fs.counts(); asked > 4 || reads < pages/4 || reads > pages/2 {
			t.Errorf("a quarter of the pages is not in memory: asked %d times, read the file %d times for %d pages", asked, reads, pages)
		}
		p.readAll()
		if asked, reads := p.fs.counts(); asked != 0 || reads != 0 {
			t.Errorf("now all are: asked %d times, read the file %d times", asked, reads)
		}
		p.fs.cold.Store(true)
		p.readAll()
		if asked, reads := p.fs.counts(); asked != 0 || reads != 0 {
			t.Errorf("just looked at: asked %d times, read the file %d times", asked, reads)
		}
		time.Sleep(time.Minute + time.Second)
		p.readAll()
		if asked, reads := p.fs.counts(); asked > 4 || reads < pages || reads > 2*pages {
			t.Errorf("none is in memory, later: asked %d times, read the file %d times for %d pages", asked, reads, pages)
		}
	})
}

// Into a buffer with room for the record, a cold read allocates nothing either.
func TestColdReadsAllocateNothing(t *testing.T) {
	if !bitcask.Lockless {
		t.Skip("the locked path has no buffer of the caller's to read into")
	}
	p := newPagedStore(t)
	defer p.s.Close()
	p.fs.cold.Store(true)
	dst := append(make([]byte, 0, 4000), "before "...)
	p.fs.counts()
	key, value := keyName(7), "before "+p.value(7)
	allocs := testing.AllocsPerRun(100, func() {
		if got, err := p.s.GetInto(dst, key); err != nil || string(got) != value {
			t.Fatal(got, err)
		}
	})
	if _, reads := p.fs.counts(); allocs != 0 || reads == 0 {
		t.Errorf("%v allocations, %d reads of the file", allocs, reads)
	}
	small := make([]byte, 0, 4) // without room
	if got, err := p.s.GetInto(small, keyName(7)); err != nil || string(got) != p.value(7) {
		t.Error(got, err)
	}
}

// TestFailOnDisk: every read of a transaction fails that would have to wait for the disk, if that is wanted, and changes nothing.
func TestFailOnDisk(t *testing.T) {
	p := newPagedStore(t)
	defer p.s.Close() //nolint:errcheck // what counts has been checked
	p.fs.cold.Store(true)
	onDisk := errors.New("on disk")
	const first, other = 1, 1000 // not on one page
	tx, err := p.s.Begin(true, keyName(first), keyName(other), "hash")
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	slot, _, err := tx.Find(0, keyName(first))
	if err != nil {
		t.Fatal(err)
	}
	_, coll, err := tx.Find(0, "hash")
	if err != nil {
		t.Fatal(err)
	}
	loc, _ := coll.Get("field")
	calls := map[string]func() error{
		"Find":  func() error { _, _, err := tx.Find(0, keyName(other)); return err },
		"Value": func() error { _, err := tx.Value(nil, 0, "hash", "field", keydir.Hash, loc); return err },
		"Values": func() error {
			_, _, err := tx.Values(nil, nil, 0, "hash", []string{"field"}, keydir.Hash, []keydir.Loc{loc})
			return err
		},
		"ValueLen":  func() error { _, err := tx.ValueLen(0, "hash", "field", keydir.Hash, loc); return err },
		"ValuePart": func() error { _, err := tx.ValuePart(nil, 0, "hash", "field", keydir.Hash, loc, 0, 1); return err },
		"PutString": func() error { return tx.PutString(0, keyName(other), []byte("new")) },
	}
	tx.FailOnDisk(onDisk)
	for name, call := range calls {
		if err := call(); !errors.Is(err, onDisk) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if value, err := tx.Value(nil, 0, keyName(first), "", keydir.String, slot.Loc); err != nil || string(value) != p.value(first) {
		t.Errorf("a value that has been read: %.20q, %v", value, err)
	}
	if _, reads := p.fs.counts(); reads == 0 || tx.Changed() {
		t.Errorf("read the file %d times, changed %t", reads, tx.Changed())
	}
	if before := tx.FailOnDisk(nil); before != onDisk {
		t.Errorf("it was %v", before)
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s that may wait: %v", name, err)
		}
	}
}
