package repair_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestSalvageUnreadable: of a file that cannot be read at all, and of one whose hint cannot be read either, the loss is
// named, and all other files are salvaged. A read that fails once costs nothing.
func TestSalvageUnreadable(t *testing.T) {
	const n = 120
	for name, c := range map[string]struct {
		rules []vfstest.Rule
		lost  bool
	}{
		"a sealed segment":              {[]vfstest.Rule{{Path: "000000005.data", Ops: []vfstest.Op{vfstest.OpRead}, Sticky: true}}, true},
		"a sealed segment and its hint": {[]vfstest.Rule{{Path: "000000005.*", Ops: []vfstest.Op{vfstest.OpRead}, Sticky: true}}, true},
		"opening a segment":             {[]vfstest.Rule{{Path: "000000005.data", Sticky: true}}, true},
		"a hint":                        {[]vfstest.Rule{{Path: "000000005.hint", Ops: []vfstest.Op{vfstest.OpRead}, Sticky: true}}, false},
		"one read":                      {[]vfstest.Rule{{Path: "000000005.data", Ops: []vfstest.Op{vfstest.OpRead}, Skip: 2}}, false},
		"the manifest":                  {[]vfstest.Rule{{Path: "MANIFEST", Ops: []vfstest.Op{vfstest.OpRead}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fault := vfstest.NewFault(vfs.NewMem())
			o := func(size int64) *bitcask.Options {
				return seam.With(&bitcask.Options{SegmentSize: size}, seam.Options{FS: fault})
			}
			s, err := bitcask.Open("d", o(2<<10))
			must(t, err)
			for i := range n {
				must(t, s.Put(fmt.Sprint("key", i), bytes.Repeat([]byte{byte(i)}, 100)))
			}
			must(t, s.Close())
			for _, r := range c.rules {
				r.Err = syscall.EIO
				fault.Inject(r)
			}
			result, err := repair.Salvage(t.Context(), "d", "new", o(1<<20)) // no file of it has the name of one that fails
			must(t, err)
			fault.Heal()
			if (len(result.Lost) > 0) != c.lost {
				t.Fatalf("%d losses: %v", len(result.Lost), result.Lost)
			}
			for _, l := range result.Lost {
				if l.File != "000000005.data" || !strings.Contains(l.Reason, "cannot be read") {
					t.Errorf("%+v", l)
				}
			}
			s, err = bitcask.Open("new", o(1<<20))
			must(t, err)
			there := 0
			for i := range n {
				value, err := s.Get(fmt.Sprint("key", i))
				switch {
				case err == nil && !bytes.Equal(value, bytes.Repeat([]byte{byte(i)}, 100)):
					t.Errorf("key%d: %x", i, value)
				case err == nil:
					there++
				case !errors.Is(err, bitcask.ErrNotFound):
					t.Error(err)
				}
			}
			must(t, s.Close())
			if !c.lost && there != n || c.lost && (there < n/2 || there == n) {
				t.Errorf("%d of %d keys, %d losses", there, n, len(result.Lost))
			}
		})
	}
}
