package rdb

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/stavedb/stave/internal/number"
)

// Decode reads a payload. It fails with ErrPayload or ErrFormat. As in Redis a collection without elements is bad data,
// and so is one that has a member or a field twice.
func Decode(payload []byte) (Value, error) {
	body, version, err := open(payload)
	if err != nil {
		return Value{}, err
	}
	if len(body) == 0 {
		return Value{}, ErrFormat
	}
	var v Value
	r := reader{rest: body[1:], inflate: maxInflated, v: &v, valkey: version >= FirstOfValkey}
	r.value(body[0])
	if r.failed || v.Kind != String && v.Kind != StreamKind && len(v.Elements) == 0 || !v.unique() {
		return Value{}, ErrFormat
	}
	return v, nil
}

// maxInflated is what the compressed strings of a payload may come to altogether, and one string of a file, in bytes.
const maxInflated = 512 << 20

// reader decodes a value. After the first thing that does not fit it has failed, and everything it returns is empty.
type reader struct {
	rest    []byte
	file    *file // what comes after rest; nil: nothing
	inflate int   // bytes that may still be inflated
	failed  bool
	skips   bool // of a file: a value that cannot be decoded, and whose end is known, spoils that value only
	spoiled bool // the value is such a one
	spoilAt int64

	valkey bool // wrote the value, in a version of its own

	v     *Value     // is being filled
	unit  int        // of so many elements v may be cut
	parse func()     // what is to be done to the elements of v before it is complete; nil: nothing
	piece *pieceSink // takes v in pieces; nil: v is wanted whole
}

func (r *reader) fail() {
	if r.file != nil {
		r.file.at(r)
	}
	r.failed, r.rest = true, nil
}

// spoil says that the value cannot be decoded, though it may be known where it ends.
func (r *reader) spoil() {
	if r.file == nil || !r.skips {
		r.fail()
		return
	}
	if at := r.file.at(r); !r.spoiled {
		r.spoiled, r.spoilAt = true, at
	}
}

// take returns the next n bytes. They stay as they are.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) && !(r.file != nil && !r.failed && r.file.read(r, n)) {
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
		return bits.ReverseBytes64(r.fixed(4)) >> 32, false
	case length64:
		return bits.ReverseBytes64(r.fixed(8)), false
	}
	r.fail()
	return 0, false
}

// fixed reads a little-endian integer of so many bytes.
func (r *reader) fixed(size uint64) (u uint64) {
	for i, b := range r.take(size) {
		u |= uint64(b) << (8 * i)
	}
	return u
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
	return r.encodedString(n)
}

// encodedString is string after the length that says how it is encoded.
func (r *reader) encodedString(how uint64) []byte {
	switch how {
	case encodedInt8:
		return r.integer(1)
	case encodedInt16:
		return r.integer(2)
	case encodedInt32:
		return r.integer(4)
	case encodedLZF:
		packed, size := r.count(), r.count()
		b := r.take(packed)
		if size <= uint64(r.inflate) && size <= uint64(len(b))*maxRatio {
			r.inflate -= int(size)
			if b, ok := inflate(b, int(size)); ok {
				return b
			}
		}
		r.spoil()
		return nil
	}
	r.fail()
	return nil
}

// value reads a value of a type into v.
func (r *reader) value(code byte) {
	v := r.v
	r.unit, r.parse = 1, nil
	switch code {
	case typeString:
		v.Kind = String
		r.wholeString()
	case typeList:
		v.Kind = List
		r.strings(1)
	case typeSet:
		v.Kind = Set
		r.strings(1)
	case typeHash:
		v.Kind = Hash
		r.strings(2)
	case typeSortedSet, typeSortedSetText:
		v.Kind = SortedSet
		for n := r.count(); n > 0 && !r.failed; n-- {
			member := r.string()
			if code == typeSortedSet {
				r.score(r.double())
			} else {
				r.score(r.textDouble())
			}
			r.add(member)
		}
	case typeQuicklist, typeQuicklist2:
		v.Kind = List
		for n := r.count(); n > 0 && !r.failed; n-- {
			r.node(code)
		}
	case typeStream, typeStream2, typeStream3:
		r.stream(code)
	case typeTimedHashOld:
		if r.valkey {
			r.timedHashOfValkey()
		} else {
			r.timedHash(1)
		}
	case typeTimedHash:
		r.timedHash(r.first())
	case typeTimedListpackOld:
		r.timedListpack()
	case typeTimedListpack:
		r.first() // every deadline is there in full
		r.timedListpack()
	default:
		r.packed(code)
	}
	if r.parse != nil && !r.spoiled {
		r.parse()
	}
}

// wholeString reads the value of a string.
func (r *reader) wholeString() {
	if r.piece != nil {
		r.stringPieces()
		return
	}
	r.add(r.string())
}

// add adds an element to the value, after whatever is known of it besides.
func (r *reader) add(b []byte) {
	r.v.Elements = append(r.v.Elements, b)
	if r.piece != nil {
		r.piece.grown(r, len(b))
	}
}

func (r *reader) score(score float64) {
	if math.IsNaN(score) {
		r.spoil()
	}
	r.v.Scores = append(r.v.Scores, score)
}

// timedHash reads a hash with deadlines of fields: fields with the distances to the first deadline. Release candidates of
// Redis 7.4 wrote the deadlines in full, which are distances to 1.
func (r *reader) timedHash(first uint64) {
	r.v.Kind, r.unit = Hash, 2
	for n := r.count(); n > 0 && !r.failed; n-- {
		ms := r.count()
		if ms > LastDeadline {
			r.spoil()
		}
		if ms > 0 {
			ms += first - 1
		}
		r.deadline(int64(ms))
		r.add(r.string())
		r.add(r.string())
	}
}

