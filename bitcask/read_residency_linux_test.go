package bitcask_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// The same with the kernel's page cache, which is dropped.
func TestGetsAfterTheKernelHasForgotten(t *testing.T) {
	dir := t.TempDir()
	p := &pagedStore{t: t, keys: 3000}
	var err error
	if p.s, err = bitcask.Open(dir, &bitcask.Options{Sync: bitcask.SyncNone}); err != nil {
		t.Fatal(err)
	}
	for i := range p.keys {
		put(t, p.s, keyName(i), p.value(i))
	}
	if err := p.s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.data"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	reads := 0
	fs := vfstest.NewFault(vfs.OS(), vfstest.Rule{
		Ops: []vfstest.Op{vfstest.OpRead}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) { reads++ },
	})
	p.s = open(t, dir, seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: fs}))
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	reads = 0
	for i := 0; i < p.keys; i += 100 {
		want(t, p.s, keyName(i), p.value(i))
	}
	t.Logf("%d reads of the file for %d gets", reads, p.keys/100)
	if reads == 0 {
		t.Skip("this file system forgets nothing")
	}
}
