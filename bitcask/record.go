package bitcask

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/stavedb/stave/keydir"
)

// A record, as it stands in a segment:
//
//	+--------+-----+----------+-----------+--------+----------+----------+------+-------+
//	| crc u32| tag | sequence | namespace | keyLen | elemLen  | valueLen | name | value |
//	|        | u8  | uvarint* | uvarint   | uvarint| uvarint**| uvarint  |      |       |
//	+--------+-----+----------+-----------+--------+----------+----------+------+-------+
//	tag: bits 0-3 kind, bits 4-6 type, bit 7: the record carries its own sequence
//	*  only with bit 7 (records that merge copied): difference to the frame's sequence;
//	   kinds 14 and 15, which no version writes yet, have one more byte after it
//	** only for kinds whose name has an element
//
// The crc covers everything after itself and is seeded with store id, segment
// id and the offset of the record (checksum.go).
const (
	recordCRCSize   = 4
	tagSequence     = 1 << 7
	recordHeaderMin = recordCRCSize + 1 + 3
	recordHeaderMax = recordCRCSize + 2 + binary.MaxVarintLen64 + 3*binary.MaxVarintLen32 + binary.MaxVarintLen32
)

// Limits of the format, in bytes.
const (
	MaxKey     = 65535     // longest user key
	MaxElement = 65535     // longest field or member
	MaxValue   = 512 << 20 // longest value
	MaxCommit  = 1<<30 - 1 // longest commit, headers included

	// maxElementPart leaves room for the "s:{score}:" of an order record.
	maxElementPart = MaxElement + 2 + 16 + 1
)

// record is a parsed record. Its slices alias the bytes it was parsed from.
type record struct {
	Identity
	seqDelta uint64 // to the frame's sequence; 0 when the record has none of its own
	hasSeq   bool
	value    []byte
	size     int  // whole record, crc included
	unknown  bool // its kind is of a newer version: nothing but its sizes is known
}

var errRecord = errors.New("malformed record")

// putRecordHeader appends tag and lengths, crc left zero. A negative seqDelta
// means that the record takes its sequence from its place in the frame.
func appendRecordHeader(dst []byte, k Kind, t keydir.Type, seqDelta int64, ns uint32, keyLen, elemLen, valueLen int) []byte {
	tag := tagOf(k, t)
	if seqDelta >= 0 {
		tag |= tagSequence
	}
	dst = append(dst, 0, 0, 0, 0, tag)
	if seqDelta >= 0 {
		dst = binary.AppendUvarint(dst, uint64(seqDelta))
	}
	dst = binary.AppendUvarint(dst, uint64(ns))
	dst = binary.AppendUvarint(dst, uint64(keyLen))
	if k.hasElement() {
		dst = binary.AppendUvarint(dst, uint64(elemLen))
	}
	return binary.AppendUvarint(dst, uint64(valueLen))
}

// appendRecord appends a whole record with its crc left zero: the crc depends
// on the offset, which only the log knows.
func appendRecord[K, E string | []byte](dst []byte, k Kind, t keydir.Type, seqDelta int64, ns uint32, key K, elem E, value []byte) []byte {
	dst = appendRecordHeader(dst, k, t, seqDelta, ns, len(key), len(elem), len(value))
	dst = appendName(dst, k, t, key, elem)
	return append(dst, value...)
}

// header is the part of a record before its name.
type header struct {
	kind                     Kind
	typ                      keydir.Type
	hasSeq                   bool
	seqDelta                 uint64
	ns                       uint32
	keyLen, elemLen, nameLen int
	valueLen                 int
	size                     int  // offset of the name in the record
	unknown                  bool // see record
}

// total is the length of the whole record.
func (h *header) total() int { return h.size + h.nameLen + h.valueLen }

// parseHeader reads tag and lengths and checks each against its limit. It
// looks at no more than the header, so b may be cut behind it.
func parseHeader(b []byte) (h header, err error) {
	if len(b) < recordCRCSize+1 {
		return h, errRecord
	}
	tag := b[recordCRCSize]
	h.kind, h.typ = splitTag(tag)
	h.hasSeq = tag&tagSequence != 0
	h.unknown = reserved(tag)
	if !h.unknown && !validKind(h.kind, h.typ) {
		return h, errRecord
	}
	r := varints{b: b, n: recordCRCSize + 1}
	if h.hasSeq {
		h.seqDelta = r.next(1<<64 - 1)
	}
	if h.kind.extended() {
		r.n++ // kind and type of the second table
	}
	h.ns = uint32(r.next(1<<32 - 1))
	h.keyLen = int(r.next(MaxKey))
	if h.kind.hasElement() {
		h.elemLen = int(r.next(maxElementPart))
	}
	h.valueLen = int(r.next(MaxValue))
	if r.bad || h.kind == KindSystem && !h.unknown && !validSystem(h.keyLen, h.valueLen) {
		return h, errRecord
	}
	h.size = r.n
	if h.unknown {
		return h, h.unknownName(b)
	}
	h.nameLen = nameLen(h.kind, h.typ, h.keyLen, h.elemLen)
	return h, nil
}

// unknownName finds the length of the name of a record whose kind is of a newer
// version. It looks at the first part of the name.
func (h *header) unknownName(b []byte) error {
	name := b[h.size:min(h.size+maxPrefix, len(b))]
	colon := bytes.IndexByte(name, ':')
	if colon < 0 {
		return errRecord
	}
	h.nameLen = colon + 1 + h.keyLen
	if h.kind.hasElement() {
		h.nameLen += 1 + h.elemLen
	}
	return nil
}

// parseRecord parses the record at the start of b. It does not check the crc.
func parseRecord(b []byte) (rec record, err error) {
	h, err := parseHeader(b)
	if err != nil {
		return rec, err
	}
	if h.total() > len(b) {
		return rec, errRecord
	}
	if h.unknown {
		return record{Identity: Identity{Kind: h.kind}, hasSeq: h.hasSeq, seqDelta: h.seqDelta, size: h.total(), unknown: true}, nil
	}
	name := b[h.size : h.size+h.nameLen]
	key, elem, err := splitName(name, h.kind, h.typ, h.keyLen)
	if err != nil {
		return rec, err
	}
	rec.Identity = Identity{Namespace: h.ns, Kind: h.kind, Type: h.typ, Key: key, Elem: elem}
	rec.hasSeq, rec.seqDelta = h.hasSeq, h.seqDelta
	rec.size = h.total()
	rec.value = b[h.size+h.nameLen : rec.size : rec.size]
	return rec, nil
}

// varints reads bounded uvarints one after another and remembers a failure. The bounds are 127 at least.
type varints struct {
	b   []byte
	n   int
	bad bool
}

func (r *varints) next(limit uint64) uint64 {
	if r.n < len(r.b) && r.b[r.n] < 1<<7 { // one byte, as most
		r.n++
		return uint64(r.b[r.n-1])
	}
	return r.long(limit)
}

func (r *varints) long(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b[min(r.n, len(r.b)):])
	// One value has one encoding: no padded varints, or two byte strings
	// would mean the same record.
	if n <= 0 || v > limit || n > 1 && r.b[r.n+n-1] == 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.n += n
	return v
}

// metaSize bounds the value of a meta record in bytes.
const metaSize = 48

// appendMeta appends the value of a meta record: how many elements there are, and
// before it, of a string in chunks, its length in bytes.
func appendMeta(dst []byte, typ keydir.Type, length int64, count int) []byte {
	if typ == keydir.Chunks {
		dst = append(strconv.AppendInt(dst, length, 10), ' ')
	}
	return strconv.AppendInt(dst, int64(count), 10)
}
