package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// eachHeld runs a test on every file system with a directory of it that is held.
func eachHeld(t *testing.T, run func(t *testing.T, fsys vfs.FS, held *vfs.Held, dir string)) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, parent string) {
		if runtime.GOOS == "windows" && t.Name() == "os" {
			t.Skip("a directory that is held cannot be renamed")
		}
		dir := filepath.Join(parent, "store")
		must(t, fsys.MkdirAll(dir))
		held, err := vfs.Hold(fsys, dir)
		must(t, err)
		t.Cleanup(func() { held.Close() })
		run(t, fsys, held, dir)
	})
}

func wantWhere(t *testing.T, held *vfs.Held, want vfs.Where) {
	t.Helper()
	if got, err := held.Where(); got != want || err != nil {
		t.Errorf("the path leads to %d, %v, want %d", got, err, want)
	}
}

func wantNames(t *testing.T, fsys vfs.FS, dir string, want ...string) {
	t.Helper()
	if got, err := fsys.List(dir); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s has %q, %v, want %q", dir, got, err, want)
	}
}

// Every operation on a directory that was moved, and in whose place there is another one, is about the one that was
// moved.
func TestHeldDirectoryIsFollowed(t *testing.T) {
	eachHeld(t, func(t *testing.T, fsys vfs.FS, held *vfs.Held, dir string) {
		in := func(name string) string { return filepath.Join(dir, name) }
		f := vfstest.Create(t, held, in("a"), "first")
		wantWhere(t, held, vfs.Here)
		moved := dir + ".moved"
		must(t, fsys.RenameDir(dir, moved))
		wantWhere(t, held, vfs.Nowhere)
		must(t, fsys.MkdirAll(dir))
		vfstest.Create(t, fsys, in("a"), "of the other")
		vfstest.Create(t, fsys, in("b"), "of the other")
		wantWhere(t, held, vfs.Elsewhere)

		vfstest.Create(t, held, in("c"), "third")
		must(t, held.Rename(in("c"), in("d")))
		must(t, held.Link(in("a"), in("e")))
		must(t, held.MkdirAll(in("sub")))
		must(t, held.RenameDir(in("sub"), in("below")))
		must(t, held.SyncDir(dir))
		wantErr(t, held.Remove(in("b")), fs.ErrNotExist)
		wantNames(t, held, dir, "a", "below", "d", "e")
		must(t, held.RemoveDir(in("below")))
		g, err := held.Open(in("a"), vfs.ReadOnly)
		must(t, err)
		if got := vfstest.Text(t, g); got != "first" {
			t.Errorf("a is %q", got)
		}
		must(t, g.Close())
		for name, want := range map[string]bool{"a": true, "e": true, "b": false, "none": false} {
			if got, err := vfs.HasName(f, in(name)); got != want || err != nil {
				t.Errorf("%s is a name of the file: %v, %v, want %v", name, got, err, want)
			}
		}
		lock, err := held.Lock(in("LOCK"))
		must(t, err)
		if got, err := vfs.HasName(lock, in("LOCK")); !got || err != nil {
			t.Errorf("the lock has its name: %v, %v", got, err)
		}
		if !vfs.HasAnyName(lock) || !vfs.HasAnyName(f) {
			t.Error("what has a name has none")
		}
		must(t, held.Remove(in("LOCK")))
		if vfs.HasAnyName(lock) && runtime.GOOS != "windows" {
			t.Error("a file that was removed has a name")
		}
		if got, err := vfs.HasName(lock, in("LOCK")); got || err != nil {
			t.Errorf("a lock whose file was removed has its name: %v, %v", got, err)
		}
		another, err := held.Lock(in("LOCK"))
		if err != nil {
			t.Errorf("a lock file that was removed still locks: %v", err)
		} else {
			must(t, another.Close())
		}
		must(t, lock.Close())
		must(t, held.Remove(in("d")))
		wantNames(t, fsys, dir, "a", "b")
		wantNames(t, fsys, moved, "LOCK", "a", "e")

		must(t, fsys.Remove(in("a")))
		must(t, fsys.Remove(in("b")))
		must(t, fsys.RenameDir(moved, dir)) // replaces the empty one
		wantWhere(t, held, vfs.Here)
	})
}

