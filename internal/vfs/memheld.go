package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// memDir is a handle of a directory; its fields are guarded by the file system's mu.
type memDir struct {
	name string // It was held by.
	path string // Where it is now.
	gone bool   // It has been removed.

	closed bool
}

// atLocked is where a name leads in this view.
func (v memFS) atLocked(op, name string) (string, error) {
	name = filepath.Clean(name)
	if v.dir == nil {
		return name, nil
	}
	rest, within := cutDirectory(v.dir.name, name)
	switch {
	case !within:
		return name, nil
	case v.dir.closed:
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrClosed}
	case deep(rest):
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	case v.dir.gone:
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return filepath.Join(v.dir.path, rest), nil
}

// oneName does what needs one name.
func (v memFS) oneName(op, name string, do func(at string) error) error {
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	at, err := v.atLocked(op, name)
	if err != nil {
		return err
	}
	return do(at)
}

// twoNames does what needs two names.
func (v memFS) twoNames(op, oldname, newname string, do func(op, oldname, newname string) error) error {
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	return v.fromToLocked(op, oldname, v, newname, do)
}

func (v memFS) fromToLocked(op, oldname string, to memFS, newname string, do func(op, oldname, newname string) error) error {
	from, err := v.atLocked(op, oldname)
	if err != nil {
		return err
	}
	dest, err := to.atLocked(op, newname)
	if err != nil {
		return err
	}
	return do(op, from, dest)
}

// movedLocked has handles and locks follow a directory.
func (m *Mem) movedLocked(olddir, newdir string) {
	for d := range m.held {
		if d.gone {
			continue
		}
		if rest, within := cutDirectory(olddir, d.path); within {
			d.path = filepath.Join(newdir, rest)
		}
	}
	for _, l := range m.locks {
		if rest, within := cutDirectory(olddir, l.name); within {
			l.name = filepath.Join(newdir, rest)
		}
	}
}

// goneLocked notes that a directory is removed.
func (m *Mem) goneLocked(dir string) {
	for d := range m.held {
		d.gone = d.gone || d.path == dir
	}
}

func (v memFS) HoldDir(dir string) (HeldView, error) {
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	path, err := v.atLocked("open", dir)
	if err != nil {
		return nil, err
	}
	if !v.mem.dirs[path] {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	d := &memDir{name: dir, path: path}
	v.mem.held[d] = true
	return memHeld{memFS{v.mem, d}}, nil
}

// memHeld is a view on a directory that is held.
type memHeld struct{ memFS }

func (v memHeld) Where() (Where, error) {
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	switch {
	case !v.dir.gone && v.dir.path == v.dir.name:
		return Here, nil
	case v.mem.dirs[v.dir.name] || v.mem.files[v.dir.name] != nil:
		return Elsewhere, nil
	}
	return Nowhere, nil
}

func (v memHeld) Watch(string, func()) (stop func()) { return func() {} }

func (v memHeld) LinkTo(oldname string, to FS, newname string) error {
	other, ok := to.(memHeld)
	if !ok || other.mem != v.mem {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: ErrOtherSystem}
	}
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	return v.fromToLocked("link", oldname, other.memFS, newname, v.mem.nameLocked)
}

func (v memHeld) Release() error {
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	v.dir.closed = true
	delete(v.mem.held, v.dir)
	return nil
}

// memNamed is a file that was opened, or locked, in a view.
type memNamed struct {
	fs    memFS
	inode *memInode
}

// HasName implements [Namer].
func (n memNamed) HasName(name string) (bool, error) {
	n.fs.mem.mu.Lock()
	defer n.fs.mem.mu.Unlock()
	at, err := n.fs.atLocked("stat", name)
	return err == nil && n.fs.mem.files[at] == n.inode, nil
}

// HasAnyName implements [Namer].
func (n memNamed) HasAnyName() bool {
	n.fs.mem.mu.Lock()
	defer n.fs.mem.mu.Unlock()
	for _, other := range n.fs.mem.files {
		if other == n.inode {
			return true
		}
	}
	return false
}
