package bitcask_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestMergeAfterALeftover: an output of a failed merge that could not be removed is in no later merge's way for long.
func TestMergeAfterALeftover(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s := open(t, "d", seam.With(&bitcask.Options{SegmentSize: 2000}, seam.Options{FS: fault, NoMapping: true}))
	for i := range 100 {
		put(t, s, fmt.Sprint("k", i%10), strings.Repeat("v", 100))
	}
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Err: syscall.EIO})
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRemove}, Path: "*.data", Err: syscall.EIO})
	var err error
	for try := range 3 {
		if err = rewriteAll(s); err == nil {
			if try == 0 {
				t.Error("the first one has not failed")
			}
			want(t, s, "k1", strings.Repeat("v", 100))
			return
		}
		t.Log(err)
	}
	t.Error(err)
}
