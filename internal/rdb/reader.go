package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/stavedb/stave/internal/number"
)

// Decode reads a payload. It fails with ErrPayload or ErrFormat. As in Redis a collection without elements is bad data, and
// so is one that has a member or a field twice.
func Decode(payload []byte) (Value, error) {
	body, err := open(payload)
	if err != nil {
		return Value{}, err
	}
	if len(body) == 0 {
		return Value{}, ErrFormat
	}
	r := reader{rest: body[1:], inflate: maxInflated}
	v := r.value(body[0])
	if r.failed || v.Kind != String && len(v.Elements) == 0 || !v.unique() {
		return Value{}, ErrFormat
	}
	return v, nil
}

// maxInflated is what the compressed strings of a payload may come to altogether, in bytes.
const maxInflated = 512 << 20

// reader decodes a value. After the first thing that does not fit it has failed, and everything it returns is empty.
type reader struct {
	rest    []byte
	inflate int // bytes that may still be inflated
	failed  bool
}

func (r *reader) fail() { r.failed, r.rest = true, nil }

// take returns the next n bytes.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	b := r.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// length reads a length; encoded says that it is the way a string is encoded instead.
func (r *reader) length() (n uint64, encoded bool) {
	b := r.byte()
	switch b & 0xc0 {
	case length6:
		return uint64(b & 0x3f), false
	case length14:
		return uint64(b&0x3f)<<8 | uint64(r.byte()), false
	case lengthEncoded:
		return uint64(b & 0x3f), true
	}
	switch b {
	case length32:
		if b := r.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b)), false
		}
	case length64:
		if b := r.take(8); b != nil {
			return binary.BigEndian.Uint64(b), false
		}
	}
	r.fail()
	return 0, false
}

// count is a length that is not encoded.
func (r *reader) count() uint64 {
	n, encoded := r.length()
	if encoded {
		r.fail()
		return 0
	}
	return n
}

// string reads a string in any of its encodings.
func (r *reader) string() []byte {
	n, encoded := r.length()
	if !encoded {
		return r.take(n)
	}
	switch n {
	case encodedInt8:
		return decimal(int64(int8(r.byte())))
	case encodedInt16:
		if b := r.take(2); b != nil {
			return decimal(int64(int16(binary.LittleEndian.Uint16(b))))
		}
	case encodedInt32:
		if b := r.take(4); b != nil {
			return decimal(int64(int32(binary.LittleEndian.Uint32(b))))
		}
	case encodedLZF:
		packed, size := r.count(), r.count()
		b := r.take(packed)
		if size > uint64(r.inflate) || size > uint64(len(b))*maxRatio {
			r.fail()
			return nil
		}
		r.inflate -= int(size)
		if b, ok := inflate(b, int(size)); ok {
			return b
		}
	}
	r.fail()
	return nil
}

// value reads a value of a type.
func (r *reader) value(code byte) (v Value) {
	switch code {
	case typeString:
		v.Kind, v.Elements = String, [][]byte{r.string()}
	case typeList:
		v.Kind, v.Elements = List, r.strings(1)
	case typeSet:
		v.Kind, v.Elements = Set, r.strings(1)
	case typeHash:
		v.Kind, v.Elements = Hash, r.strings(2)
	case typeSortedSet, typeSortedSetText:
		v.Kind = SortedSet
		for n := r.count(); n > 0 && !r.failed; n-- {
			v.Elements = append(v.Elements, r.string())
			if code == typeSortedSet {
				v.Scores = append(v.Scores, r.double())
			} else {
				v.Scores = append(v.Scores, r.textDouble())
			}
		}
	case typeQuicklist, typeQuicklist2:
		v.Kind = List
		for n := r.count(); n > 0 && !r.failed; n-- {
			v.Elements = r.node(v.Elements, code)
		}
	case typeTimedHash:
		r.timedHash(&v)
	case typeTimedListpack:
		r.timedListpack(&v)
	default:
		r.packed(&v, code)
	}
	for _, score := range v.Scores {
		if math.IsNaN(score) {
			r.fail()
		}
	}
	return v
}

// timedHash reads a hash with deadlines of fields: the first deadline, and fields with the distances to it.
func (r *reader) timedHash(v *Value) {
	v.Kind = Hash
	first := r.first()
	for n := r.count(); n > 0 && !r.failed; n-- {
		ms := r.count()
		if ms > LastDeadline {
			r.fail()
		}
		if ms > 0 {
			ms += first - 1
		}
		r.deadline(v, int64(ms))
		v.Elements = append(v.Elements, r.string(), r.string())
	}
}

