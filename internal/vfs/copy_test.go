package vfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// copier makes a file of zeros with a window over all of it, or skips the test where the file system cannot be copied
// into.
func copier(t *testing.T, fsys vfs.FS, name string, size int) (vfs.File, vfs.Copier) {
	t.Helper()
	f := vfstest.Create(t, fsys, name, strings.Repeat("\x00", size))
	c, ok := f.(vfs.Copier)
	if !ok {
		t.Skip("no copies here")
	}
	if err := c.Window(0, size); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return f, c
}

// Copies are read like writes, by every handle, at once and after Close, whatever their lengths and offsets.
func TestCopies(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		const size = 10_000
		name := filepath.Join(dir, "a")
		f, c := copier(t, fsys, name, size)
		want := make([]byte, size)
		for n := range 70 {
			at := n * 137
			p := bytes.Repeat([]byte{byte(n + 1)}, n)
			must(t, c.CopyAt(p, int64(at)))
			copy(want[at:], p)
			if n%10 == 0 {
				must(t, f.Sync())
				must(t, c.Populate(int64(at)))
			}
			if n == 40 { // over the rest, from the middle of a page
				must(t, c.Window(int64(at), size-at))
			}
		}
		if got := vfstest.Content(t, fsys, name); got != string(want) {
			t.Error("another handle reads something else")
		}
		must(t, f.Close())
		if got := vfstest.Content(t, fsys, name); got != string(want) {
			t.Error("after Close it is something else")
		}
	})
}

// Copies outside of the window are refused, and there is none after EndWindow, Close or a window that could not be had.
func TestCopiesOutsideOfTheWindow(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, c := copier(t, fsys, filepath.Join(dir, "a"), 5000)
		must(t, c.Window(100, 4500))
		refused := func(what string, n int, off int64) {
			t.Helper()
			if c.CopyAt(make([]byte, n), off) == nil {
				t.Errorf("%s: a copy of %d bytes to %d is accepted", what, n, off)
			}
		}
		must(t, c.CopyAt(make([]byte, 4500), 100))
		refused("before", 1, 99)
		refused("after", 1, 4600)
		refused("over the end", 10, 4591)
		must(t, c.EndWindow())
		refused("ended", 1, 200)
		if c.Window(0, 50_000) == nil { // beyond the end of the file
			t.Error("a window of what is not there")
		}
		refused("not had", 1, 200)
		must(t, c.Window(0, 5000))
		must(t, f.Close())
		refused("closed", 1, 200)
	})
}

// What is copied beyond the end of a file that has been truncated is lost, and beyond its last page an error: the
// reason why a writer must know the length of its file.
func TestCopiesIntoATruncatedFile(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		f, c := copier(t, fsys, name, 128<<10)
		must(t, f.Truncate(100))
		must(t, c.CopyAt([]byte("xyz"), 200))
		wantErr(t, c.CopyAt([]byte("xyz"), 100<<10), syscall.EIO)
		must(t, c.CopyAt([]byte("xyz"), 90)) // the store may go on
		if n, err := f.Size(); n != 100 || err != nil {
			t.Errorf("it is %d bytes long, %v", n, err)
		}
	})
}

// A handle for reading has no window.
func TestNoCopiesByReaders(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		copier(t, fsys, name, 100)
		f, err := fsys.Open(name, vfs.ReadOnly)
		must(t, err)
		defer f.Close()
		if f.(vfs.Copier).Window(0, 100) == nil {
			t.Error("it has one")
		}
	})
}

// A copy is a write for a Recorder and for a Fault, and a window can be refused.
func TestCopiesThroughWrappers(t *testing.T) {
	mem := vfs.NewMem()
	rec := vfstest.NewRecorder(mem, vfstest.OpWrite)
	fault := vfstest.NewFault(rec)
	_, c := copier(t, fault, "a", 1000)
	must(t, c.CopyAt([]byte("abc"), 10))
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Err: syscall.EIO, Partial: 2})
	wantErr(t, c.CopyAt([]byte("def"), 20), syscall.EIO)
	if got := vfstest.Content(t, mem, "a"); strings.Trim(got, "\x00") != "abc\x00\x00\x00\x00\x00\x00\x00de" {
		t.Errorf("%q", got)
	}
	if got, want := rec.Trace(), "write a 0+1000\nwrite a 10+3\nwrite a 20+2\n"; got != want {
		t.Errorf("recorded %q", got)
	}
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpMap}, Err: syscall.ENOMEM})
	wantErr(t, c.Window(0, 10), syscall.ENOMEM)
}

// A file system that nobody else can see has no use for copies.
func TestNoCopiesInPrivate(t *testing.T) {
	f := vfstest.Create(t, vfs.NewPrivateMem(), "a", "text")
	err := f.(vfs.Copier).Window(0, 4)
	wantErr(t, err, errors.ErrUnsupported)
	if p := (*fs.PathError)(nil); !errors.As(err, &p) {
		t.Errorf("%v", err)
	}
}
