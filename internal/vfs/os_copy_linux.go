package vfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// osWindow is the part of a file that is mapped for [Copier]. The mapping is writable, so it is short: a stray pointer
// of the program can destroy no more than that.
type osWindow struct {
	mu       sync.Mutex // held during a copy, so that Close waits for it
	mapping  []byte
	base     int64 // of the mapping in the file
	from, to int64
	checked  bool // the file system is one of those
}

// Window implements [Copier].
func (f *osFile) Window(off int64, n int) error {
	w := &f.window
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := f.endWindowLocked(); err != nil {
		return err
	}
	base := off &^ (int64(os.Getpagesize()) - 1)
	err := control(f.f, func(fd int) (err error) {
		if !w.checked && !copiesInto(fd) {
			return errors.ErrUnsupported
		}
		w.checked = true
		w.mapping, err = unix.Mmap(fd, base, int(off-base)+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "mmap", Path: f.f.Name(), Err: err}
	}
	w.base, w.from, w.to = base, off, off+int64(n)
	if err := f.populateLocked(off); err != nil {
		return errors.Join(err, f.endWindowLocked())
	}
	return nil
}

// copiesInto reports whether the file is on a file system on which a page that has just been written can be written
// again through a mapping without new space: one that puts every version of a page elsewhere may have none left, and
// kills who writes.
func copiesInto(fd int) bool {
	if strconv.IntSize < 64 {
		return false
	}
	var st unix.Statfs_t
	if retryErr(func() error { return unix.Fstatfs(fd, &st) }) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

// Populate implements [Copier].
func (f *osFile) Populate(off int64) error {
	f.window.mu.Lock()
	defer f.window.mu.Unlock()
	return f.populateLocked(off)
}

func (f *osFile) populateLocked(off int64) error {
	w := &f.window
	from := (off - w.base) &^ (int64(os.Getpagesize()) - 1)
	if off < w.from || off > w.to {
		return &fs.PathError{Op: "populate", Path: f.f.Name(), Err: errNoWindow}
	}
	if from >= int64(len(w.mapping)) {
		return nil
	}
	// Before Linux 5.14 this is EINVAL: then there are no copies, for they would wait outside of a system call.
	err := retryErr(func() error { return unix.Madvise(w.mapping[from:], unix.MADV_POPULATE_WRITE) })
	if err == unix.EINVAL {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return &fs.PathError{Op: "populate", Path: f.f.Name(), Err: err}
	}
	return nil
}

// CopyAt implements [Copier].
func (f *osFile) CopyAt(p []byte, off int64) (err error) {
	w := &f.window
	w.mu.Lock()
	defer w.mu.Unlock()
	if off < w.from || off+int64(len(p)) > w.to {
		return &fs.PathError{Op: "copy", Path: f.f.Name(), Err: errNoWindow}
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			err = &fs.PathError{Op: "copy", Path: f.f.Name(), Err: syscall.EIO}
		}
	}()
	copyForward(w.mapping[off-w.base:], p)
	return nil
}

// EndWindow implements [Copier].
func (f *osFile) EndWindow() error {
	f.window.mu.Lock()
	defer f.window.mu.Unlock()
	return f.endWindowLocked()
}

func (f *osFile) endWindowLocked() error {
	w := &f.window
	mapping := w.mapping
	w.mapping, w.base, w.from, w.to = nil, 0, 0, 0
	if mapping == nil {
		return nil
	}
	return f.Unmap(mapping)
}
