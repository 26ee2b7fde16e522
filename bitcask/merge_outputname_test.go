package bitcask_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// The name of a merge's output is on disk before the manifest lists it, also without a hint.
func TestOutputOfAMergeIsNamedFirst(t *testing.T) {
	mem := vfs.NewMem()
	rec := vfstest.NewRecorder(mem)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: rec, NoHints: true, NoIndex: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Put("a", []byte("1")), s.Put("b", []byte("2")), s.Rotate(), s.Put("a", []byte("3")), s.Rotate()); err != nil {
		t.Fatal(err)
	}
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	before := len(rec.Events())
	if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
	written, named, listed := "", false, false
	for _, e := range rec.Events()[before:] {
		switch {
		case e.Op == vfstest.OpCreate && strings.HasSuffix(e.Name, ".data"):
			written, named = e.Name, false
		case e.Op == vfstest.OpSyncDir:
			named = true
		case e.Op == vfstest.OpWrite && strings.HasPrefix(e.Name, "d/MANIFEST") && len(e.Data) > 20: // the merge, not the id that it takes
			if listed = true; written == "" || !named {
				t.Errorf("the manifest lists the output %q before its name is on disk", written)
			}
		}
	}
	if !listed {
		t.Error("no merge in the manifest")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
