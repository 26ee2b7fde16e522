package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// osDir is a handle of a directory. Names in it are looked up from there, so that neither a rename of the directory nor
// another one in its place changes what they lead to.
type osDir struct {
	name   string // As given: names in it begin so.
	path   string // The same, whatever the working directory will be.
	root   *os.Root
	handle *os.File // Of the same directory: for the calls that os.Root has no means for.
}

// spot is a name as the system is asked for it.
type spot struct {
	dir  *osDir // nil: none
	rel  string // In dir: "." is the directory itself. Else as name.
	name string // As the caller has it, for messages.
}

// at is where a name leads in this view.
func (o osFS) at(op, name string) (spot, error) {
	if o.dir == nil {
		return spot{rel: name, name: name}, nil
	}
	rest, within := cutDirectory(o.dir.name, filepath.Clean(name))
	switch {
	case !within:
		return spot{rel: name, name: name}, nil
	case deep(rest):
		return spot{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	case rest == "":
		rest = "."
	}
	return spot{o.dir, rest, name}, nil
}

// openDir opens a directory for reading.
func (at spot) openDir() (*os.File, error) {
	if at.dir == nil {
		return openDir(at.rel)
	}
	f, err := at.dir.root.OpenFile(at.rel, directoryFlags, 0)
	return f, at.named(err)
}

// named puts the caller's name into an error about a name in the directory.
func (at spot) named(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: pe.Op, Path: at.name, Err: pe.Err}
	}
	return err
}

// lstat is about the name itself, not what a link leads to.
func (at spot) lstat() (fs.FileInfo, error) {
	if at.dir == nil {
		return os.Lstat(at.rel)
	}
	info, err := at.dir.root.Lstat(at.rel)
	return info, at.named(err)
}

// hasName reports whether a name stands for an open file.
func (o osFS) hasName(f *os.File, name string) (bool, error) {
	at, err := o.at("stat", name)
	if err != nil {
		return false, err
	}
	named, err := at.lstat()
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(named, info), err
}

// isGone reports whether an error says that there is nothing of a name: not even, on a network, the directory.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || isStale(err) }

func (o osFS) HoldDir(dir string) (HeldView, error) {
	at, err := o.at("open", dir)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &osDir{name: dir, path: path}
	if at.dir != nil {
		d.root, err = at.dir.root.OpenRoot(at.rel)
	} else {
		d.root, err = openRoot(dir)
	}
	if err != nil {
		return nil, at.named(err)
	}
	if d.handle, err = d.root.Open("."); err != nil {
		return nil, errors.Join(at.named(err), d.root.Close())
	}
	return osHeld{osFS{d}}, nil
}

// osHeld is a view on a directory that is held.
type osHeld struct{ osFS }

func (o osHeld) Where() (Where, error) {
	there, err := os.Stat(o.dir.path)
	if isGone(err) {
		return Nowhere, nil
	}
	if err != nil {
		return Here, err
	}
	held, err := o.dir.root.Stat(".")
	if err != nil || os.SameFile(there, held) {
		return Here, err
	}
	return Elsewhere, nil
}

func (o osHeld) LinkTo(oldname string, to FS, newname string) error {
	other, ok := to.(osHeld)
	if !ok {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: ErrOtherSystem}
	}
	return linkSpots(o.osFS, oldname, other.osFS, newname)
}

func (o osHeld) Release() error { return errors.Join(o.dir.handle.Close(), o.dir.root.Close()) }

// twoSpots is where two names lead.
func twoSpots(op string, from osFS, oldname string, to osFS, newname string) (a, b spot, err error) {
	if a, err = from.at(op, oldname); err == nil {
		b, err = to.at(op, newname)
	}
	return a, b, err
}
