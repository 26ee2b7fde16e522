package structures

import (
	"encoding/binary"
	"math/bits"
)

// Bitmap is a string seen as bits: bit 0 is the highest of the first byte, and beyond the end there
// are only zeros. It is stored like any string: in short chunks once a change has met it longer than
// eight of them, so that a bit costs a chunk, read or written, and until then as one record, which is
// written whole.
type Bitmap struct {
	Txn StringTxn
	Key string
}

// maxBit is the highest position of a bit.
const maxBit = MaxString*8 - 1

func (b Bitmap) string() String { return String(b) }

// Get returns the bit at a position. O(1), of a short bitmap O(length).
func (b Bitmap) Get(offset int64) (bool, error) {
	if offset < 0 || offset > maxBit {
		return false, ErrBitOffset
	}
	at, s := int(offset/8), b.string()
	c, err := s.find()
	if err != nil || !c.exists {
		return false, err
	}
	data, err := s.appendTo(nil, &c, at, at+1)
	return len(data) > 0 && data[0]&(0x80>>(offset%8)) != 0, err
}

// Set changes the bit at a position and returns its old value. The string grows as far as needed;
// its deadline stays. Nothing is written if nothing changes. O(1), of a short bitmap O(length).
func (b Bitmap) Set(offset int64, on bool) (was bool, err error) {
	if offset < 0 || offset > maxBit {
		return false, ErrBitOffset
	}
	at, s := int(offset/8), b.string()
	c, n, err := b.openAt(at)
	if err != nil {
		return false, err
	}
	one := make([]byte, 1, 16)
	if at < n {
		if one, err = s.appendTo(one[:0], &c, at, at+1); err != nil {
			return false, err
		}
	}
	mask := byte(0x80 >> (offset % 8))
	was = one[0]&mask != 0
	if was == on && at < n {
		return was, nil
	}
	if one[0] &^= mask; on {
		one[0] |= mask
	}
	return was, notifyUnless(b.Txn, EventSetBit, b.Key, s.edit(&c, n, at, one))
}

// openAt is open for a change of the byte at a position. The length is only said to be beyond the
// position if that is plain without the last chunk, and the chunks stay.
func (b Bitmap) openAt(at int) (c stringValue, length int, err error) {
	s := b.string()
	if c, err = s.find(); err != nil {
		return c, 0, err
	}
	if c.cut() && at/c.size < c.last && c.size <= s.shortChunk() {
		return c, at + 1, nil
	}
	length, err = s.len(&c)
	return c, length, err
}

// BitRange is a part of a bitmap, both ends inclusive. Negative positions count
// from the end; positions beyond the string are cut to it.
type BitRange struct {
	Start, End int64
	// Bits makes Start and End positions of bits. Default: of bytes.
	Bits bool
	// Open lets Position continue into the zeros after the string, if the range reaches to its end.
	Open bool
}

// AllBits is the range of a whole bitmap.
var AllBits = BitRange{End: -1, Open: true}

// cut returns the first bit of the range and the one after its last.
func (r BitRange) cut(length int) (from, to int64) {
	total, unit := int64(length), int64(8)
	if r.Bits {
		total, unit = total*8, 1
	}
	start, end := r.Start, r.End
	if start < 0 {
		start = max(start+total, 0)
	}
	if end < 0 {
		end = max(end+total, 0)
	}
	end = min(end, total-1)
	if start > end {
		return 0, 0
	}
	return start * unit, (end + 1) * unit
}

// open finds the string and its length.
func (b Bitmap) open() (c stringValue, length int, err error) {
	if c, err = b.string().find(); err == nil {
		length, err = b.string().len(&c)
	}
	return c, length, err
}

// visit calls fn for the pieces of the string that hold the bits from one position to another: with
// the positions in the piece of its first bit and after its last one. It ends when fn returns
// false.
func (b Bitmap) visit(c *stringValue, from, to int64, fn func(data []byte, from, to int64) bool) error {
	if from >= to {
		return nil
	}
	first, end := from/8, (to+7)/8
	from, to = from-first*8, to-first*8
	return b.string().visit(c, int(first), int(end), func(data []byte) bool {
		size := int64(len(data)) * 8
		more := fn(data, from, min(to, size))
		from, to = 0, to-size
		return more
	})
}

// Count returns the number of bits that are set in a range. O(length).
func (b Bitmap) Count(r BitRange) (n int64, err error) {
	c, length, err := b.open()
	if err != nil || r.Start < 0 && r.End < 0 && r.Start > r.End {
		return 0, err
	}
	from, to := r.cut(length)
	err = b.visit(&c, from, to, func(data []byte, from, to int64) bool {
		n += countRange(data, from, to)
		return true
	})
	return n, err
}

// countRange counts the bits from one position of data, in its first byte, to
// another, in its last.
func countRange(data []byte, from, to int64) int64 {
	n := countBits(data)
	n -= bits.OnesCount8(data[0] &^ (0xff >> from))
	if rest := to % 8; rest != 0 {
		n -= bits.OnesCount8(data[len(data)-1] & (0xff >> rest))
	}
	return int64(n)
}

func countBits(data []byte) int {
	n := 0
	for ; len(data) >= 8; data = data[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(data))
	}
	for _, x := range data {
		n += bits.OnesCount8(x)
	}
	return n
}

