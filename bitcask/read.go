package bitcask

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Reading one record: the location comes from the keydir, the bytes from the
// segment's mapping, and nothing is believed before the checksum and the name
// agree. Callers hold the stripe lock of the key, which also keeps the segment
// from being removed under them: merge passes through every stripe lock
// between moving the last location and unlinking a file. Reading without a lock
// is in read_lockfree.go.

// query says which record a location is expected to lead to.
type query struct {
	ns      uint32
	kind    Kind
	typ     keydir.Type
	key     string
	elem    string
	anyElem bool // the caller knows the key only
}

func (q *query) matches(rec *format.Record) bool {
	return rec.Kind == q.kind && rec.Type == q.typ && rec.Namespace == q.ns &&
		string(rec.Key) == q.key && (q.anyElem || string(rec.Elem) == q.elem)
}

// get appends the value of the record at loc to dst if it is the one that q
// describes. With peek it returns the value where it lies instead, valid as
// long as the stripe lock is held, to be read by appendFrom.
func (sg *segment) get(dst []byte, loc keydir.Loc, q *query, peek bool) (out []byte, n int, match bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			out, n, match, err = dst, 0, false, sg.fault(r, loc)
		}
	}()
	rec, err := sg.verified(loc)
	if err != nil {
		return dst, 0, false, err
	}
	if !q.matches(&rec) {
		return dst, 0, false, nil
	}
	if peek {
		return rec.Value, len(rec.Value), true, nil
	}
	return append(dst, rec.Value...), len(rec.Value), true, nil
}

// appendFrom appends bytes that get gave out with peek.
func (sg *segment) appendFrom(dst, value []byte, loc keydir.Loc) (out []byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			out, err = dst, sg.fault(r, loc)
		}
	}()
	return append(dst, value...), nil
}

// identify hands the record at loc to fn; it is valid only within fn.
func (sg *segment) identify(loc keydir.Loc, fn func(rec *format.Record)) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = sg.fault(r, loc)
		}
	}()
	rec, err := sg.verified(loc)
	if err == nil {
		fn(&rec)
	}
	return err
}

// fault turns a page fault in a mapping (a file cut under us, a disk that
// fails while paging in) into an error. Any other panic goes on.
func (sg *segment) fault(r any, loc keydir.Loc) error {
	if _, ok := r.(interface{ Addr() uintptr }); !ok {
		panic(r)
	}
	return fmt.Errorf("%s: reading at %d: page fault: %w", sg.name, loc.Offset(), io.ErrUnexpectedEOF)
}

// verified parses the record at loc and checks it.
func (sg *segment) verified(loc keydir.Loc) (format.Record, error) {
	at := int64(loc.Offset())
	n := min(int64(loc.Size()), sg.size.Load()-at)
	b, err := sg.bytesAt(nil, at, int(max(n, 0)))
	if err != nil {
		return format.Record{}, err
	}
	rec, err := format.ParseRecord(b)
	if err != nil || binary.LittleEndian.Uint32(b) != sg.seal.Sum(loc.Offset(), b[format.RecordCRCSize:rec.Size]) {
		return format.Record{}, &CorruptError{File: sg.name, Offset: at, Reason: "record checksum"}
	}
	return rec, nil
}
