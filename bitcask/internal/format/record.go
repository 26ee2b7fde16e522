package format

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
//	   kinds 14 and 15 have one more byte after it, kind and type of a second table
//	** only for kinds whose name has an element, and for all of kind 14
//
// The crc covers everything after itself and is seeded with store id, segment
// id and the offset of the record (checksum.go).
const (
	RecordCRCSize   = 4
	TagSequence     = 1 << 7
	RecordHeaderMin = RecordCRCSize + 1 + 3
	RecordHeaderMax = RecordCRCSize + 2 + binary.MaxVarintLen64 + 3*binary.MaxVarintLen32 + binary.MaxVarintLen32
)

// Limits of the format, in bytes.
const (
	MaxKey     = 65535     // longest user key
	MaxElement = 65535     // longest field or member
	MaxValue   = 512 << 20 // longest value
	MaxCommit  = 1<<30 - 1 // longest commit, headers included

	// MaxElementPart leaves room for the "s:{score}:" of an order record.
	MaxElementPart = MaxElement + 2 + 16 + 1
)

// Record is a parsed record. Its slices alias the bytes it was parsed from.
type Record struct {
	Identity
	SeqDelta uint64 // to the frame's sequence; 0 when the record has none of its own
	HasSeq   bool
	Value    []byte
	Size     int  // whole record, crc included
	Unknown  bool // its kind is of a newer version: nothing but its sizes is known
}

var ErrRecord = errors.New("malformed record")

// AppendRecordHeader appends tag and lengths, crc left zero. A negative seqDelta
// means that the record takes its sequence from its place in the frame.
func AppendRecordHeader(dst []byte, k Kind, t keydir.Type, seqDelta int64, ns uint32, keyLen, elemLen, valueLen int) []byte {
	tag := TagOf(k, t)
	if seqDelta >= 0 {
		tag |= TagSequence
	}
	dst = append(dst, 0, 0, 0, 0, tag)
	if seqDelta >= 0 {
		dst = binary.AppendUvarint(dst, uint64(seqDelta))
	}
	if extended(t) {
		dst = append(dst, SecondTag(k, t))
	}
	dst = binary.AppendUvarint(dst, uint64(ns))
	dst = binary.AppendUvarint(dst, uint64(keyLen))
	if HasElement(k, t) {
		dst = binary.AppendUvarint(dst, uint64(elemLen))
	}
	return binary.AppendUvarint(dst, uint64(valueLen))
}

// AppendRecord appends a whole record with its crc left zero: the crc depends
// on the offset, which only the log knows.
func AppendRecord[K, E string | []byte](dst []byte, k Kind, t keydir.Type, seqDelta int64, ns uint32, key K, elem E, value []byte) []byte {
	dst = AppendRecordHeader(dst, k, t, seqDelta, ns, len(key), len(elem), len(value))
	dst = AppendName(dst, k, t, key, elem)
	return append(dst, value...)
}

// RecordHeader is the part of a record before its name.
type RecordHeader struct {
	Kind                     Kind
	typ                      keydir.Type
	hasSeq                   bool
	seqDelta                 uint64
	Namespace                uint32
	KeyLen, elemLen, NameLen int
	valueLen                 int
	Size                     int  // offset of the name in the record
	unknown                  bool // see record
}

// Total is the length of the whole record.
func (h *RecordHeader) Total() int { return h.Size + h.NameLen + h.valueLen }

