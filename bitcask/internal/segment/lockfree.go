package segment

import (
	"encoding/binary"
	"runtime/debug"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// TryGet appends to dst, if keep is set, the value of the string record at loc. It reports false
// unless the record is mapped, verifies and is that of the key. Mapping and file may be closed at
// any time: the copy counts only if the segment is listed afterwards.
func (sg *Segment) TryGet(dst []byte, loc keydir.Loc, ns uint32, key string, keep bool) (out []byte, ok bool) {
	at := int(loc.Offset())
	end := min(at+int(loc.Size()), int(sg.Size.Load()))
	if at > end || end > len(sg.Data) {
		return dst, false
	}
	if !sg.resident(at, end) {
		// Into what room dst has, or a buffer of its own.
		b := slices.Grow(dst[len(dst):], end-at)[:end-at]
		if _, err := sg.File.ReadAt(b, int64(at)); err != nil {
			return dst, false
		}
		return sg.valueAt(dst, at, b, ns, key, keep)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			_ = sg.fault(r, loc) // panics again unless it is a page fault
			out, ok = dst, false
		}
	}()
	return sg.valueAt(dst, at, sg.Data[at:end], ns, key, keep)
}

// valueAt is tryGet on the bytes of the segment from at on. They may be in dst, after its length.
func (sg *Segment) valueAt(dst []byte, at int, b []byte, ns uint32, key string, keep bool) ([]byte, bool) {
	value, size, ok := stringOf(b, ns, key)
	if !ok || !sg.Seed.Verifies(b[:size], uint32(at)) {
		return dst, false
	}
	if keep {
		dst = append(dst, value...)
	}
	return dst, true
}

// stringOf returns the value and the size of the record at the start of b if it is that of a string
// key. It does not check the crc, and of the header only what distinguishes one string's record
// from another's. It is ParseRecord for a single question.
func stringOf(b []byte, ns uint32, key string) (value []byte, size int, ok bool) {
	const prefix = "string:"
	if len(b) < format.RecordCRCSize+1+3+len(prefix)+len(key) {
		return nil, 0, false
	}
	tag, at := b[format.RecordCRCSize], format.RecordCRCSize+1
	if tag&format.TagSequence != 0 {
		_, at = uvarint(b, at)
	}
	if tag&^format.TagSequence != byte(format.KindString)|byte(keydir.String)<<4 {
		return nil, 0, false
	}
	space, at := uvarint(b, at)
	keyLen, at := uvarint(b, at)
	valueLen, at := uvarint(b, at)
	start := at + len(prefix) + len(key)
	if space != uint64(ns) || keyLen != uint64(len(key)) || start > len(b) || valueLen > uint64(len(b)-start) {
		return nil, 0, false
	}
	if string(b[at:at+len(prefix)]) != prefix || string(b[at+len(prefix):start]) != key {
		return nil, 0, false
	}
	size = start + int(valueLen)
	return b[start:size], size, true
}

// uvarint reads a uvarint at an offset and returns the offset after it, which exceeds the length of
// b if there is none.
func uvarint(b []byte, at int) (v uint64, next int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	return longUvarint(b, at)
}

func longUvarint(b []byte, at int) (v uint64, next int) {
	if at < len(b) {
		if v, n := binary.Uvarint(b[at:]); n > 0 {
			return v, at + n
		}
	}
	return 0, len(b) + 1
}
