package vfs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
)

// Held is a file system that reaches one directory through a handle of it: names directly in the directory, and the
// directory itself, lead to the directory of [Hold], wherever its path leads later (I9). A directory that was moved is
// followed, one that took its place is never touched. Names elsewhere are paths as usual; names deeper in the directory
// are refused ([io/fs.ErrInvalid]): hold their directory.
//
// The methods take the same names as those of any [FS]: paths that begin as the one given to Hold does.
type Held struct {
	FS
	base  FS
	dir   string
	view  HeldView
	users *users

	once sync.Once
	err  error // of the first Close
}

// HeldView is what a file system makes of itself when it holds a directory.
type HeldView interface {
	FS
	Where() (Where, error)
	LinkTo(oldname string, to FS, newname string) error
	Watch(name string, notify func()) (stop func())
	Release() error
}

// Holder is a file system that can hold a directory. Others are used as they are.
type Holder interface {
	HoldDir(dir string) (HeldView, error)
}

// users counts the users of one handle of a directory.
type users struct {
	mu sync.Mutex
	n  int
}

// add reports whether the handle is in use, and if so counts one more user.
func (u *users) add(one bool) (open bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n > 0 && one {
		u.n++
	}
	return u.n > 0
}

// Hold takes a handle of a directory, which must exist. If fsys is a [Held] of the same name, both share the handle: it
// goes with the last Close. One that is closed stands for its Base.
func Hold(fsys FS, dir string) (*Held, error) {
	dir = filepath.Clean(dir)
	base := fsys
	if h, ok := fsys.(*Held); ok {
		open := h.users.add(h.dir == dir)
		if open && h.dir == dir {
			return &Held{FS: h.view, base: h.base, dir: dir, view: h.view, users: h.users}, nil
		}
		if fsys, base = h.view, h.base; !open {
			fsys = h.base
		}
	}
	view := HeldView(unheld{fsys})
	if can, ok := fsys.(Holder); ok {
		var err error
		if view, err = can.HoldDir(dir); err != nil {
			return nil, err
		}
	}
	return &Held{FS: view, base: base, dir: dir, view: view, users: &users{n: 1}}, nil
}

// HoldNew is [Hold] of a directory that is made, with its parents, if it is missing.
func HoldNew(fsys FS, dir string) (*Held, error) {
	h, held := fsys.(*Held)
	if held && !h.users.add(false) {
		fsys, held = h.base, false
	}
	if !held || h.dir != filepath.Clean(dir) {
		if err := fsys.MkdirAll(dir); err != nil {
			return nil, err
		}
	}
	return Hold(fsys, dir)
}

// Base is the file system that was given to [Hold]: by it, names in the directory are paths like any other.
func (h *Held) Base() FS { return h.base }

// Where says where a path leads.
type Where int

// What the path of a held directory may lead to.
const (
	Here      Where = iota // The directory that is held.
	Nowhere                // Nothing.
	Elsewhere              // Another directory, or a file.
)

// Where reports where the path that was given to [Hold] leads now, links included.
func (h *Held) Where() (Where, error) { return h.view.Where() }

// LinkTo gives a file in this directory one more name, in another one that is held. See [FS.Link].
func (h *Held) LinkTo(oldname string, to *Held, newname string) error {
	return h.view.LinkTo(oldname, to.view, newname)
}

// Watch has notify called, by another goroutine, when the system reports that a file in the directory was removed,
// renamed or replaced. It may be called without a change, and it may never be called: where the system has no reports,
// or can watch no more files. It must not wait for anything. After stop has returned it is not called.
func (h *Held) Watch(name string, notify func()) (stop func()) { return h.view.Watch(name, notify) }

// Close releases the handle. A second call returns what the first did.
func (h *Held) Close() error {
	h.once.Do(func() {
		h.users.mu.Lock()
		defer h.users.mu.Unlock()
		if h.users.n--; h.users.n == 0 {
			h.err = h.view.Release()
		}
	})
	return h.err
}

// Namer is implemented by a [File], and by the result of [FS.Lock], that can compare its name with the file. See
// [HasName].
type Namer interface {
	// HasName reports whether name stands for this file now. A missing name is no error.
	HasName(name string) (bool, error)
	// HasAnyName reports whether the file has a name anywhere; in doubt it says so. It costs less than HasName.
	HasAnyName() bool
}

// HasName reports whether name stands for the open file, or the locked one, now. True if file is no [Namer].
func HasName(file any, name string) (bool, error) {
	if n, ok := file.(Namer); ok {
		return n.HasName(name)
	}
	return true, nil
}

// HasAnyName reports whether an open file, or a locked one, has a name anywhere; in doubt it says so.
func HasAnyName(file any) bool {
	n, ok := file.(Namer)
	return !ok || n.HasAnyName()
}

// unheld stands for a file system that cannot hold a directory.
type unheld struct{ FS }

func (unheld) Where() (Where, error)                               { return Here, nil }
func (unheld) Watch(string, func()) (stop func())                  { return func() {} }
func (unheld) Release() error                                      { return nil }
func (u unheld) LinkTo(oldname string, _ FS, newname string) error { return u.Link(oldname, newname) }

// ErrOtherSystem means that two directories are held by different file systems. [CannotLink] holds for it.
var ErrOtherSystem = fmt.Errorf("directories of different file systems: %w", errors.ErrUnsupported)

// cutDirectory takes a directory's name away from the front of another one: "" is left of the directory itself. Both
// are clean.
func cutDirectory(dir, name string) (rest string, within bool) {
	if name == dir {
		return "", true
	}
	if dir == "." {
		return name, !filepath.IsAbs(name) && name != ".." && !strings.HasPrefix(name, ".."+string(filepath.Separator))
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// deep reports whether a name, relative to a directory, is of something in a directory below that.
func deep(rest string) bool { return strings.ContainsRune(rest, filepath.Separator) }
