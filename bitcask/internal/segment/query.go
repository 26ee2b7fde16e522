package segment

import (
	"encoding/binary"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Query says which record a location is expected to lead to.
type Query struct {
	Namespace uint32
	Kind      format.Kind
	Type      keydir.Type
	Key       string
	Elem      string
	OnDisk    error // of a read that would wait for the disk; nil: it waits
	anyElem   bool  // the caller knows the key only
}

func (q *Query) Matches(rec *format.Record) bool {
	return rec.Kind == q.Kind && rec.Type == q.Type && rec.Namespace == q.Namespace &&
		string(rec.Key) == q.Key && (q.anyElem || string(rec.Elem) == q.Elem)
}

// valueIn returns the value and the size of the record at the start of b if it is the one that q
// describes. It does not check the crc, and of the header only what distinguishes one record from
// another: it is ParseRecord and Matches for a single question, which nearly every read asks. A no
// means that ParseRecord decides.
func (q *Query) valueIn(b []byte) (value []byte, size int, ok bool) {
	hasElem := format.HasElement(q.Kind, q.Type)
	if len(b) < format.RecordHeaderMin || hasElem && q.anyElem {
		return nil, 0, false
	}
	tag, at := b[format.RecordCRCSize], format.RecordCRCSize+1
	if tag&format.TagSequence != 0 {
		_, at = uvarint(b, at)
	}
	if tag&^format.TagSequence != format.TagOf(q.Kind, q.Type) {
		return nil, 0, false
	}
	if format.InSecond(tag) { // of streams and of their groups
		if at >= len(b) || b[at] != format.SecondTag(q.Kind, q.Type) {
			return nil, 0, false
		}
		at++
	}
	prefix := format.TypePrefix[q.Type]
	nameLen := len(prefix) + len(q.Key)
	var elemLen uint64
	space, at := uvarint(b, at)
	keyLen, at := uvarint(b, at)
	if hasElem {
		elemLen, at = uvarint(b, at)
		nameLen += 1 + len(q.Elem)
	}
	valueLen, at := uvarint(b, at)
	start := at + nameLen
	if space != uint64(q.Namespace) || keyLen != uint64(len(q.Key)) || start > len(b) || valueLen > uint64(len(b)-start) {
		return nil, 0, false
	}
	name := b[at:start]
	if string(name[:len(prefix)]) != prefix || string(name[len(prefix):len(prefix)+len(q.Key)]) != q.Key {
		return nil, 0, false
	}
	if hasElem {
		elem := name[len(prefix)+len(q.Key):]
		if elemLen != uint64(len(q.Elem)) || elem[0] != ':' || string(elem[1:]) != q.Elem {
			return nil, 0, false
		}
	}
	size = start + int(valueLen)
	return b[start:size:size], size, true
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
		if v, n := binary.Uvarint(b[at:]); n > 0 && b[at+n-1] != 0 { // one value has one encoding
			return v, at + n
		}
	}
	return 0, len(b) + 1
}
