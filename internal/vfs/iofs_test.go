package vfs_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stavedb/stave/internal/vfs"
)

// A file system for reading changes nothing, and opens files only.
func TestFromFSChangesNothing(t *testing.T) {
	f := vfs.FromFS(fstest.MapFS{"d/a": {Data: []byte("abc")}})
	file, err := f.Open("d/a", vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n, err := file.Size(); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, write := file.WriteAt([]byte("x"), 0)
	_, open := f.Open("d/a", vfs.ReadWrite)
	_, create := f.Open("d/b", vfs.Create)
	_, lock := f.Lock("d/LOCK")
	for name, err := range map[string]error{
		"write": write, "open for writing": open, "create": create, "lock": lock, "truncate": file.Truncate(1), "sync": file.Sync(),
		"remove": f.Remove("d/a"), "rename": f.Rename("d/a", "d/b"), "link": f.Link("d/a", "d/b"), "make directory": f.MkdirAll("e"),
		"rename directory": f.RenameDir("d", "e"), "remove directory": f.RemoveDir("d"), "sync directory": f.SyncDir("d"),
	} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Open("d", vfs.ReadOnly); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := f.Open("d/c", vfs.ReadOnly); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if names, err := f.List("d"); len(names) != 1 || names[0] != "a" || err != nil {
		t.Errorf("%q, %v", names, err)
	}
}
