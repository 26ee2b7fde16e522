package bitcask

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestSealAtOpenIsTriedAgain: what Open has to seal gets one footer, however often the disk is full meanwhile.
func TestSealAtOpenIsTriedAgain(t *testing.T) {
	for n := range 6 * 16 {
		from, fails := n/16, n%16 // the writes of the manifest that fail
		mem := vfs.NewMem()
		fault := vfstest.NewFault(mem)
		o := Options{SegmentSize: 8 << 10, Reserve: 64 << 10, seam: seam.Options{FS: fault, NoMapping: true, NoHints: true, NoIndex: true}}
		s, err := Open("d", &o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; n < 90; n++ {
			if n == 40 { // the next segment is ready, and no other one will be
				for len(s.segments.Load().All()) < 2 {
					time.Sleep(time.Millisecond)
				}
				fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: manifest.FileName + "*", Err: syscall.ENOSPC, Sticky: true})
			}
			if err := s.Put(fmt.Sprint("k", n), []byte(strings.Repeat("v", 100))); err != nil {
				t.Fatal(n, err)
			}
		}
		list, _ := s.log.Segments()
		active := s.log.Active()
		i := slices.IndexFunc(list, func(c commitlog.CutSegment) bool { return c.Segment != active && c.Frames > format.SegmentHeaderSize })
		if i < 0 || active.Size.Load() == format.SegmentHeaderSize {
			t.Fatalf("after %d puts: active %s, sealing %d of %v; %v", n, active.Name, i, list, s.Err())
		}
		sealing := list[i]
		killed := mem.Clone()
		f, err := killed.Open(filepath.Join("d", sealing.Name), vfs.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(sealing.Frames); err != nil { // the footer comes later
			t.Fatal(err)
		}
		f.Close()
		fault.Heal()
		s.Close()

		fault = vfstest.NewFault(killed)
		for i := range fails {
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: manifest.FileName + "*", Skip: from + i, Err: syscall.ENOSPC})
		}
		o.seam.FS = fault
		s, err = Open("d", &o)
		if err != nil {
			t.Logf("%d failures: %v", fails, err)
			fault.Heal()
			if s, err = Open("d", &o); err != nil {
				t.Fatalf("%d failures, then none: %v", fails, err)
			}
		}
		for again := range 2 {
			if got := s.Stats().Keys; got != n {
				t.Errorf("%d failures: %d keys, want %d", fails, got, n)
			}
			if _, err := s.Check(t.Context(), func(f Finding) { t.Errorf("%d failures: %v", fails, f) }); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if again == 0 {
				if s, err = Open("d", &o); err != nil {
					t.Fatalf("%d failures, opened again: %v", fails, err)
				}
			}
		}
	}
}