// ParseHeader reads tag and lengths and checks each against its limit. It reads only the header, so
// b may end after it.
func ParseHeader(b []byte) (h RecordHeader, err error) {
	if len(b) < RecordCRCSize+1 {
		return h, ErrRecord
	}
	tag := b[RecordCRCSize]
	h.Kind, h.typ = SplitTag(tag)
	h.hasSeq = tag&TagSequence != 0
	h.unknown = Reserved(tag)
	if h.Kind != KindExtended && !h.unknown && !ValidKind(h.Kind, h.typ) {
		return h, ErrRecord
	}
	r := Varints{Bytes: b, At: RecordCRCSize + 1}
	if h.hasSeq {
		h.seqDelta = r.Next(1<<64 - 1)
	}
	if h.Kind.Extended() { // kind and type of the second table
		if r.At >= len(b) {
			return h, ErrRecord
		}
		if k, t, ok := SplitSecond(tag, b[r.At]); ok {
			h.Kind, h.typ, h.unknown = k, t, false
		}
		r.At++
	}
	h.Namespace = uint32(r.Next(1<<32 - 1))
	h.KeyLen = int(r.Next(MaxKey))
	if HasElement(h.Kind, h.typ) {
		h.elemLen = int(r.Next(MaxElementPart))
	}
	h.valueLen = int(r.Next(MaxValue))
	if r.Bad || RowOf(h.Kind, h.typ).Home == HomeSystem && !ValidSystem(h.KeyLen, h.valueLen) {
		return h, ErrRecord
	}
	h.Size = r.At
	if h.unknown {
		return h, h.unknownName(b)
	}
	h.NameLen = NameLen(h.Kind, h.typ, h.KeyLen, h.elemLen)
	return h, nil
}

// unknownName finds the length of the name of a record whose kind is of a newer
// version. It checks the first part of the name.
func (h *RecordHeader) unknownName(b []byte) error {
	name := b[h.Size:min(h.Size+maxPrefix, len(b))]
	colon := bytes.IndexByte(name, ':')
	if colon < 0 {
		return ErrRecord
	}
	h.NameLen = colon + 1 + h.KeyLen
	if h.Kind.HasElement() {
		h.NameLen += 1 + h.elemLen
	}
	return nil
}

// ParseRecord parses the record at the start of b. It does not check the crc.
func ParseRecord(b []byte) (rec Record, err error) {
	h, err := ParseHeader(b)
	if err != nil {
		return rec, err
	}
	if h.Total() > len(b) {
		return rec, ErrRecord
	}
	if h.unknown {
		return Record{Identity: Identity{Kind: h.Kind}, HasSeq: h.hasSeq, SeqDelta: h.seqDelta, Size: h.Total(), Unknown: true}, nil
	}
	name := b[h.Size : h.Size+h.NameLen]
	key, elem, err := splitName(name, h.Kind, h.typ, h.KeyLen)
	if err != nil {
		return rec, err
	}
	rec.Identity = Identity{Namespace: h.Namespace, Kind: h.Kind, Type: h.typ, Key: key, Elem: elem}
	rec.HasSeq, rec.SeqDelta = h.hasSeq, h.seqDelta
	rec.Size = h.Total()
	rec.Value = b[h.Size+h.NameLen : rec.Size : rec.Size]
	return rec, nil
}

// Varints reads bounded uvarints one after another and remembers a failure. The bounds are 127 at least.
type Varints struct {
	Bytes []byte
	At    int
	Bad   bool
}

func (r *Varints) Next(limit uint64) uint64 {
	if r.At < len(r.Bytes) && r.Bytes[r.At] < 1<<7 { // one byte, as most
		r.At++
		return uint64(r.Bytes[r.At-1])
	}
	return r.long(limit)
}

func (r *Varints) long(limit uint64) uint64 {
	v, n := binary.Uvarint(r.Bytes[min(r.At, len(r.Bytes)):])
	// One value has one encoding: no padded varints, or two byte strings
	// would mean the same record.
	if n <= 0 || v > limit || n > 1 && r.Bytes[r.At+n-1] == 0 {
		r.Bad, r.Bytes = true, nil
		return 0
	}
	r.At += n
	return v
}

// MetaSize bounds the value of a meta record in bytes.
const MetaSize = 48

// AppendMeta appends the value of a meta record: how many elements there are, and
// before it, of a string in chunks, its length in bytes.
func AppendMeta(dst []byte, typ keydir.Type, length int64, count int) []byte {
	if typ == keydir.Chunks {
		dst = append(strconv.AppendInt(dst, length, 10), ' ')
	}
	return strconv.AppendInt(dst, int64(count), 10)
}

// ValidSystem reports whether a system record may have such a name and value.
func ValidSystem(keyLen, valueLen int) bool {
	return keyLen > 0 && keyLen <= MaxSystemName && valueLen <= MaxSystemValue
}

// Limits of system records.
const (
	MaxSystemName    = 255      // longest name, in bytes
	MaxSystemValue   = 64 << 10 // longest value, in bytes
	MaxSystemRecords = 1000     // that a store has at a time
)
