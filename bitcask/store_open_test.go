package bitcask_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestLeftoverGoesByItself: a temporary file that is there when Open lists the directory, and gone when it is removed,
// is no error. A store that has lost its LOCK to this one may have given it its name in between.
func TestLeftoverGoesByItself(t *testing.T) {
	for _, name := range []string{"HINT.new", "INDEX.new", "MANIFEST.new"} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := openMem(t, mem, bitcask.Options{})
			put(t, s, "k", "v")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := mem.Open("d/"+name, vfs.Create)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			gone := 0
			fault := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRemove}, Path: name, Do: func(vfstest.Event) {
				gone++
				if err := mem.Remove("d/" + name); err != nil {
					t.Error(err)
				}
			}})
			s, err = bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: fault}))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Recovery().Removed; gone != 1 || len(got) != 0 {
				t.Errorf("went %d times; Open says that it removed %q", gone, got)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
