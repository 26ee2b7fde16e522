package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/stavedb/stave/internal/number"
)

// The types of values, the first byte of a payload.
const (
	typeString           = 0
	typeList             = 1
	typeSet              = 2
	typeSortedSetText    = 3 // scores as text
	typeHash             = 4
	typeSortedSet        = 5  // scores as binary doubles
	typeModuleOld        = 6  // of release candidates of 4.0
	typeModule           = 7  // since 4.0
	typeHashZipmap       = 9  // up to Redis 2.4
	typeListZiplist      = 10 // up to 3.0
	typeSetIntset        = 11
	typeSortedZiplist    = 12 // up to 6.2
	typeHashZiplist      = 13 // up to 6.2
	typeQuicklist        = 14 // of ziplists, up to 6.2
	typeStream           = 15 // since 5.0
	typeHashListpack     = 16
	typeSortedPack       = 17
	typeQuicklist2       = 18 // of listpacks
	typeStream2          = 19 // since 7.0
	typeSetListpack      = 20 // since 7.2
	typeStream3          = 21 // since 7.2; differs in its groups
	typeTimedHashOld     = 22 // of release candidates of 7.4; typeTimedHashOfValkey in files of Valkey
	typeTimedListpackOld = 23 // the same
	typeTimedHash        = 24 // hash with deadlines of fields, since 7.4
	typeTimedListpack    = 25 // the same

	typeTimedHashOfValkey = 22 // since 9
)

// Lengths have 6, 14, 32 or 64 bits by their first byte; the last form of it says that a string is encoded.
const (
	length6       = 0 << 6
	length14      = 1 << 6
	length32      = 0x80
	length64      = 0x81
	lengthEncoded = 3 << 6

	encodedInt8  = 0
	encodedInt16 = 1
	encodedInt32 = 2
	encodedLZF   = 3
)

// Writer writes one value: Begin, then its parts in order, then Seal. The zero Writer is ready.
type Writer struct {
	buf   []byte
	timed bool  // a hash with deadlines
	first int64 // of these
}

// Begin starts a value. n is the number of elements, members or fields; a string has none.
func (w *Writer) Begin(kind Kind, n int) {
	w.buf = append(w.buf[:0], plainType[kind])
	w.number(kind, n)
}

// plainType has the types that are written.
var plainType = [...]byte{String: typeString, List: typeList, Set: typeSet, SortedSet: typeSortedSet, Hash: typeHash}

// number writes how many elements, members or fields follow.
func (w *Writer) number(kind Kind, n int) {
	if kind != String {
		w.length(uint64(n))
	}
}

// BeginTimed starts a hash of n fields of which some have deadlines, the first of them being first, in Unix
// milliseconds. Each field is written as Deadline, name and value.
func (w *Writer) BeginTimed(n int, first int64) {
	w.buf = append(w.buf[:0], typeTimedHash)
	w.firstDeadline(n, first)
}

func (w *Writer) firstDeadline(n int, first int64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(first))
	w.timed, w.first = true, first
	w.length(uint64(n))
}

// Deadline writes the deadline of the field that comes next; 0 is none. It is a length: the distance to the first one,
// plus 1.
func (w *Writer) Deadline(ms int64) {
	if ms != 0 {
		ms -= w.first - 1
	}
	w.length(uint64(ms))
}

// Len is the number of bytes so far.
func (w *Writer) Len() int { return len(w.buf) }

func (w *Writer) length(n uint64) {
	switch {
	case n < 1<<6:
		w.buf = append(w.buf, length6|byte(n))
	case n < 1<<14:
		w.buf = append(w.buf, length14|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		w.buf = binary.BigEndian.AppendUint32(append(w.buf, length32), uint32(n))
	default:
		w.buf = binary.BigEndian.AppendUint64(append(w.buf, length64), n)
	}
}

// Bytes writes a string, an element, a member, or the name or the value of a field. The text of a small integer is
// written as an integer.
func (w *Writer) Bytes(b []byte) {
	if len(b) <= 11 {
		if n, ok := number.ParseInt(b); ok && n == int64(int32(n)) {
			w.integer(int32(n))
			return
		}
	}
	w.length(uint64(len(b)))
	w.buf = append(w.buf, b...)
}

func (w *Writer) integer(n int32) {
	switch {
	case n == int32(int8(n)):
		w.buf = append(w.buf, lengthEncoded|encodedInt8, byte(n))
	case n == int32(int16(n)):
		w.buf = binary.LittleEndian.AppendUint16(append(w.buf, lengthEncoded|encodedInt16), uint16(n))
	default:
		w.buf = binary.LittleEndian.AppendUint32(append(w.buf, lengthEncoded|encodedInt32), uint32(n))
	}
}

// Score writes the score of the member that was written before.
func (w *Writer) Score(score float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(score))
}

// Seal ends the payload and returns it.
func (w *Writer) Seal() []byte {
	version := uint16(Version)
	if w.timed {
		version = Newest
	}
	w.buf = binary.LittleEndian.AppendUint16(w.buf, version)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, checksum(w.buf))
	return w.buf
}

// decimal is the text of an integer that was stored as one.
func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
