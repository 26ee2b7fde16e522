package vfs

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
)

// Parker is what a [File] is as well if it can do without a handle of the operating system. Ask by [Park].
type Parker interface {
	Park() error
}

// Park releases the handle of a file that is read seldom and not written any more, so that there may be more such files
// than a process may have handles. Each later ReadAt, Size, Sync or HasName opens the file by its name, and fails if
// that has become another file's or nobody's. A mapping stays. Files that cannot be parked stay as they are.
func Park(f File) error {
	if p, ok := f.(Parker); ok {
		return p.Park()
	}
	return nil
}

// parked is what is known of an [osFile] without a handle.
type parked struct {
	is     atomic.Bool
	closed atomic.Bool
	file   os.FileInfo // Which file it was; set before is.
}

func (p *parked) close(name string) error {
	if p.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: name, Err: fs.ErrClosed}
	}
	return nil
}

// Park implements [Parker]. It is called once at a time.
func (f *osFile) Park() error {
	if f.parked.is.Load() {
		return nil
	}
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	f.parked.file = info
	f.parked.is.Store(true)
	return errors.Join(f.EndWindow(), f.f.Close())
}

// with does something with a handle of the file: its own, or one of the moment.
func (f *osFile) with(do func(*os.File) error) error {
	if !f.parked.is.Load() {
		err := do(f.f)
		if !errors.Is(err, fs.ErrClosed) || !f.parked.is.Load() {
			return err
		}
	}
	if f.parked.closed.Load() {
		return &fs.PathError{Op: "open", Path: f.name, Err: fs.ErrClosed}
	}
	at, err := f.fs.at("open", f.name)
	if err != nil {
		return err
	}
	h, err := openRegular(at, os.O_RDONLY)
	if err != nil {
		return err
	}
	info, err := h.Stat()
	if err == nil && !os.SameFile(info, f.parked.file) {
		err = &fs.PathError{Op: "open", Path: f.name, Err: fs.ErrNotExist}
	}
	if err == nil {
		err = do(h)
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}
