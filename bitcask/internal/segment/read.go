package segment

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Reading one record: the location comes from the keydir, the bytes from the segment's mapping, and nothing is believed
// before the checksum and the name agree. Callers hold the stripe lock of the key, which also keeps the segment from
// being removed under them: merge passes through every stripe lock between moving the last location and unlinking a
// file. Reading without a lock is in lockfree.go, and in bitcask/read_lockfree.go.

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
	value, match, err := sg.value(loc, q)
	if err != nil || !match {
		return dst, 0, false, err
	}
	if peek {
		return value, len(value), true, nil
	}
	return append(dst, value...), len(value), true, nil
}

// AppendElements appends the values of elements of one key to dst, each the record at its location that q describes,
// but for its element, and their ends to ends. It stops at the first that is not in the segment, and when dst has
// reached limit. All of them cost one guard against page faults.
func (sg *Segment) AppendElements(dst []byte, ends []int, q *Query, elems []string, locs []keydir.Loc, limit int) (out []byte, outEnds []int, err error) {
	out, outEnds = dst, ends
	i := 0
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = sg.fault(r, locs[i])
		}
	}()
	for ; i < len(locs) && len(out) < limit && !locs[i].Pending() && locs[i].Segment() == sg.ID; i++ {
		q.Elem = elems[i]
		value, match, err := sg.value(locs[i], q)
		if err == nil && !match {
			err = sg.NotNamed(locs[i])
		}
		if err != nil {
			return out, outEnds, err
		}
		out = append(out, value...)
		outEnds = append(outEnds, len(out))
	}
	return out, outEnds, nil
}

// NotNamed is the error for a location that leads to an intact record of another name.
func (sg *Segment) NotNamed(loc keydir.Loc) error {
	return sg.excuse(loc, 0, &failure.CorruptError{File: sg.Name, Offset: int64(loc.Offset()), Reason: "the record is not the one that the keydir expects"})
}

// excuse is the error of a read: what its writer has rolled back is no damage. unsettled is sg.Unsettled as it was
// before the read, after which the writer may have written the same bytes again, and the follower have found that they
// stand.
func (sg *Segment) excuse(loc keydir.Loc, unsettled int64, err error) error {
	covers := func(from int64) bool { return from != 0 && int64(loc.Offset()) >= from }
	if !covers(unsettled) && !covers(sg.Unsettled.Load()) || !failure.IsDamage(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("%s at offset %d: %w", sg.Name, loc.Offset(), failure.ErrRolledBack)
}

// GetPart is Get that appends the bytes of the value from one position to another, as far as there are any.
func (sg *Segment) GetPart(dst []byte, loc keydir.Loc, q *Query, from, to int) (out []byte, match bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			out, match, err = dst, false, sg.fault(r, loc)
		}
	}()
	value, match, err := sg.value(loc, q)
	if err != nil || !match {
		return dst, false, err
	}
	n := len(value)
	return append(dst, value[min(from, n):min(to, n)]...), true, nil
}

// AppendFrom appends bytes that Get gave out with peek.
func (sg *Segment) AppendFrom(dst, value []byte, loc keydir.Loc) (out []byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			out, err = dst, sg.fault(r, loc)
		}
	}()
	return append(dst, value...), nil
}

// Identify hands the record at loc to fn, by value, so that it is not allocated; its bytes are valid only within fn.
func (sg *Segment) Identify(loc keydir.Loc, fn func(rec format.Record)) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = sg.fault(r, loc)
		}
	}()
	rec, err := sg.verified(loc)
	if err == nil {
		fn(rec)
	}
	return err
}

// IdentifySome is Identify of n records, with one guard against page faults. It stops at the first that cannot be read, and returns how many
// it has read.
func (sg *Segment) IdentifySome(n int, loc func(i int) keydir.Loc, fn func(rec format.Record)) (read int) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			_ = sg.fault(r, loc(read)) // panics again unless it is a page fault
		}
	}()
	for ; read < n; read++ {
		rec, err := sg.verified(loc(read))
		if err != nil {
			break
		}
		fn(rec)
	}
	return read
}

