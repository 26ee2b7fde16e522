package vfs_test

import (
	"runtime"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// A kill keeps the boot id, a new file system has another; the operating system's stays while the process runs.
func TestBootID(t *testing.T) {
	mem := vfs.NewMem()
	id := vfs.BootOf(mem, ".")
	if id == (vfs.BootID{}) || vfs.BootOf(mem.Clone(), ".") != id {
		t.Errorf("%x, of a clone %x", id, vfs.BootOf(mem.Clone(), "."))
	}
	if other := vfs.BootOf(vfs.NewMem(), "."); other == id {
		t.Errorf("two file systems have the id %x", other)
	}
	for _, wrapped := range []vfs.FS{vfstest.NewFault(mem), vfstest.NewRecorder(mem), vfstest.NewRecorder(vfstest.NewFault(mem))} {
		if got := vfs.BootOf(wrapped, "."); got != id {
			t.Errorf("%T: %x, want %x", wrapped, got, id)
		}
	}
	later := vfs.NewMem()
	if later.SetBoot(id); vfs.BootOf(later, ".") != id {
		t.Error("SetBoot changes nothing")
	}
	here := vfs.BootOf(vfs.OS(), t.TempDir())
	if runtime.GOOS == "linux" && here == (vfs.BootID{}) || here != vfs.BootOf(vfs.OS(), t.TempDir()) {
		t.Errorf("the operating system's: %x", here)
	}
	if id := vfs.BootOf(vfs.OS(), t.TempDir()+"/missing"); id != (vfs.BootID{}) {
		t.Errorf("of a directory that is not there: %x", id)
	}
}
