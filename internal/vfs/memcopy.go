package vfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// mappedPage is the length of a page of a mapping, in bytes.
const mappedPage = 4096

// Window implements [Copier]. In a file system that no other process can see there is nothing to be gained.
func (f *memFile) Window(off int64, n int) error {
	if err := f.begin("mmap", true); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	var err error
	switch end := off + int64(n); {
	case f.fs.mem.private:
		err = errors.ErrUnsupported
	case off < 0 || n <= 0:
		err = syscall.EINVAL
	case end > f.inode.length():
		err = syscall.EFAULT
	default:
		f.window = memWindow{off, end}
		return nil
	}
	return &fs.PathError{Op: "mmap", Path: f.name, Err: err}
}

// memWindow is the part of a file that can be copied into.
type memWindow struct{ from, to int64 }

// Populate implements [Copier].
func (f *memFile) Populate(off int64) error {
	if err := f.begin("populate", true); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	if off < f.window.from || off > f.window.to {
		return &fs.PathError{Op: "populate", Path: f.name, Err: errNoWindow}
	}
	return nil
}

// CopyAt implements [Copier]: as with a mapping, what lies beyond the end of the file is lost, or a fault.
func (f *memFile) CopyAt(p []byte, off int64) error {
	if err := f.begin("copy", true); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	end := off + int64(len(p))
	if off < f.window.from || end > f.window.to {
		return &fs.PathError{Op: "copy", Path: f.name, Err: errNoWindow}
	}
	f.inode.mu.Lock()
	defer f.inode.mu.Unlock()
	size := f.inode.data.size
	if there := min(end, size) - off; there > 0 {
		f.inode.data.writeAt(p[:there], off)
	}
	if end > (size+mappedPage-1)/mappedPage*mappedPage {
		return &fs.PathError{Op: "copy", Path: f.name, Err: syscall.EIO}
	}
	return nil
}

// EndWindow implements [Copier].
func (f *memFile) EndWindow() error {
	f.window = memWindow{}
	return nil
}
