package bitcask

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Remains of another store, of another place than their name says, and with numbers that no log has given, are named as
// lost:
// nothing of them is copied, and all of the log is.
func TestRemainsThatAreNoneOfOurs(t *testing.T) {
	frameOf := func(h format.RemainsHeader, seq uint64) []byte {
		frame := format.AppendRecord(make([]byte, format.FrameSumAt), KindString, keydir.String, -1, 0, "of the remains", "", []byte("text"))
		format.FinishFrame(frame, format.FrameHeader{Seq: seq}, format.NewChecksumSeed(h.Store, h.ID), uint32(h.Offset), []int{format.FrameSumAt}, nil)
		return frame
	}
	for _, x := range []struct {
		what   string
		change func(h *format.RemainsHeader, seq *uint64)
	}{
		{"another store", func(h *format.RemainsHeader, _ *uint64) { h.Store[3]++ }},
		{"another segment", func(h *format.RemainsHeader, _ *uint64) { h.ID++ }},
		{"another offset", func(h *format.RemainsHeader, _ *uint64) { h.Offset++ }},
		{"an offset near 2^63", func(h *format.RemainsHeader, _ *uint64) { h.Offset = math.MaxInt64 - 8 }},
		{"a negative offset", func(h *format.RemainsHeader, _ *uint64) { h.Offset = math.MinInt64 }},
		{"a length of 2^63-1", func(h *format.RemainsHeader, _ *uint64) { h.Length = math.MaxInt64 }},
		{"next sequence 0", func(h *format.RemainsHeader, _ *uint64) { h.NextSeq = 0 }},
		{"next sequence 2^64-1", func(h *format.RemainsHeader, _ *uint64) { h.NextSeq = math.MaxUint64 }},
		{"a sequence near 2^64", func(_ *format.RemainsHeader, seq *uint64) { *seq = format.MaxSequence }},
		{"a sequence of 2^64-1", func(_ *format.RemainsHeader, seq *uint64) { *seq = math.MaxUint64 }},
		{"a sequence of 2^60", func(_ *format.RemainsHeader, seq *uint64) { *seq = 1 << 60 }},
		{"", func(*format.RemainsHeader, *uint64) {}},
	} {
		t.Run(x.what, func(t *testing.T) {
			mem := vfs.NewMem()
			s, err := Open("d", &Options{seam: seam.Options{FS: mem, NoIndex: true}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				if err := s.Put(fmt.Sprint("key", i), []byte("of the log")); err != nil {
					t.Fatal(err)
				}
			}
			h := format.RemainsHeader{ID: 1, Store: s.man.Store, Offset: 150, NextSeq: 5}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			seq := uint64(7)
			name := format.RemainsName(h.ID, h.Offset, 1)
			x.change(&h, &seq)
			body := frameOf(h, seq)
			if h.Length == 0 {
				h.Length = int64(len(body))
			}
			if err := fuzzFile(t, mem, name, append(h.Encode(), body...)).Close(); err != nil {
				t.Fatal(err)
			}
			result, err := salvage(context.Background(), "d", "out", &Options{seam: seam.Options{FS: mem}})
			if err != nil {
				t.Fatal(err)
			}
			ours := x.what == ""
			if (len(result.Lost) == 0) != ours || result.Returned > 0 != ours {
				t.Errorf("%+v", result)
			}
			s, err = Open("out", &Options{seam: seam.Options{FS: mem}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				if got, err := s.Get(fmt.Sprint("key", i)); string(got) != "of the log" {
					t.Errorf("key%d is %q, %v", i, got, err)
				}
			}
			if got, err := s.Get("of the remains"); (err == nil) != ours {
				t.Errorf("of the remains there is %q, %v", got, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
