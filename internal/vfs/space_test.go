package vfs_test

import (
	"runtime"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestSpace: a disk in memory says what is left of it, through all that wraps it; so does the operating system's.
func TestSpace(t *testing.T) {
	mem := vfs.NewMem()
	if free, ok := vfs.SpaceOf(mem, "."); ok {
		t.Errorf("without a limit: %d bytes", free)
	}
	must(t, mem.MkdirAll("d"))
	mem.SetLimit(64<<10, 4<<10)
	f, err := mem.Open("d/f", vfs.Create)
	must(t, err)
	_, err = f.WriteAt(make([]byte, 5<<10), 0)
	must(t, err)
	must(t, f.Close())
	held, err := vfs.Hold(vfstest.NewFault(vfstest.NewRecorder(mem)), "d")
	must(t, err)
	if free, ok := vfs.SpaceOf(held, "d"); !ok || free != 56<<10 {
		t.Errorf("%d bytes, %v", free, ok)
	}
	must(t, held.Close())
	dir := t.TempDir()
	held, err = vfs.Hold(vfs.OS(), dir)
	must(t, err)
	for _, fs := range []vfs.FS{vfs.OS(), held} {
		switch free, ok := vfs.SpaceOf(fs, dir); runtime.GOOS {
		case "linux", "darwin", "windows":
			if !ok || free <= 0 {
				t.Errorf("%d bytes, %v", free, ok)
			}
		}
	}
	must(t, held.Close())
}
