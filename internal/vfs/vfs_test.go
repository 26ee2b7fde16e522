package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// eachFS runs a test on every file system, in an empty directory of it. A wrapper that does nothing must not be
// noticed.
func eachFS(t *testing.T, run func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { run(t, vfs.OS(), t.TempDir()) })
	mem := func(t *testing.T) *vfs.Mem {
		m := vfs.NewMem()
		must(t, m.MkdirAll("dir"))
		t.Cleanup(func() {
			if leaks := m.Leaks(); !t.Failed() && len(leaks) > 0 {
				t.Errorf("left open: %v", leaks)
			}
		})
		return m
	}
	t.Run("mem", func(t *testing.T) { run(t, mem(t), "dir") })
	t.Run("fault", func(t *testing.T) { run(t, vfstest.NewFault(mem(t)), "dir") })
	t.Run("recorder", func(t *testing.T) { run(t, vfstest.NewRecorder(mem(t)), "dir") })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

func TestWriteAndRead(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		f := vfstest.Create(t, fsys, name, "hello")
		_, err := f.WriteAt([]byte("far"), 8)
		must(t, err)
		if got := vfstest.Text(t, f); got != "hello\x00\x00\x00far" {
			t.Errorf("a write past the end leaves %q", got)
		}
		_, err = f.WriteAt(nil, 100)
		must(t, err)
		must(t, f.Truncate(4))
		must(t, f.Truncate(6))
		if got := vfstest.Text(t, f); got != "hell\x00\x00" {
			t.Errorf("cut and grown again it reads %q", got)
		}
		p := make([]byte, 4)
		if n, err := f.ReadAt(p, 3); n != 3 || err != io.EOF {
			t.Errorf("a read over the end gives %d, %v", n, err)
		}
		if n, err := f.ReadAt(p, 60); n != 0 || err != io.EOF {
			t.Errorf("a read past the end gives %d, %v", n, err)
		}
		if n, err := f.ReadAt(p, 2); n != 4 || err != nil {
			t.Errorf("a read up to the end gives %d, %v", n, err)
		}
		must(t, f.Sync())
		must(t, f.Close())
		if got := vfstest.Content(t, fsys, name); got != "hell\x00\x00" {
			t.Errorf("after close and open it reads %q", got)
		}
	})
}

func TestBadArguments(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		f := vfstest.Create(t, fsys, name, "hello")
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
			t.Errorf("a read at a negative offset gives %v", err)
		}
		if _, err := f.WriteAt([]byte("x"), -1); err == nil {
			t.Error("a write at a negative offset is accepted")
		}
		if f.Truncate(-1) == nil {
			t.Error("a negative size is accepted")
		}
		r, err := fsys.Open(name, vfs.ReadOnly)
		must(t, err)
		defer r.Close()
		if _, err := r.WriteAt([]byte("x"), 0); err == nil {
			t.Error("a write to a file open for reading is accepted")
		}
		if r.Truncate(0) == nil {
			t.Error("a cut of a file open for reading is accepted")
		}
		if got := vfstest.Content(t, fsys, name); got != "hello" {
			t.Errorf("refused calls left %q", got)
		}
	})
}

func TestModes(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		for _, mode := range []vfs.Mode{vfs.ReadOnly, vfs.ReadWrite} {
			_, err := fsys.Open(name, mode)
			wantErr(t, err, fs.ErrNotExist)
		}
		_, err := fsys.Open(filepath.Join(dir, "none", "a"), vfs.Create)
		wantErr(t, err, fs.ErrNotExist)
		vfstest.Create(t, fsys, name, "hello")
		_, err = fsys.Open(name, vfs.Create)
		wantErr(t, err, fs.ErrExist)
		_, err = fsys.Open(dir, vfs.ReadOnly)
		wantErr(t, err, vfs.ErrNotRegular)
		f, err := fsys.Open(name, vfs.ReadWrite)
		must(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte("J"), 0)
		must(t, err)
		if got := vfstest.Content(t, fsys, name); got != "Jello" {
			t.Errorf("reads %q", got)
		}
	})
}

