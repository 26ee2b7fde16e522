package segment

import (
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
	if !sg.resident(at, end, false) {
		// Into what room dst has, or a buffer of its own.
		b := slices.Grow(dst[len(dst):], end-at)[:end-at]
		if _, err := sg.readRecord(b, int64(at)); err != nil {
			return dst, false
		}
		sg.hasRead(at, end)
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

// valueAt is TryGet on the bytes of the segment from at on. They may be in dst, after its length.
func (sg *Segment) valueAt(dst []byte, at int, b []byte, ns uint32, key string, keep bool) ([]byte, bool) {
	q := Query{Namespace: ns, Kind: format.KindString, Type: keydir.String, Key: key}
	value, size, ok := q.valueIn(b)
	if !ok || !sg.Seed.Verifies(b[:size], uint32(at)) {
		return dst, false
	}
	if keep {
		dst = append(dst, value...)
	}
	return dst, true
}
