package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
)

// FromFS is a file system for reading over one of package io/fs, such as that of go:embed. Names are of either kind of
// slash, without a leading one. A file that cannot be read at any offset, as in a zip archive, is read into memory when
// it is opened. What changes files gives an error that is [io/fs.ErrPermission].
func FromFS(fsys fs.FS) FS { return ioFS{fsys} }

type ioFS struct{ fsys fs.FS }

func (f ioFS) Open(name string, mode Mode) (File, error) {
	if mode != ReadOnly {
		return nil, refused("open", name)
	}
	file, err := f.fsys.Open(filepath.ToSlash(name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if at, ok := file.(io.ReaderAt); ok {
		return &ioFile{ReaderAt: at, name: name, size: info.Size(), Closer: file}, nil
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return &ioFile{ReaderAt: bytes.NewReader(text), name: name, size: int64(len(text)), Closer: io.NopCloser(nil)}, nil
}

func (f ioFS) List(dir string) ([]string, error) {
	entries, err := fs.ReadDir(f.fsys, filepath.ToSlash(filepath.Clean(dir)))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return names, nil
}

func refused(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission} }

func (ioFS) Remove(name string) error            { return refused("remove", name) }
func (ioFS) Rename(name, _ string) error         { return refused("rename", name) }
func (ioFS) Link(name, _ string) error           { return refused("link", name) }
func (ioFS) MkdirAll(name string) error          { return refused("mkdir", name) }
func (ioFS) RenameDir(name, _ string) error      { return refused("rename", name) }
func (ioFS) RemoveDir(name string) error         { return refused("remove", name) }
func (ioFS) SyncDir(name string) error           { return refused("sync", name) }
func (ioFS) Lock(name string) (io.Closer, error) { return nil, refused("lock", name) }

// An ioFile is an open file of one.
type ioFile struct {
	io.ReaderAt
	io.Closer
	name string
	size int64
}

func (f *ioFile) WriteAt([]byte, int64) (int, error) { return 0, refused("write", f.name) }
func (f *ioFile) Truncate(int64) error               { return refused("truncate", f.name) }
func (f *ioFile) Sync() error                        { return refused("sync", f.name) }
func (f *ioFile) Size() (int64, error)               { return f.size, nil }