func TestHeldDirectoryThatIsRemoved(t *testing.T) {
	eachHeld(t, func(t *testing.T, fsys vfs.FS, held *vfs.Held, dir string) {
		name := filepath.Join(dir, "a")
		f := vfstest.Create(t, held, name, "first")
		must(t, fsys.Remove(name))
		must(t, fsys.RemoveDir(dir))
		must(t, fsys.MkdirAll(dir))
		vfstest.Create(t, fsys, name, "of the other")
		if got, err := vfs.HasName(f, name); got || err != nil {
			t.Errorf("the file has its name: %v, %v", got, err)
		}
		_, err := held.Open(name, vfs.Create)
		wantErr(t, err, fs.ErrNotExist)
		_, err = held.Open(name, vfs.ReadOnly)
		wantErr(t, err, fs.ErrNotExist)
		wantErr(t, held.Remove(name), fs.ErrNotExist)
		wantNames(t, fsys, dir, "a")
		if got := vfstest.Text(t, f); got != "first" {
			t.Errorf("the open file is %q", got)
		}
	})
}

func TestHold(t *testing.T) {
	eachHeld(t, func(t *testing.T, fsys vfs.FS, held *vfs.Held, dir string) {
		_, err := vfs.Hold(fsys, dir+".none")
		wantErr(t, err, fs.ErrNotExist)
		made, err := vfs.HoldNew(fsys, filepath.Join(dir+".new", "deep"))
		must(t, err)
		vfstest.Create(t, made, filepath.Join(dir+".new", "deep", "a"), "made")
		must(t, made.Close())

		// Names elsewhere are paths; names that are deeper need a handle of their own, which is relative to this one.
		vfstest.Create(t, held, filepath.Join(dir+".new", "b"), "elsewhere")
		sub := filepath.Join(dir, "sub")
		must(t, held.MkdirAll(sub))
		_, err = held.Open(filepath.Join(sub, "a"), vfs.Create)
		wantErr(t, err, fs.ErrInvalid)
		must(t, fsys.RenameDir(dir, dir+".moved"))
		below, err := vfs.Hold(held, sub)
		must(t, err)
		vfstest.Create(t, below, filepath.Join(sub, "a"), "below")
		vfstest.Create(t, held, filepath.Join(dir, "first"), "linked")
		must(t, held.LinkTo(filepath.Join(dir, "first"), below, filepath.Join(sub, "second")))
		must(t, below.Close())
		wantNames(t, fsys, filepath.Join(dir+".moved", "sub"), "a", "second")
		if below.Base() != held.Base() || held.Base() != fsys {
			t.Error("Base is not what was given to Hold")
		}

		// The same name shares the handle, also when the path leads nowhere.
		again, err := vfs.Hold(held, dir)
		must(t, err)
		once, err := vfs.HoldNew(again, dir)
		must(t, err)
		must(t, again.Close())
		must(t, again.Close())
		vfstest.Create(t, once, filepath.Join(dir, "shared"), "")
		must(t, once.Close())
		must(t, held.Close())
		_, err = held.Open(filepath.Join(dir, "first"), vfs.ReadOnly)
		wantErr(t, err, fs.ErrClosed)
		must(t, fsys.RenameDir(dir+".moved", dir))
		for _, hold := range []func(vfs.FS, string) (*vfs.Held, error){vfs.Hold, vfs.HoldNew} {
			anew, err := hold(held, dir)
			must(t, err)
			wantNames(t, anew, dir, "first", "shared", "sub")
			must(t, anew.Close())
		}
	})
}

// A file system that cannot hold a directory is used as it is.
func TestHoldOfAnotherFileSystem(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("dir"))
	held, err := vfs.Hold(struct{ vfs.FS }{mem}, "dir")
	must(t, err)
	defer held.Close()
	vfstest.Create(t, held, "dir/a", "")
	must(t, held.LinkTo("dir/a", held, "dir/b"))
	wantNames(t, mem, "dir", "a", "b")
	wantWhere(t, held, vfs.Here)
	if named, err := vfs.HasName(nil, "dir/a"); !named || err != nil {
		t.Errorf("what cannot tell says %v, %v", named, err)
	}

	real, err := vfs.Hold(vfs.OS(), t.TempDir())
	must(t, err)
	defer real.Close()
	other, err := vfs.Hold(mem, "dir")
	must(t, err)
	defer other.Close()
	for _, pair := range [][2]*vfs.Held{{real, other}, {other, real}} {
		if err := pair[0].LinkTo("a", pair[1], "b"); !vfs.CannotLink(err) {
			t.Errorf("a link between two file systems gives %v", err)
		}
	}
}

// Names that a working directory is needed for are those of the time of Hold.
func TestHeldOutlivesTheWorkingDirectory(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Chdir(first)
	must(t, os.Mkdir("store", 0o700))
	for _, dir := range []string{"store", "."} {
		t.Chdir(first)
		held, err := vfs.Hold(vfs.OS(), dir)
		must(t, err)
		t.Chdir(second)
		vfstest.Create(t, held, filepath.Join(dir, "a"), "")
		wantWhere(t, held, vfs.Here)
		must(t, held.Close())
	}
	wantNames(t, vfs.OS(), first, "a", "store")
	wantNames(t, vfs.OS(), second)
}
