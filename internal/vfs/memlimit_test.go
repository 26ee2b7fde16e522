package vfs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
)

// TestMemLimit: a disk of four pages gives four to any files, and gets them back with the last name and handle.
func TestMemLimit(t *testing.T) {
	const page = 100
	m := vfs.NewMem()
	m.SetLimit(4*page+50, page)
	create := func(name string) vfs.File {
		t.Helper()
		f, err := m.Open(name, vfs.Create)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	write := func(f vfs.File, off int64, length, want int) {
		t.Helper()
		n, err := f.WriteAt(make([]byte, length), off)
		if n != want || (err != nil) != (want < length) || err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes at %d: %d, %v; want %d", length, off, n, err, want)
		}
	}
	a, b := create("a"), create("b")
	write(a, 0, 1, 1)     // one page
	write(a, 1, 99, 99)   // the same
	write(b, 0, 201, 201) // three more
	write(a, 100, 1, 0)   // no fifth
	write(a, 50, 200, 50)
	write(b, 201, 300, 99) // the rest of the page
	write(b, 0, 300, 300)  // present bytes are overwritten
	if used := m.Used(page); used != 4*page {
		t.Errorf("%d bytes are used", used)
	}
	if err := a.Truncate(101); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a longer file: %v", err)
	}
	if err := m.Remove("b"); err != nil {
		t.Fatal(err)
	}
	write(a, 100, 1, 0) // b is open
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	write(a, 100, 301, 300)
	m.SetLimitError(page, page, syscall.EDQUOT)
	if _, err := a.WriteAt(make([]byte, 1), 400); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("over quota: %v", err)
	}
	if err := a.Truncate(100); err != nil {
		t.Fatal(err)
	}
	if c := m.Clone(); c.Used(page) != page {
		t.Error("the clone is not as it was")
	}
	m.SetLimit(0, page)
	write(a, 0, 1000, 1000)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}