// fault turns a page fault in a mapping (a file truncated under us, a disk that fails while paging
// in) into an error. Any other panic continues.
func (sg *Segment) fault(r any, loc keydir.Loc) error {
	if _, ok := r.(interface{ Addr() uintptr }); !ok {
		panic(r)
	}
	return sg.excuse(loc, 0, fmt.Errorf("%s: reading at %d: page fault: %w", sg.Name, loc.Offset(), io.ErrUnexpectedEOF))
}

// value returns the value of the record at loc, in place, once the record verifies, and whether it is the one that q
// describes.
func (sg *Segment) value(loc keydir.Loc, q *Query) (value []byte, match bool, err error) {
	unsettled := sg.Unsettled.Load()
	b, err := sg.recordBytes(loc, q.OnDisk)
	if err != nil {
		return nil, false, sg.excuse(loc, unsettled, err)
	}
	if value, size, ok := q.valueIn(b); ok && sg.Seed.Verifies(b[:size], loc.Offset()) {
		return value, true, nil
	}
	rec, err := sg.verifiedIn(b, loc, unsettled)
	if err != nil || !q.Matches(&rec) {
		return nil, false, err
	}
	return rec.Value, true, nil
}

// recordBytes returns what the segment has from loc on, as much as the record at loc may be.
func (sg *Segment) recordBytes(loc keydir.Loc, onDisk error) ([]byte, error) {
	at := int64(loc.Offset())
	n := min(int64(loc.Size()), sg.Size.Load()-at)
	return sg.bytesAt(nil, at, int(max(n, 0)), onDisk)
}

// verified parses the record at loc and checks it.
func (sg *Segment) verified(loc keydir.Loc) (format.Record, error) {
	unsettled := sg.Unsettled.Load()
	b, err := sg.recordBytes(loc, nil)
	if err != nil {
		return format.Record{}, sg.excuse(loc, unsettled, err)
	}
	return sg.verifiedIn(b, loc, unsettled)
}

// verifiedIn is verified for the bytes from loc on.
func (sg *Segment) verifiedIn(b []byte, loc keydir.Loc, unsettled int64) (format.Record, error) {
	rec, err := format.ParseRecord(b)
	if err != nil || !sg.Seed.Verifies(b[:rec.Size], loc.Offset()) {
		return format.Record{}, sg.excuse(loc, unsettled, &failure.CorruptError{File: sg.Name, Offset: int64(loc.Offset()), Reason: "record checksum"})
	}
	return rec, nil
}

// Touch reads a byte of the record at loc if that is in memory, so that who reads the record soon need not wait for it.
// The caller is ready for a page fault. The result means nothing: it keeps the load from being left out.
func (sg *Segment) Touch(loc keydir.Loc) int {
	at := int(loc.Offset())
	if int64(at) >= sg.Size.Load() || !sg.resident(at, at+1, false) {
		return 0
	}
	return int(sg.Data[at])
}

// IsString reports whether the record at loc has the name of a string key, without verifying it. onDisk is that of a Query.
func (sg *Segment) IsString(loc keydir.Loc, ns uint32, key string, onDisk error) (same bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			same, err = false, sg.fault(r, loc)
		}
	}()
	at := int64(loc.Offset())
	q := Query{Kind: format.KindString, Type: keydir.String}
	n := min(int64(loc.Size()), sg.Size.Load()-at, int64(format.RecordHeaderMax+format.NameLen(q.Kind, q.Type, len(key), 0)))
	b, err := sg.bytesAt(nil, at, int(max(n, 0)), onDisk)
	if err != nil {
		return false, err
	}
	rec, err := format.ParseHeader(b)
	if err != nil || rec.Kind != q.Kind || rec.Namespace != ns || rec.KeyLen != len(key) || rec.Size+rec.NameLen > len(b) {
		return false, nil // another record, or a damaged one: find says which
	}
	name := b[rec.Size : rec.Size+rec.NameLen]
	prefix := format.TypePrefix[q.Type]
	return string(name[:len(prefix)]) == prefix && string(name[len(prefix):]) == key, nil
}