// noDeadlineOfValkey stands for none.
const noDeadlineOfValkey = -1

// timedHashOfValkey reads one as Valkey 9 writes it: fields, values, and deadlines in full.
func (r *reader) timedHashOfValkey() {
	r.v.Kind, r.unit = Hash, 2
	for n := r.count(); n > 0 && !r.failed; n-- {
		name, value := r.string(), r.string()
		ms := int64(r.fixed(8))
		if ms == noDeadlineOfValkey {
			ms = 0
		} else if ms == 0 {
			ms = 1 // a deadline, long ago
		}
		r.deadline(ms)
		r.add(name)
		r.add(value)
	}
}

// timedListpack reads one whose fields are in a listpack, each with its deadline.
func (r *reader) timedListpack() {
	r.v.Kind, r.unit, r.parse = Hash, 3, r.parseDeadlines
	r.inside((*reader).listpack)
}

// parseDeadlines parts fields from the deadlines that follow them, as text.
func (r *reader) parseDeadlines() {
	list := r.v.Elements
	if len(list)%3 != 0 {
		r.spoil()
		return
	}
	fields := list[:0]
	for ; len(list) > 0; list = list[3:] {
		ms, ok := number.ParseInt(list[2])
		if !ok {
			r.spoil()
		}
		r.deadline(ms)
		fields = append(fields, list[0], list[1])
	}
	r.v.Elements = fields
}

// first reads the first of the deadlines of a hash.
func (r *reader) first() uint64 {
	first := r.fixed(8)
	if first > LastDeadline {
		r.spoil()
	}
	return first
}

// deadline adds the deadline of the field that comes next.
func (r *reader) deadline(ms int64) {
	if ms < 0 || ms > LastDeadline {
		r.spoil()
	}
	r.v.Deadlines = append(r.v.Deadlines, ms)
}

// packed reads a value that is one string, whose inside has a format of its own.
func (r *reader) packed(code byte) {
	form, known := packedForms[code]
	if !known {
		r.fail()
		return
	}
	r.v.Kind = form.kind
	switch form.kind {
	case Hash:
		r.unit, r.parse = 2, r.parseFields
	case SortedSet:
		r.unit, r.parse = 2, r.parseScores
	}
	r.inside(form.unpack)
}

// packedForms are the kinds of those values, and what is inside.
var packedForms = map[byte]struct {
	kind   Kind
	unpack func(*reader)
}{
	typeListZiplist: {List, (*reader).ziplist}, typeSetIntset: {Set, (*reader).intset}, typeSetListpack: {Set, (*reader).listpack},
	typeHashZipmap: {Hash, (*reader).zipmap}, typeHashZiplist: {Hash, (*reader).ziplist}, typeHashListpack: {Hash, (*reader).listpack},
	typeSortedZiplist: {SortedSet, (*reader).ziplist}, typeSortedPack: {SortedSet, (*reader).listpack},
}

// inside reads a string and unpacks it. What is wrong inside spoils the value: it is known where the string ends.
func (r *reader) inside(unpack func(*reader)) {
	packed := r.string()
	if r.failed || r.spoiled {
		return
	}
	rest, file := r.rest, r.file
	if file != nil {
		file.at(r)
	}
	r.rest, r.file = packed, nil
	unpack(r)
	if len(r.rest) > 0 { // bytes follow the end
		r.fail()
	}
	if r.file = file; r.failed && file != nil && r.skips && r.piece.err == nil {
		r.failed = false
		r.rest = rest
		r.spoil()
	} else if !r.failed {
		r.rest = rest
	}
}

// parseFields notices a name without a value.
func (r *reader) parseFields() {
	if len(r.v.Elements)%2 != 0 {
		r.spoil()
	}
}

// parseScores parts members from the scores that follow them, as text.
func (r *reader) parseScores() {
	list := r.v.Elements
	if len(list)%2 != 0 {
		r.spoil()
		return
	}
	members := list[:0]
	for i := 0; i < len(list); i += 2 {
		score, err := strconv.ParseFloat(string(list[i+1]), 64)
		if err != nil && !math.IsInf(score, 0) {
			r.spoil()
		}
		members = append(members, list[i])
		r.score(score)
	}
	r.v.Elements = members
}

// node reads a node of a quicklist: a listpack or a ziplist, or an element that was too large for one.
func (r *reader) node(code byte) {
	const plain, packed = 1, 2
	if code == typeQuicklist {
		r.inside((*reader).ziplist)
		return
	}
	switch r.count() {
	case plain:
		r.add(r.string())
	case packed:
		r.inside((*reader).listpack)
	default:
		r.fail()
	}
}

// strings reads a count and so many times some strings, each of which takes a byte at least.
func (r *reader) strings(each int) {
	r.unit = each
	n := r.count()
	if n > maxCount || r.file == nil && n > uint64(len(r.rest)) {
		r.fail()
	}
	for n *= uint64(each); n > 0 && !r.failed; n-- {
		r.add(r.string())
	}
}

// maxCount is above any number of elements that there can be.
const maxCount = 1 << 48

func (r *reader) double() float64 { return math.Float64frombits(r.fixed(8)) }

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
			r.spoil()
		}
		return f
	}
}

// unique says whether no member and no field comes twice.
func (v *Value) unique() bool {
	if v.Kind == String || v.Kind == List || v.Kind == StreamKind {
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
