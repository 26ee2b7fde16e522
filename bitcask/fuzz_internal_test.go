package bitcask

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Decoders of bytes on disk meet arbitrary bytes here, after checksums that are right: a wrong one
// would be all that they see.

// bounded fails the test if fn allocates more than a multiple of its input.
func bounded(t *testing.T, input int, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	const spare = 4 << 20 // windows of 1 MiB, and concurrent goroutines
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(64*input+spare) {
		t.Errorf("%d bytes allocated for an input of %d", n, input)
	}
}

// fuzzFile is a file in memory.
func fuzzFile(t *testing.T, mem *vfs.Mem, name string, b []byte) vfs.File {
	t.Helper()
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	f, err := mem.Open(filepath.Join("d", name), vfs.Create)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// FuzzFrame reads a frame whose header verifies: every entry lies within it.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x11\x00\x01\x01string:kv"), false, false, uint64(1), uint32(0))
	f.Add([]byte("\x00\x00\x00\x00\x11\x00\x01\x01string:kv"), true, false, uint64(1), uint32(0))
	f.Add([]byte{}, true, false, uint64(1), uint32(0))
	f.Add(make([]byte, format.FooterSize-format.FrameHeaderSize), false, true, uint64(0), uint32(40))
	f.Fuzz(func(t *testing.T, payload []byte, many, footer bool, seq uint64, synced uint32) {
		store := [16]byte{1}
		s := format.NewChecksumSeed(store, 1)
		frame := append(make([]byte, format.FrameHeaderSize), payload...)
		h := format.FrameHeader{Size: uint32(len(frame)), Many: many, Footer: footer, Seq: seq, Synced: synced}
		switch {
		case footer:
			h.Sum = s.Sum(format.SegmentHeaderSize+format.FrameHeaderSize, payload)
		case !many: // the sum is that of the only record
			h.Sum = s.Sum(format.SegmentHeaderSize+format.FrameSumAt, payload)
		case len(payload) > format.RecordCRCSize: // all is one record, if it is one
			binary.LittleEndian.PutUint32(frame[format.FrameHeaderSize:], s.Sum(format.SegmentHeaderSize+format.FrameHeaderSize, payload[format.RecordCRCSize:]))
		}
		h.Put(frame, s, format.SegmentHeaderSize)
		file := fuzzFile(t, vfs.NewMem(), format.DataName(1), append(format.EncodeSegmentHeader(store, 1, 0, false), frame...))
		sg := &segment.Segment{ID: 1, Seed: s, File: file, Name: format.DataName(1)}
		sg.Size.Store(format.SegmentHeaderSize + int64(len(frame)))
		bounded(t, len(payload), func() {
			fr := segment.NewFrames(sg)
			entries, err := fr.Next()
			bad := (*segment.BadFrame)(nil)
			if err != nil && err != io.EOF && !errors.As(err, &bad) {
				t.Errorf("%v", err)
			}
			for _, e := range entries {
				if int64(e.At) < format.SegmentHeaderSize || int64(e.At)+int64(e.Size) > sg.Size.Load() {
					t.Errorf("an entry at %d of %d bytes in a segment of %d", e.At, e.Size, sg.Size.Load())
				}
			}
		})
	})
}

// FuzzHintEntries reads the entries of a block: each is refused, or encodes to the bytes it was
// read from.
func FuzzHintEntries(f *testing.F) {
	f.Add([]byte("\x11\x01\x28\x00\x01\x4a\x00k"))
	f.Add([]byte("\x11\x01\x28\x00\x03\x4a\x00key\x91\x01\x03\x02z"))
	f.Add(append(append([]byte("\x11\x01\x28\x00\x64\x4a\x00"), make([]byte, 100)...), "\x91\x01\x00\x64"...)) // too much in common
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, len(b), func() {
			var context segment.HintContext
			for len(b) > 0 {
				writing, reading := context, context
				writing.Key, reading.Key = slices.Clone(context.Key), slices.Clone(context.Key)
				e, n, err := context.Next(b)
				if err != nil {
					return
				}
				if n <= 0 || n > len(b) || len(e.Key)+len(e.Elem)+len(e.Inline) > n+segment.HintShared {
					t.Fatalf("an entry of %d bytes of %d: %+v", n, len(b), e)
				}
				again, m, err := reading.Next(writing.Append(nil, &e))
				if err != nil || m > n || !reflect.DeepEqual(again, e) {
					t.Fatalf("%+v became %+v", e, again)
				}
				b = b[n:]
			}
		})
	})
}

// FuzzManifest reads a manifest of arbitrary edits: it is refused, or says the
// same when it is written anew.
func FuzzManifest(f *testing.F) {
	f.Add([]byte{manifest.EditAdd, 4, 1, 0, 0, 0, manifest.EditNextID, 4, 9, 0, 0, 0})
	f.Add([]byte{manifest.EditAdd, 4, 1, 0, 0, 0, manifest.EditClose, 20, 1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{manifest.EditSwap, 8, 0, 0, 0, 0, 0, 0, 0, 0, manifest.EditCollision, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(append([]byte{manifest.EditClose, 20, 0, 0, 0, 0, 48, 48, 48, 48}, make([]byte, 12)...)) // no segment, and a length
	f.Add([]byte{manifest.EditSwap, 8, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &manifest.Manifest{Store: [16]byte{1}}
		file := m.EncodeHeader()
		for len(b) >= 2 {
			n := min(int(b[1]), len(b)-2)
			file = m.AppendEdit(file, 0, b[0], b[2:2+n])
			b = b[2+n:]
		}
		mem := vfs.NewMem()
		if err := fuzzFile(t, mem, manifest.FileName, file).Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		bounded(t, len(file), func() { m, err = manifest.Read(mem, "d", vfs.ReadWrite, nil) })
		if err != nil {
			return
		}
		before := *m
		if err := m.Rewrite(); err != nil {
			t.Fatal(err)
		}
		again, err := manifest.Read(mem, "d", vfs.ReadWrite, nil)
		if err != nil || len(again.Rest) > 0 {
			t.Fatalf("written anew: %v, %+v", err, again)
		}
		if !reflect.DeepEqual(again.Sealed, before.Sealed) || !reflect.DeepEqual(again.Tail, before.Tail) || again.NextID != before.NextID ||
			!reflect.DeepEqual(again.Collided, before.Collided) || again.ClosedID != before.ClosedID || again.ClosedLen != before.ClosedLen ||
			again.Booted != before.Booted || again.Boot != before.Boot {
			t.Fatalf("%+v became %+v", before, *again)
		}
	})
}