func TestNames(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		list := func(want ...string) {
			t.Helper()
			got, err := fsys.List(dir)
			must(t, err)
			if !slices.Equal(got, want) {
				t.Errorf("names are %q, want %q", got, want)
			}
		}
		list()
		vfstest.Create(t, fsys, at("b"), "one")
		vfstest.Create(t, fsys, at("a"), "two")
		must(t, fsys.MkdirAll(at("d/e/f")))
		must(t, fsys.MkdirAll(at("d/e/f")))
		list("a", "b", "d")
		must(t, fsys.Link(at("b"), at("c")))
		wantErr(t, fsys.Link(at("b"), at("a")), fs.ErrExist)
		wantErr(t, fsys.Link(at("x"), at("y")), fs.ErrNotExist)
		must(t, fsys.Rename(at("b"), at("c"))) // Both are one file: nothing happens.
		list("a", "b", "c", "d")
		must(t, fsys.Rename(at("b"), at("a")))
		wantErr(t, fsys.Rename(at("b"), at("x")), fs.ErrNotExist)
		list("a", "c", "d")
		if got := vfstest.Content(t, fsys, at("a")); got != "one" {
			t.Errorf("the renamed file reads %q", got)
		}
		must(t, fsys.Remove(at("a")))
		wantErr(t, fsys.Remove(at("a")), fs.ErrNotExist)
		if fsys.Remove(at("d/e/f")) == nil {
			t.Error("an empty directory was removed")
		}
		list("c", "d")
		must(t, fsys.SyncDir(dir))
		if fsys.SyncDir(at("c")) == nil || fsys.SyncDir(at("none")) == nil {
			t.Error("something that is no directory was synced as one")
		}
		_, err := fsys.List(at("none"))
		wantErr(t, err, fs.ErrNotExist)
		if err := fsys.MkdirAll(at("c/d")); err == nil {
			t.Error("a directory was made under a file")
		}
	})
}

func TestDirectories(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		for _, name := range []string{"a/b", "empty", "full"} {
			must(t, fsys.MkdirAll(at(name)))
		}
		f := vfstest.Create(t, fsys, at("a/b/f"), "one")
		vfstest.Create(t, fsys, at("full/g"), "two")
		vfstest.Create(t, fsys, at("file"), "three")
		lock, err := fsys.Lock(at("a/LOCK"))
		must(t, err)
		for _, to := range []string{"full", "file", "none/a"} {
			if fsys.RenameDir(at("a"), at(to)) == nil {
				t.Errorf("a directory took the place of %s", to)
			}
		}
		if fsys.RenameDir(at("file"), at("x")) == nil || fsys.RemoveDir(at("file")) == nil {
			t.Error("a file was taken for a directory")
		}
		wantErr(t, fsys.RenameDir(at("none"), at("x")), fs.ErrNotExist)
		must(t, fsys.RenameDir(at("a"), at("empty")))
		must(t, fsys.RenameDir(at("empty"), at("c")))
		if got := vfstest.Content(t, fsys, at("c/b/f")); got != "one" {
			t.Errorf("a file in the renamed directory reads %q", got)
		}
		_, err = f.WriteAt([]byte("!"), 3)
		must(t, err)
		if got := vfstest.Content(t, fsys, at("c/b/f")); got != "one!" {
			t.Errorf("written through a handle from before it reads %q", got)
		}
		_, err = fsys.Lock(at("c/LOCK"))
		wantErr(t, err, vfs.ErrLocked)
		must(t, lock.Close())
		again, err := fsys.Lock(at("c/LOCK"))
		must(t, err)
		must(t, again.Close())
		if fsys.RemoveDir(at("c")) == nil {
			t.Error("a directory with files in it was removed")
		}
		must(t, fsys.Remove(at("c/b/f")))
		must(t, fsys.RemoveDir(at("c/b")))
		wantErr(t, fsys.RemoveDir(at("c/b")), fs.ErrNotExist)
		must(t, fsys.SyncDir(dir))
		names, err := fsys.List(dir)
		must(t, err)
		if want := []string{"c", "file", "full"}; !slices.Equal(names, want) {
			t.Errorf("names are %q, want %q", names, want)
		}
	})
}

