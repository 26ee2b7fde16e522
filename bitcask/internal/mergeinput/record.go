package mergeinput

import (
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// RecordReader reads records of one segment for a merge.
type RecordReader struct {
	Sg    *segment.Segment
	seed  keydir.Seed
	read  func(bytes int) error // is charged with the bytes read; its error ends the merge
	Buf   []byte                // a piece of the segment
	bufAt int64
	ahead int64 // how much to read at once
	list  []format.Record
}

const (
	readAheadMin = 16 << 10
	readAheadMax = 512 << 10
)

func NewRecordReader(seed keydir.Seed, sg *segment.Segment, read func(bytes int) error) RecordReader {
	return RecordReader{Sg: sg, seed: seed, read: read, ahead: readAheadMin}
}

// bytes returns n bytes of the segment. Calls go forward mostly: it reads ahead, the more the closer together the calls
// are.
func (r *RecordReader) bytes(at int64, n int) ([]byte, error) {
	if from := at - r.bufAt; from >= 0 && from+int64(n) <= int64(len(r.Buf)) {
		return r.Buf[from:][:n], nil
	}
	if gap := at - (r.bufAt + int64(len(r.Buf))); gap < r.ahead {
		r.ahead = min(2*r.ahead, readAheadMax)
	} else {
		r.ahead /= 2
	}
	r.ahead = max(r.ahead, readAheadMin)
	want := int(min(max(r.ahead, int64(n)), r.Sg.Size.Load()-at))
	if want < n {
		return nil, &failure.CorruptError{File: r.Sg.Name, Offset: at, Reason: "record reaches past the end"}
	}
	if cap(r.Buf) < want {
		r.Buf = make([]byte, max(want, readAheadMin))
	}
	r.Buf, r.bufAt = r.Buf[:want], at
	if got, err := r.Sg.File.ReadAt(r.Buf, at); err != nil {
		r.Buf = r.Buf[:0]
		if errors.Is(err, io.EOF) {
			return nil, &failure.CorruptError{File: r.Sg.Name, Offset: at + int64(got), Reason: "file is shorter than it was"}
		}
		return nil, fmt.Errorf("%s: reading at %d: %w", r.Sg.Name, at, err)
	}
	return r.Buf[:n], r.read(want)
}

// Verified returns the record of an entry, and those that follow it. Each has
// been checked, and the first is the one that the entry is about.
func (r *RecordReader) Verified(sw *Batch, x *BatchEntry) ([]byte, []format.Record, error) {
	raw, err := r.bytes(int64(x.At), int(x.Size))
	if err != nil {
		return nil, nil, err
	}
	r.list = r.list[:0]
	for rest, at := raw, x.At; len(rest) > 0; {
		rec, err := format.ParseRecord(rest)
		if err != nil || !r.Sg.Seed.Verifies(rest[:rec.Size], at) {
			return nil, nil, &failure.CorruptError{File: r.Sg.Name, Offset: int64(at), Reason: "record checksum"}
		}
		if len(r.list) > 0 != rec.Kind.Follows() {
			return nil, nil, r.another(at)
		}
		r.list = append(r.list, rec)
		at += uint32(rec.Size)
		rest = rest[rec.Size:]
	}
	rec, id := &r.list[0], sw.Identity(x)
	same := rec.Kind == id.Kind && rec.Type == id.Type && rec.Namespace == id.Namespace
	if same && x.keyLen > 0 {
		same = string(rec.Key) == string(id.Key) && string(rec.Elem) == string(id.Elem)
	}
	if !same || r.seed.Hash(format.Text(rec.Key)) != x.Hash {
		return nil, nil, r.another(x.At)
	}
	return raw, r.list, nil
}

func (r *RecordReader) another(at uint32) error {
	return &failure.CorruptError{File: r.Sg.Name, Offset: int64(at), Reason: "not the record that the hint says"}
}
