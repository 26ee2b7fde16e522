package format_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// TestEachRecordAllocatesNothing: a walk through a frame makes no object a record, of which hints and replay would make one
// for every record of the log.
func TestEachRecordAllocatesNothing(t *testing.T) {
	const records, offset = 100, 64
	frame := make([]byte, format.FrameHeaderSize)
	var at []int
	for range records {
		at = append(at, len(frame))
		frame = format.AppendRecordHeader(frame, format.KindString, keydir.String, -1, 0, len("key"), 0, len("value"))
		frame = format.AppendName(frame, format.KindString, keydir.String, "key", "")
		frame = append(frame, "value"...)
	}
	seed := format.NewChecksumSeed([16]byte{1}, 1)
	format.FinishFrame(frame, format.FrameHeader{Many: true, Seq: 7}, seed, offset, at, nil)
	h, ok := format.ParseFrameHeader(frame, seed, offset, int64(len(frame)))
	if !ok {
		t.Fatal("the header does not verify")
	}
	count := 0
	see := func(_ uint32, seq uint64, rec format.Record) error {
		if string(rec.Key) == "key" && string(rec.Value) == "value" && seq == 7+uint64(count) {
			count++
		}
		return nil
	}
	allocations := testing.AllocsPerRun(10, func() {
		count = 0
		if _, ok, err := format.EachRecord(frame, &h, seed, offset, see); !ok || err != nil || count != records {
			t.Errorf("%d of %d records are right: %t, %v", count, records, ok, err)
		}
	})
	if allocations != 0 {
		t.Errorf("%g allocations for %d records", allocations, records)
	}
}