func TestLinksThatCannotBe(t *testing.T) {
	for _, cause := range []error{syscall.EXDEV, syscall.EPERM, syscall.EACCES, syscall.EMLINK, syscall.ENOTSUP, syscall.ENOSYS} {
		if err := vfstest.NewFault(vfs.NewMem(), vfstest.Rule{Err: cause}).Link("a", "b"); !vfs.CannotLink(err) {
			t.Errorf("%v is said to pass", err)
		}
	}
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.ENOENT, syscall.EEXIST, syscall.EMFILE, nil} {
		if vfs.CannotLink(cause) {
			t.Errorf("%v is taken for a link that cannot be", cause)
		}
	}
}

func TestLinksShareBytesAndRemovedFilesLiveOn(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		f := vfstest.Create(t, fsys, a, "one")
		must(t, fsys.Link(a, b))
		_, err := f.WriteAt([]byte("two"), 0)
		must(t, err)
		if got := vfstest.Content(t, fsys, b); got != "two" {
			t.Errorf("through the other name it reads %q", got)
		}
		must(t, fsys.Remove(a))
		must(t, fsys.Remove(b))
		_, err = f.WriteAt([]byte("!"), 3)
		must(t, err)
		if got := vfstest.Text(t, f); got != "two!" {
			t.Errorf("removed but open it reads %q", got)
		}
	})
}

func TestClosedHandle(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := vfstest.Create(t, fsys, filepath.Join(dir, "a"), "hello")
		must(t, f.Close())
		_, err := f.ReadAt(make([]byte, 1), 0)
		wantErr(t, err, fs.ErrClosed)
		_, err = f.WriteAt(make([]byte, 1), 0)
		wantErr(t, err, fs.ErrClosed)
		_, err = f.Size()
		wantErr(t, err, fs.ErrClosed)
		wantErr(t, f.Truncate(0), fs.ErrClosed)
		wantErr(t, f.Sync(), fs.ErrClosed)
		wantErr(t, f.Close(), fs.ErrClosed)
	})
}

func TestLockExcludesWithinOneProcess(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		for range 3 {
			lock, err := fsys.Lock(name)
			must(t, err)
			_, err = fsys.Lock(name)
			wantErr(t, err, vfs.ErrLocked)
			var locked *vfs.LockedError
			if !errors.As(err, &locked) || locked.Name != name || !strings.Contains(err.Error(), name) {
				t.Errorf("error is %#v, want a LockedError that names %s", err, name)
			}
			must(t, lock.Close())
			wantErr(t, lock.Close(), fs.ErrClosed)
		}
		names, err := fsys.List(dir)
		must(t, err)
		if !slices.Equal(names, []string{"LOCK"}) {
			t.Errorf("unlocking leaves %q, want the lock file", names)
		}
		_, err = fsys.Lock(dir)
		if err == nil {
			t.Error("a directory was locked")
		}
	})
}

func TestParallelUse(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		shared := vfstest.Create(t, fsys, filepath.Join(dir, "shared"), "")
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 50 {
					name := filepath.Join(dir, fmt.Sprintf("%d-%d", g, i))
					f, err := fsys.Open(name, vfs.Create)
					if err != nil {
						t.Error(err)
						return
					}
					_, err1 := shared.WriteAt([]byte{byte(g + 1)}, int64(g*50+i))
					_, err2 := shared.ReadAt(make([]byte, 1), int64(g*50+i))
					if err := errors.Join(err1, err2, f.Sync(), f.Close(), fsys.Rename(name, name+"x"), fsys.SyncDir(dir)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := vfstest.Text(t, shared); len(got) != 200 || strings.Contains(got, "\x00") {
			t.Errorf("parallel writes left %d bytes", len(got))
		}
		if names, _ := fsys.List(dir); len(names) != 201 {
			t.Errorf("%d names, want 201", len(names))
		}
	})
}