// Position returns the position of the first bit of a range that is on, or off,
// and -1 if there is none. A key that does not exist has bit 0 off. O(length).
func (b Bitmap) Position(on bool, r BitRange) (int64, error) {
	c, length, err := b.open()
	switch {
	case err != nil:
		return 0, err
	case !c.exists && on:
		return -1, nil
	case !c.exists:
		return 0, nil
	}
	from, to := r.cut(length)
	if from == to {
		return -1, nil
	}
	base, found := from/8*8, int64(-1)
	err = b.visit(&c, from, to, func(data []byte, from, to int64) bool {
		if pos := firstBit(data, on, from, to); pos >= 0 {
			found = base + pos
			return false
		}
		base += int64(len(data)) * 8
		return true
	})
	if err == nil && found < 0 && !on && r.Open && to == int64(length)*8 {
		return to, nil
	}
	return found, err
}

// firstBit returns the position of the first bit that is on, or off, from one
// position of data, in its first byte, to another, and -1 if there is none.
func firstBit(data []byte, on bool, from, to int64) int64 {
	skip := byte(0)
	if !on {
		skip = 0xff
	}
	for at := int64(0); at*8 < to; at++ {
		// The bytes that cannot hold the bit are skipped at once.
		if at*8 >= from {
			for rest := data[at:]; len(rest) >= 8 && at*8+64 <= to && binary.LittleEndian.Uint64(rest) == -uint64(skip&1); rest = data[at:] {
				at += 8
			}
			if at*8 >= to {
				break
			}
		}
		found := data[at] ^ skip
		if at*8 < from {
			found &= 0xff >> from
		}
		if found != 0 {
			if pos := at*8 + int64(bits.LeadingZeros8(found)); pos < to {
				return pos
			}
			break
		}
	}
	return -1
}

// BitOp is an operation on bitmaps.
type BitOp uint8

// The operations of CombineBits. BitNot takes one source, BitDiff, BitDiff1 and
// BitAndOr two or more, the others one or more.
const (
	BitAnd BitOp = iota
	BitOr
	BitXor
	BitNot
	BitDiff  // the bits of the first that none of the others has
	BitDiff1 // the bits of any of the others that the first does not have
	BitAndOr // the bits of the first that any of the others has
	BitOne   // the bits that exactly one has
)

// apartFrom is how many bytes are combined without letting others work meanwhile.
const apartFrom = 64 << 10

// CombineBits makes dest hold the result of an operation on the bitmaps at the
// keys, all seen as long as the longest of them, and returns that length in
// bytes. dest has no deadline afterwards; it does not exist if the length is 0.
// O(sum of the lengths).
func CombineBits(t StringTxn, op BitOp, dest string, keys []string) (int, error) {
	if op == BitNot && len(keys) != 1 {
		return 0, ErrBitNot
	}
	if (op == BitDiff || op == BitDiff1 || op == BitAndOr) && len(keys) < 2 {
		return 0, ErrBitTwoSources
	}
	length := 0
	for _, key := range keys {
		_, n, err := (Bitmap{Txn: t, Key: key}).open()
		if err != nil {
			return 0, err
		}
		length = max(length, n)
	}
	if length == 0 {
		_, err := deleteKey(t, dest)
		return 0, err
	}
	result := make([]byte, length)
	var apart []byte // the first source, of operations that set it apart; of BitOne the bits that several have
	if op >= BitDiff {
		apart = make([]byte, length)
	}
	var source []byte // one at a time: a key may be named often
	for i, key := range keys {
		var err error
		if source, _, err = (String{Txn: t, Key: key}).Get(source[:0]); err == nil {
			err = t.Step(length >> 8)
		}
		if err != nil {
			return 0, err
		}
		combine := func() {
			switch {
			case op == BitOne:
				addBytes(result, apart, source)
			case i == 0 && apart != nil:
				copy(apart, source)
			case i == 0:
				copy(result, source)
			case apart != nil:
				combineBytes(BitOr, result, source)
			default:
				combineBytes(op, result, source)
			}
		}
		if len(source) < apartFrom {
			combine()
		} else {
			t.Apart(combine)
		}
	}
	if op >= BitNot {
		t.Apart(func() { finishBytes(op, result, apart) })
	}
	_, err := String{Txn: t, Key: dest}.Set(result, SetOptions{})
	return length, err
}

// addBytes adds a source to the bits that any has, and to those that several have.
func addBytes(some, several, source []byte) {
	for i, b := range source {
		several[i] |= some[i] & b
		some[i] |= b
	}
}

// finishBytes ends an operation: result is what the sources have, without the one that was set apart.
func finishBytes(op BitOp, result, apart []byte) {
	for i, b := range result {
		switch op {
		case BitNot:
			result[i] = ^b
		case BitDiff:
			result[i] = apart[i] &^ b
		case BitDiff1, BitOne:
			result[i] = b &^ apart[i]
		case BitAndOr:
			result[i] = apart[i] & b
		}
	}
}

// combineBytes applies the operation to result, as if source continued with zeros.
func combineBytes(op BitOp, result, source []byte) {
	n := 0
	for ; n+8 <= len(source); n += 8 {
		x, y := binary.LittleEndian.Uint64(result[n:]), binary.LittleEndian.Uint64(source[n:])
		switch op {
		case BitAnd:
			x &= y
		case BitOr:
			x |= y
		case BitXor:
			x ^= y
		}
		binary.LittleEndian.PutUint64(result[n:], x)
	}
	for ; n < len(source); n++ {
		switch op {
		case BitAnd:
			result[n] &= source[n]
		case BitOr:
			result[n] |= source[n]
		case BitXor:
			result[n] ^= source[n]
		}
	}
	if op == BitAnd {
		clear(result[len(source):])
	}
}
