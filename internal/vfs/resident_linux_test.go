package vfs_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/internal/vfs"
)

func TestResident(t *testing.T) {
	const size = 3<<20 + 100
	name := filepath.Join(t.TempDir(), "f")
	f, err := vfs.OS().Open(name, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		t.Fatal(err)
	}
	m := f.(vfs.Mapper)
	b, err := m.Map(2 * size) // past the end: bytes written later show up
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Unmap(b); err != nil {
			t.Error(err)
		}
	}()
	if !m.Resident(b[:size], nil) || !m.Resident(b[5000:5001], nil) || !m.Resident(b[:0], nil) {
		t.Error("what has just been written is not in memory")
	}
	if m.Resident(b[size+1<<20:], nil) {
		t.Error("what is after the end is in memory")
	}

	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := f.Sync(); err != nil { // dirty pages stay
		t.Fatal(err)
	}
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if m.Resident(b[:size], nil) {
		t.Skip("this file system forgets nothing")
	}
	if _, err := f.ReadAt(make([]byte, 10), 1<<20); err != nil {
		t.Fatal(err)
	}
	if !m.Resident(b[1<<20:1<<20+10], nil) {
		t.Error("what has just been read is not in memory")
	}
	var pages vfs.ResidentPages
	if m.Resident(b[1<<20:2<<20], &pages) || !pages.Has(0, 0) || pages.Has(0, 255) || pages.Has(255, 255) {
		t.Errorf("of the MiB whose first bytes have just been read these pages are in memory: %x", &pages)
	}
	if pages.Add(200, 255); !pages.Has(200, 255) || pages.Has(199, 200) || pages.Has(198, 255) {
		t.Errorf("pages 200 to 255 were added: %x", &pages)
	}
	if n := testing.AllocsPerRun(10, func() { m.Resident(b[1<<20:2<<20], &pages) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
