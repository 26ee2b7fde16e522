package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
)

// File modes of what the store makes: for its owner only.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

// osFS is the operating system's file system, or a view of it on a directory that is held.
type osFS struct {
	dir *osDir // nil: none
}

// osFile forwards to an [os.File], whose methods retry interrupted calls, finish partial writes, use F_FULLFSYNC on
// macOS, and keep a descriptor from being reused while another goroutine is still reading through it.
type osFile struct {
	f      *os.File
	fs     osFS   // It was opened in.
	name   string // It was opened by.
	window osWindow
	parked parked
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f *osFile) Truncate(size int64) error                { return f.f.Truncate(size) }

func (f *osFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.with(func(h *os.File) (err error) {
		n, err = h.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *osFile) Sync() error { return f.with((*os.File).Sync) }

func (f *osFile) Close() error {
	if f.parked.is.Load() {
		return f.parked.close(f.name)
	}
	return errors.Join(f.EndWindow(), f.f.Close())
}

func (f *osFile) Size() (size int64, err error) {
	err = f.with(func(h *os.File) error {
		info, err := h.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	})
	return size, err
}

func (o osFS) Open(name string, mode Mode) (File, error) {
	at, err := o.at("open", name)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(at, openFlags(mode))
	if err != nil {
		return nil, err
	}
	return &osFile{f: f, fs: o, name: name}, nil
}

// HasName implements [Namer].
func (f *osFile) HasName(name string) (is bool, err error) {
	err = f.with(func(h *os.File) (err error) {
		is, err = f.fs.hasName(h, name)
		return err
	})
	return is, err
}

// HasAnyName implements [Namer].
func (f *osFile) HasAnyName() bool { return hasAnyName(f.f) }

func openFlags(mode Mode) int {
	switch mode {
	case ReadOnly:
		return os.O_RDONLY
	case ReadWrite:
		return os.O_RDWR
	case Create:
		return os.O_RDWR | os.O_CREATE | os.O_EXCL
	}
	panic("BUG: unknown vfs.Mode")
}

// checkRegular closes f and fails unless f is a regular file.
func checkRegular(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}
	}
	if err != nil {
		f.Close() // Nothing was written through it, so its error would say nothing.
		return nil, err
	}
	return f, nil
}

func (o osFS) List(dir string) ([]string, error) {
	at, err := o.at("open", dir)
	if err != nil {
		return nil, err
	}
	d, err := at.openDir()
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (o osFS) MkdirAll(dir string) error {
	at, err := o.at("mkdir", dir)
	switch {
	case err != nil:
		return err
	case at.dir == nil:
		return os.MkdirAll(dir, dirMode)
	}
	return at.dir.root.MkdirAll(at.rel, dirMode)
}

// lockTries is how often a lock file is opened again because it was removed, replaced or made in
// between.
const lockTries = 100

func (o osFS) Lock(name string) (io.Closer, error) {
	at, err := o.at("lock", name)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		l, err := o.tryLock(at)
		if err != nil || l != nil {
			return l, err
		}
	}
	return nil, &fs.PathError{Op: "lock", Path: name, Err: errLockMoves}
}

var errLockMoves = errors.New("the file is replaced again and again")

// tryLock takes the lock of the file that has the name now, and returns nothing if another one has it afterwards: that
// one would not be locked.
func (o osFS) tryLock(at spot) (io.Closer, error) {
	f, err := openRegular(at, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		if err == ErrLocked {
			text := make([]byte, maxHolder)
			n, _ := f.ReadAt(text, 0) // Whatever can be read: it only serves the message.
			err = &LockedError{Name: at.name, Holder: parseHolder(text[:n])}
		} else {
			err = &fs.PathError{Op: "lock", Path: at.name, Err: err}
		}
		f.Close() // Nothing was written through it.
		return nil, err
	}
	if ours, err := o.hasName(f, at.name); err != nil || !ours {
		f.Close() // Nor here.
		return nil, err
	}
	writeHolder(f)
	return &osLock{f, o}, nil
}

// osLock is a locked file.
type osLock struct {
	*os.File
	fs osFS
}

// HasName implements [Namer].
func (l *osLock) HasName(name string) (bool, error) { return l.fs.hasName(l.File, name) }

// HasAnyName implements [Namer].
func (l *osLock) HasAnyName() bool { return hasAnyName(l.File) }

// writeHolder writes the holder's name to the lock file. A failure is no failure of the lock (a full disk must not keep
// a store from opening): it only costs the next process the holder's name in a message.
func writeHolder(f *os.File) {
	text := holderText(os.Getpid(), os.Args)
	if _, err := f.WriteAt([]byte(text), 0); err == nil {
		_ = f.Truncate(int64(len(text))) // The first line counts; a longer one from before may follow it.
	}
}