// timedListpack reads one whose fields are in a listpack, each with its deadline.
func (r *reader) timedListpack(v *Value) {
	v.Kind = Hash
	r.first() // every deadline is there in full
	list := r.inside(nil, (*reader).listpack)
	if len(list)%3 != 0 {
		r.fail()
		return
	}
	for ; len(list) > 0; list = list[3:] {
		ms, ok := number.ParseInt(list[2])
		if !ok {
			r.fail()
		}
		r.deadline(v, ms)
		v.Elements = append(v.Elements, list[0], list[1])
	}
}

// first reads the first of the deadlines of a hash.
func (r *reader) first() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	first := binary.LittleEndian.Uint64(b)
	if first > LastDeadline {
		r.fail()
	}
	return first
}

// deadline adds the deadline of the field that comes next.
func (r *reader) deadline(v *Value, ms int64) {
	if ms < 0 || ms > LastDeadline {
		r.fail()
	}
	v.Deadlines = append(v.Deadlines, ms)
}

// packed reads a value that is one string, whose inside has a format of its own.
func (r *reader) packed(v *Value, code byte) {
	var unpack func(*reader, [][]byte) [][]byte
	switch code {
	case typeListZiplist:
		v.Kind, unpack = List, (*reader).ziplist
	case typeSetIntset:
		v.Kind, unpack = Set, (*reader).intset
	case typeSetListpack:
		v.Kind, unpack = Set, (*reader).listpack
	case typeHashZipmap:
		v.Kind, unpack = Hash, (*reader).zipmap
	case typeHashZiplist:
		v.Kind, unpack = Hash, (*reader).ziplist
	case typeHashListpack:
		v.Kind, unpack = Hash, (*reader).listpack
	case typeSortedZiplist:
		v.Kind, unpack = SortedSet, (*reader).ziplist
	case typeSortedPack:
		v.Kind, unpack = SortedSet, (*reader).listpack
	default:
		r.fail()
		return
	}
	v.Elements = r.inside(nil, unpack)
	if v.Kind == Hash && len(v.Elements)%2 != 0 {
		r.fail()
	}
	if v.Kind == SortedSet {
		r.parseScores(v)
	}
}

// inside reads a string and unpacks it.
func (r *reader) inside(list [][]byte, unpack func(*reader, [][]byte) [][]byte) [][]byte {
	inner := reader{rest: r.string(), failed: r.failed}
	list = unpack(&inner, list)
	if inner.failed {
		r.fail()
	}
	return list
}

// parseScores parts members from the scores that follow them, as text.
func (r *reader) parseScores(v *Value) {
	if len(v.Elements)%2 != 0 {
		r.fail()
		return
	}
	members := v.Elements[:0]
	for i := 0; i < len(v.Elements); i += 2 {
		score, err := strconv.ParseFloat(string(v.Elements[i+1]), 64)
		if err != nil && !math.IsInf(score, 0) {
			r.fail()
		}
		members = append(members, v.Elements[i])
		v.Scores = append(v.Scores, score)
	}
	v.Elements = members
}

// node reads a node of a quicklist: a listpack or a ziplist, or an element that was too large for one.
func (r *reader) node(list [][]byte, code byte) [][]byte {
	const plain, packed = 1, 2
	if code == typeQuicklist {
		return r.inside(list, (*reader).ziplist)
	}
	switch r.count() {
	case plain:
		return append(list, r.string())
	case packed:
		return r.inside(list, (*reader).listpack)
	}
	r.fail()
	return list
}

// strings reads a count and so many times some strings.
func (r *reader) strings(each uint64) (list [][]byte) {
	n := r.count()
	if n > uint64(len(r.rest)) { // a string takes a byte at least
		r.fail()
	}
	for n *= each; n > 0 && !r.failed; n-- {
		list = append(list, r.string())
	}
	return list
}

func (r *reader) double() float64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// textDouble reads the old form of a double: its text after a length; some lengths stand for values without
// digits.
func (r *reader) textDouble() float64 {
	const nan, plusInf, minusInf = 253, 254, 255
	switch n := r.byte(); n {
	case nan:
		return math.NaN()
	case plusInf:
		return math.Inf(1)
	case minusInf:
		return math.Inf(-1)
	default:
		f, err := strconv.ParseFloat(string(r.take(uint64(n))), 64)
		if err != nil {
			r.fail()
		}
		return f
	}
}

// unique says whether no member and no field comes twice.
func (v *Value) unique() bool {
	if v.Kind == String || v.Kind == List {
		return true
	}
	step := 1
	if v.Kind == Hash {
		step = 2
	}
	seen := make(map[string]struct{}, len(v.Elements)/step)
	for i := 0; i < len(v.Elements); i += step {
		seen[string(v.Elements[i])] = struct{}{}
	}
	return len(seen) == len(v.Elements)/step
}
