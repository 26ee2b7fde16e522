package bitcask

import (
	"encoding/binary"
	"runtime/debug"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Reading a string without a lock. Nothing here waits for anyone: not for a writer of
// the same stripe, a rotation or a merge. What it cannot prove it leaves to the
// locked path, which is the authority for everything.
//
// A value is right if all of this holds:
//
//   - The keydir had one slot for the hash, of a string, and no removal that may yet
//     be undone (keydir.TryGet). A put that may yet be undone has a pending location,
//     which leads to no segment.
//   - The record there verifies and has the name of the key.
//   - The segment was still listed after the value had been copied. Whoever removes a
//     segment unlists it first and unmaps it then, so the copy is of the segment and
//     not of what the kernel put in its place.
//   - The namespace still has the space that was looked at.
//
// So at some moment of the call the committed value was this one, or there was none.

// tryGet appends the value of a string to dst, if keep is set, and returns what the lookup found.
func (s *Store) tryGet(dst []byte, ns int, h uint64, key string, keep bool) ([]byte, keydir.Lookup) {
	spaces := s.spaces.now.Load()
	if ns < 0 || ns >= len(spaces.names) || spaces.names[ns] == nil {
		return dst, keydir.LookupRetry
	}
	sp := spaces.names[ns]
	loc, lookup := sp.dir.TryGet(h, &s.stripes[keydir.StripeOf(h)].removed)
	switch lookup {
	case keydir.LookupRetry:
		return dst, keydir.LookupRetry
	case keydir.LookupHit:
		sg := s.segments.Load().find(loc.Segment())
		if sg == nil {
			return dst, keydir.LookupRetry
		}
		out, ok := sg.tryGet(dst, loc, sp.id, key, keep)
		if !ok || s.segments.Load().find(loc.Segment()) != sg {
			return dst, keydir.LookupRetry
		}
		dst = out
	}
	if s.spaces.now.Load() != spaces || s.closed.Load() {
		return dst, keydir.LookupRetry
	}
	return dst, lookup
}

// tryGet appends to dst, if keep is set, the value of the string record at loc. It
// reports false unless the record is mapped, verifies and is that of the key. Mapping and file
// may be closed at any time: what was copied counts only if the segment is listed
// afterwards.
func (sg *segment) tryGet(dst []byte, loc keydir.Loc, ns uint32, key string, keep bool) (out []byte, ok bool) {
	at := int(loc.Offset())
	end := min(at+int(loc.Size()), int(sg.size.Load()))
	if at > end || end > len(sg.data) {
		return dst, false
	}
	if !sg.resident(at, end) {
		// Into what room dst has, or a buffer of its own.
		b := slices.Grow(dst[len(dst):], end-at)[:end-at]
		if _, err := sg.file.ReadAt(b, int64(at)); err != nil {
			return dst, false
		}
		return sg.valueAt(dst, at, b, ns, key, keep)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			_ = sg.fault(r, loc) // goes on with anything but a page fault
			out, ok = dst, false
		}
	}()
	return sg.valueAt(dst, at, sg.data[at:end], ns, key, keep)
}

// valueAt is tryGet of the bytes of the segment from at on. They may lie in dst, behind
// its length.
func (sg *segment) valueAt(dst []byte, at int, b []byte, ns uint32, key string, keep bool) ([]byte, bool) {
	value, size, ok := stringOf(b, ns, key)
	if !ok || binary.LittleEndian.Uint32(b) != sg.seal.Sum(uint32(at), b[format.RecordCRCSize:size]) {
		return dst, false
	}
	if keep {
		dst = append(dst, value...)
	}
	return dst, true
}

// stringOf returns the value and the size of the record at the start of b if it is
// that of a string key. It does not check the crc, and of the header only what tells
// one string's record from another's: ParseRecord for whoever asks one question only.
func stringOf(b []byte, ns uint32, key string) (value []byte, size int, ok bool) {
	const prefix = "string:"
	if len(b) < format.RecordCRCSize+1+3+len(prefix)+len(key) {
		return nil, 0, false
	}
	tag, at := b[format.RecordCRCSize], format.RecordCRCSize+1
	if tag&format.TagSequence != 0 {
		_, at = uvarint(b, at)
	}
	if tag&^format.TagSequence != byte(KindString)|byte(keydir.String)<<4 {
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

// uvarint reads a uvarint at an offset and returns the offset behind it, which is
// behind the end of b if there is none.
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

// TryGet appends the value of a string of any namespace to dst, without a lock and
// without waiting for anyone. After LookupRetry, only a transaction can tell what the key
// holds; so it is with collections and with whatever has a deadline.
func (s *Store) TryGet(dst []byte, ns int, key string) ([]byte, keydir.Lookup) {
	if !lockFree || len(key) > MaxKey {
		return dst, keydir.LookupRetry
	}
	return s.tryGet(dst, ns, s.man.Seed.Hash(key), key, true)
}

// TryHas is TryGet without the value.
func (s *Store) TryHas(ns int, key string) keydir.Lookup {
	if !lockFree || len(key) > MaxKey {
		return keydir.LookupRetry
	}
	_, lookup := s.tryGet(nil, ns, s.man.Seed.Hash(key), key, false)
	return lookup
}
