package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestPark: a parked file is read as before, also where its directory has moved, and takes no other file for itself.
func TestPark(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	must(t, os.Mkdir(dir, 0o700))
	held, err := vfs.Hold(vfs.OS(), dir)
	must(t, err)
	name := filepath.Join(dir, "a")
	f := vfstest.Create(t, held, name, "text")
	must(t, vfs.Park(f))
	must(t, vfs.Park(f))
	moved := dir + " moved"
	if err := os.Rename(dir, moved); err == nil { // Windows does not let it go
		if got := vfstest.Text(t, f); got != "text" {
			t.Errorf("in a directory that has moved: %q", got)
		}
		must(t, os.Rename(moved, dir))
	}
	must(t, f.Sync())
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a write: %v", err)
	}
	must(t, os.WriteFile(name+" other", []byte("evil"), 0o600))
	must(t, os.Rename(name+" other", name))
	if _, err := f.ReadAt(make([]byte, 4), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another file in its place: %v", err)
	}
	must(t, f.Close())
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := f.Size(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	must(t, held.Close())
}
