package vfstest

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/internal/vfs"
)

// Cold is a file system that decides itself what of the data files is in memory, as if it had little.
type Cold struct {
	vfs.FS
	Resident func() bool            // is asked for each part
	Reading  atomic.Pointer[func()] // is called before each read of a data file that does not go through a mapping

	mu    sync.Mutex
	known []*vfs.ResidentPages
}

// Forget has nothing in memory that was: neither what it has said is, nor what has been read since.
func (c *Cold) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pages := range c.known {
		for i := range pages {
			pages[i].Store(0)
		}
	}
}

// Open implements vfs.FS.
func (c *Cold) Open(name string, mode vfs.Mode) (vfs.File, error) {
	f, err := c.FS.Open(name, mode)
	if err != nil || filepath.Ext(name) != ".data" {
		return f, err
	}
	m, ok := f.(vfs.Mapper)
	if !ok {
		return f, nil
	}
	return &coldFile{f, m, c}, nil
}

type coldFile struct {
	vfs.File
	mapper vfs.Mapper
	fs     *Cold
}

func (f *coldFile) Map(length int) ([]byte, error) { return f.mapper.Map(length) }
func (f *coldFile) Unmap(mapping []byte) error     { return f.mapper.Unmap(mapping) }

// Resident implements vfs.Mapper. No chunk is in memory as a whole.
func (f *coldFile) Resident(_ []byte, pages *vfs.ResidentPages) bool {
	if pages != nil {
		for i := range pages {
			pages[i].Store(0)
		}
		f.fs.mu.Lock()
		f.fs.known = append(f.fs.known, pages)
		f.fs.mu.Unlock()
		return false
	}
	return f.fs.Resident()
}

func (f *coldFile) ReadAt(b []byte, off int64) (int, error) {
	if reading := f.fs.Reading.Load(); reading != nil {
		(*reading)()
	}
	return f.File.ReadAt(b, off)
}
