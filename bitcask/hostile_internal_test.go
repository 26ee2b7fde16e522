package bitcask

import (
	"context"
	"fmt"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// segmented is a store of some segments, which was closed or killed.
func segmented(t *testing.T, closed bool) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	s, err := Open("d", &Options{SegmentSize: 1 << 10, seam: seam.Options{FS: mem}})
	must(t, err)
	for i := range 40 {
		must(t, s.Put(fmt.Sprint("k", i), make([]byte, 50)))
	}
	killed := mem.Clone()
	must(t, s.Close())
	if closed {
		return mem
	}
	return killed
}

// TestSalvageOfFilesCutShort: no file is too short for a salvage, with a manifest and without: it copies what the others hold.
func TestSalvageOfFilesCutShort(t *testing.T) {
	for _, closed := range []bool{true, false} {
		built := segmented(t, closed)
		names, err := built.List("d")
		must(t, err)
		for _, name := range names {
			for _, length := range []int64{0, 1, 10, format.SegmentHeaderSize - 1, format.SegmentHeaderSize, format.SegmentHeaderSize + 1} {
				for _, without := range []string{"INDEX.new", "MANIFEST"} {
					mem := built.Clone()
					f, err := mem.Open("d/"+name, vfs.ReadWrite)
					must(t, err)
					must(t, f.Truncate(length))
					must(t, f.Close())
					_ = mem.Remove("d/" + without)
					o := Options{SegmentSize: 1 << 10, seam: seam.Options{FS: mem}}
					_, err = salvage(context.Background(), "d", "salvaged", &o)
					must(t, err)
					s, err := Open("salvaged", &o)
					must(t, err)
					if n := s.Len(0); n < 25 {
						t.Errorf("%s of %d bytes, without %s, closed %v: %d keys", name, length, without, closed, n)
					}
					must(t, s.Close())
				}
			}
		}
	}
}
