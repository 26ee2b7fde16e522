package bitcask

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
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

// hostileChanges set a number of a manifest to what nobody would write.
func hostileChanges() map[string]func(m *manifest.Manifest, v uint64) {
	sealed := func(fn func(si *format.SealedInfo, v uint64)) func(m *manifest.Manifest, v uint64) {
		return func(m *manifest.Manifest, v uint64) {
			si := m.Sealed[2]
			fn(&si, v)
			m.Sealed[2] = si
		}
	}
	return map[string]func(m *manifest.Manifest, v uint64){
		"closed length":  func(m *manifest.Manifest, v uint64) { m.ClosedLen = v },
		"closed id":      func(m *manifest.Manifest, v uint64) { m.ClosedID = uint32(v) },
		"next id":        func(m *manifest.Manifest, v uint64) { m.NextID = uint32(v) },
		"sequence":       func(m *manifest.Manifest, v uint64) { m.MaxSeq = v },
		"through":        func(m *manifest.Manifest, v uint64) { m.Through = v },
		"opening":        func(m *manifest.Manifest, v uint64) { m.Openings[0].First = v },
		"origin":         func(m *manifest.Manifest, v uint64) { m.Origins = []manifest.Origin{{Below: uint32(v), Through: v}} },
		"unsealed":       func(m *manifest.Manifest, v uint64) { m.Tail = append(m.Tail, uint32(v)) },
		"length":         sealed(func(si *format.SealedInfo, v uint64) { si.Length = v }),
		"lowest":         sealed(func(si *format.SealedInfo, v uint64) { si.MinSeq = v }),
		"highest":        sealed(func(si *format.SealedInfo, v uint64) { si.MaxSeq = v }),
		"records":        sealed(func(si *format.SealedInfo, v uint64) { si.Records = v }),
		"all of segment": sealed(func(si *format.SealedInfo, v uint64) { si.Length, si.MinSeq, si.MaxSeq, si.Records = v, v, v, v }),
	}
}

// useHostile does with a store what can be done, if it opens; what that comes to does not matter.
func useHostile(mem *vfs.Mem, o Options) {
	o.SegmentSize, o.seam.FS = 1<<10, mem
	s, err := Open("d", &o)
	if err != nil {
		return
	}
	for i := range 40 {
		_, _ = s.Get(fmt.Sprint("k", i))
	}
	_, _ = s.Check(context.Background(), func(Finding) {})
	_, _ = s.BackupTo(context.Background(), io.Discard)
	s.Stats()
	if !s.opts.ReadOnly {
		_ = s.Put("new", []byte("v"))
		_ = s.Rotate()
		if snap, err := s.Snapshot(context.Background(), SnapshotOptions{}); err == nil {
			_ = snap.Close()
		}
		_, _ = s.Rewrite(context.Background(), []uint32{1, 2}, RewriteOptions{})
	}
	_ = s.Close()
}

// TestHostileNumbers: a manifest whose checksums are right, with a number that nobody would write, panics nowhere,
// takes no time, and leaves nothing open.
func TestHostileNumbers(t *testing.T) {
	built := segmented(t, true)
	ways := []Options{{}, {ReadOnly: true}, {ReadDamaged: true}, {ReadDamaged: true, seam: seam.Options{NoIndex: true}}, {ReadDamaged: true, seam: seam.Options{NoHints: true}}}
	for name, change := range hostileChanges() {
		for _, v := range []uint64{0, 1, 39, 40, 1 << 24, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
			for _, missing := range []string{"INDEX.new", "000000002.hint"} { // the former is not there anyway
				mem := built.Clone()
				m, err := manifest.Read(mem, "d", vfs.ReadWrite, nil)
				must(t, err)
				change(m, v)
				must(t, m.Rewrite())
				must(t, m.Close())
				_ = mem.Remove("d/" + missing)
				begin := time.Now()
				for _, o := range ways {
					used := mem.Clone()
					useHostile(used, o)
					if left := used.Leaks(); len(left) > 0 {
						t.Errorf("%s %d without %s: left open: %v", name, v, missing, left)
					}
				}
				_, _ = salvage(context.Background(), "d", "salvaged", &Options{seam: seam.Options{FS: mem}})
				if took := time.Since(begin); took > 5*time.Minute {
					t.Errorf("%s %d without %s: %v", name, v, missing, took)
				}
			}
		}
	}
}

// TestSalvageOfFilesCutShort: no file is too short for a salvage, with a manifest and without: it copies what the
// others hold.
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
