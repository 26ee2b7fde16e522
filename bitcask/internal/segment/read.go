package segment

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Reading one record: the location comes from the keydir, the bytes from the
// segment's mapping, and nothing is believed before the checksum and the name
// agree. Callers hold the stripe lock of the key, which also keeps the segment
// from being removed under them: merge passes through every stripe lock
// between moving the last location and unlinking a file. Reading without a lock
// is in bitcask/read_lockfree.go.

// Query says which record a location is expected to lead to.
type Query struct {
	Namespace uint32
	Kind      format.Kind
	Type      keydir.Type
	Key       string
	Elem      string
	anyElem   bool // the caller knows the key only
}

func (q *Query) Matches(rec *format.Record) bool {
	return rec.Kind == q.Kind && rec.Type == q.Type && rec.Namespace == q.Namespace &&
		string(rec.Key) == q.Key && (q.anyElem || string(rec.Elem) == q.Elem)
}

// Get appends the value of the record at loc to dst if it is the one that q describes (I4). With
// peek it returns the value in place instead, valid as long as the stripe lock is held, to be read
// by AppendFrom.
func (sg *Segment) Get(dst []byte, loc keydir.Loc, q *Query, peek bool) (out []byte, n int, match bool, err error) {
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
	if !q.Matches(&rec) {
		return dst, 0, false, nil
	}
	if peek {
		return rec.Value, len(rec.Value), true, nil
	}
	return append(dst, rec.Value...), len(rec.Value), true, nil
}

// AppendFrom appends bytes that get gave out with peek.
func (sg *Segment) AppendFrom(dst, value []byte, loc keydir.Loc) (out []byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			out, err = dst, sg.fault(r, loc)
		}
	}()
	return append(dst, value...), nil
}

// Identify hands the record at loc to fn; it is valid only within fn.
func (sg *Segment) Identify(loc keydir.Loc, fn func(rec *format.Record)) (err error) {
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

// fault turns a page fault in a mapping (a file truncated under us, a disk that fails while paging
// in) into an error. Any other panic continues.
func (sg *Segment) fault(r any, loc keydir.Loc) error {
	if _, ok := r.(interface{ Addr() uintptr }); !ok {
		panic(r)
	}
	return fmt.Errorf("%s: reading at %d: page fault: %w", sg.Name, loc.Offset(), io.ErrUnexpectedEOF)
}

// verified parses the record at loc and checks it.
func (sg *Segment) verified(loc keydir.Loc) (format.Record, error) {
	at := int64(loc.Offset())
	n := min(int64(loc.Size()), sg.Size.Load()-at)
	b, err := sg.bytesAt(nil, at, int(max(n, 0)))
	if err != nil {
		return format.Record{}, err
	}
	rec, err := format.ParseRecord(b)
	if err != nil || !sg.Seed.Verifies(b[:rec.Size], loc.Offset()) {
		return format.Record{}, &failure.CorruptError{File: sg.Name, Offset: at, Reason: "record checksum"}
	}
	return rec, nil
}

// IsString reports whether the record at loc has the name of a string key, without verifying it.
func (sg *Segment) IsString(loc keydir.Loc, ns uint32, key string) (same bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			same, err = false, sg.fault(r, loc)
		}
	}()
	at := int64(loc.Offset())
	n := min(int64(loc.Size()), sg.Size.Load()-at, int64(format.RecordHeaderMax+format.NameLen(format.KindString, keydir.String, len(key), 0)))
	b, err := sg.bytesAt(nil, at, int(max(n, 0)))
	if err != nil {
		return false, err
	}
	rec, err := format.ParseHeader(b)
	if err != nil || rec.Kind != format.KindString || rec.Namespace != ns || rec.KeyLen != len(key) || rec.Size+rec.NameLen > len(b) {
		return false, nil // another record, or a damaged one: find says which
	}
	name := b[rec.Size : rec.Size+rec.NameLen]
	prefix := format.TypePrefix[keydir.String]
	return string(name[:len(prefix)]) == prefix && string(name[len(prefix):]) == key, nil
}
