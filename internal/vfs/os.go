package vfs

import (
	"io"
	"io/fs"
	"os"
)

// File modes of what the store makes: for its owner only.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

// osFile forwards to an [os.File], whose methods retry interrupted calls, finish partial writes, use F_FULLFSYNC on
// macOS, and keep a descriptor from being reused while another goroutine is still reading through it.
type osFile struct{ f *os.File }

func (f *osFile) ReadAt(p []byte, off int64) (int, error)  { return f.f.ReadAt(p, off) }
func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f *osFile) Truncate(size int64) error                { return f.f.Truncate(size) }
func (f *osFile) Sync() error                              { return f.f.Sync() }
func (f *osFile) Close() error                             { return f.f.Close() }

func (f *osFile) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osFS) Open(name string, mode Mode) (File, error) {
	f, err := openRegular(name, openFlags(mode))
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

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

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // Sorted.
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, dirMode) }

func (osFS) Lock(name string) (io.Closer, error) {
	f, err := openRegular(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		if err == ErrLocked {
			text := make([]byte, maxHolder)
			n, _ := f.ReadAt(text, 0) // Whatever can be read: it only serves the message.
			err = &LockedError{Name: name, Holder: parseHolder(text[:n])}
		} else {
			err = &fs.PathError{Op: "lock", Path: name, Err: err}
		}
		f.Close() // Nothing was written through it.
		return nil, err
	}
	writeHolder(f)
	return f, nil
}

// writeHolder says in the lock file who holds it. A failure is no failure of the lock (a full disk must not keep a store
// from opening), it costs the next one who tries the holder's name in a message.
func writeHolder(f *os.File) {
	text := holderText(os.Getpid(), os.Args)
	if _, err := f.WriteAt([]byte(text), 0); err == nil {
		_ = f.Truncate(int64(len(text))) // The first line counts; a longer one from before may follow it.
	}
}
