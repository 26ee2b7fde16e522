package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// recordReader reads records of one segment for a merge.
type recordReader struct {
	sg    *segment.Segment
	seed  keydir.Seed
	read  func(bytes int) error // is told what has been read; its error ends it all
	buf   []byte                // a piece of the segment
	bufAt int64
	ahead int64 // how much to read at once
	list  []format.Record
}

const (
	readAheadMin = 16 << 10
	readAheadMax = 512 << 10
)

func newRecordReader(s *Store, sg *segment.Segment, read func(bytes int) error) recordReader {
	return recordReader{sg: sg, seed: s.man.Seed, read: read, ahead: readAheadMin}
}

// bytes returns n bytes of the segment. Calls go forward mostly: it reads ahead, the more the closer together the calls are.
func (r *recordReader) bytes(at int64, n int) ([]byte, error) {
	if from := at - r.bufAt; from >= 0 && from+int64(n) <= int64(len(r.buf)) {
		return r.buf[from:][:n], nil
	}
	if gap := at - (r.bufAt + int64(len(r.buf))); gap < r.ahead {
		r.ahead = min(2*r.ahead, readAheadMax)
	} else {
		r.ahead /= 2
	}
	r.ahead = max(r.ahead, readAheadMin)
	want := int(min(max(r.ahead, int64(n)), r.sg.Size.Load()-at))
	if want < n {
		return nil, &CorruptError{File: r.sg.Name, Offset: at, Reason: "record reaches past the end"}
	}
	if cap(r.buf) < want {
		r.buf = make([]byte, max(want, readAheadMin))
	}
	r.buf, r.bufAt = r.buf[:want], at
	if got, err := r.sg.File.ReadAt(r.buf, at); err != nil {
		r.buf = r.buf[:0]
		if errors.Is(err, io.EOF) {
			return nil, &CorruptError{File: r.sg.Name, Offset: at + int64(got), Reason: "file is shorter than it was"}
		}
		return nil, fmt.Errorf("%s: reading at %d: %w", r.sg.Name, at, err)
	}
	return r.buf[:n], r.read(want)
}

// verified returns the record of an entry, and those that follow it. Each has
// been checked, and the first is the one that the entry is about.
func (r *recordReader) verified(sw *stripeBatch, x *batchEntry) ([]byte, []format.Record, error) {
	raw, err := r.bytes(int64(x.at), int(x.size))
	if err != nil {
		return nil, nil, err
	}
	r.list = r.list[:0]
	for rest, at := raw, x.at; len(rest) > 0; {
		rec, err := format.ParseRecord(rest)
		if err != nil || binary.LittleEndian.Uint32(rest) != r.sg.Seed.Sum(at, rest[format.RecordCRCSize:rec.Size]) {
			return nil, nil, &CorruptError{File: r.sg.Name, Offset: int64(at), Reason: "record checksum"}
		}
		if len(r.list) > 0 != rec.Kind.Follows() {
			return nil, nil, r.another(at)
		}
		r.list = append(r.list, rec)
		at += uint32(rec.Size)
		rest = rest[rec.Size:]
	}
	rec, id := &r.list[0], sw.identity(x)
	same := rec.Kind == id.Kind && rec.Type == id.Type && rec.Namespace == id.Namespace
	if same && x.keyLen > 0 {
		same = string(rec.Key) == string(id.Key) && string(rec.Elem) == string(id.Elem)
	}
	if !same || r.seed.Hash(format.Text(rec.Key)) != x.hash {
		return nil, nil, r.another(x.at)
	}
	return raw, r.list, nil
}

func (r *recordReader) another(at uint32) error {
	return &CorruptError{File: r.sg.Name, Offset: int64(at), Reason: "not the record that the hint says"}
}
