package structures

// Bitfields: integers of any width at any position of a bitmap, as in BITFIELD.

// BitfieldAction is what a BitfieldOp does.
type BitfieldAction uint8

// The actions of BITFIELD.
const (
	BitfieldGet  BitfieldAction = iota // returns the integer
	BitfieldSet                        // writes Value and returns the old one
	BitfieldIncr                       // adds Value and returns the sum
)

// Overflow says what happens to a value that does not fit its integer.
type Overflow uint8

// The modes of OVERFLOW.
const (
	OverflowWrap Overflow = iota // the bits that do not fit are dropped
	OverflowSat                  // the nearest value that fits is taken
	OverflowFail                 // nothing is written, and there is no result
)

// BitfieldOp is one step of Bitmap.Field, on the integer at an offset in bits.
type BitfieldOp struct {
	Action   BitfieldAction
	Signed   bool  // two's complement
	Bits     int   // width: 1 to 64 if signed, 1 to 63 if not
	Offset   int64 // of the integer's highest bit
	Value    int64 // of set and incr
	Overflow Overflow
}

// BitfieldResult is what an operation returns. OK is false if OverflowFail kept
// it from writing.
type BitfieldResult struct {
	Value int64
	OK    bool
}

func (o *BitfieldOp) check() error {
	switch {
	case o.Bits < 1, o.Bits > 64, !o.Signed && o.Bits > 63:
		return ErrBitfieldType
	case o.Offset < 0, o.Offset > maxBit:
		return ErrBitOffset
	}
	return nil
}

// Field executes operations in their order and returns their results. If one may
// write, the string grows to where all of them fit, whether or not they overflow;
// its deadline stays. What changes is written once. O(1) an operation; a short
// bitmap, O(length), is read and written whole.
func (b Bitmap) Field(ops []BitfieldOp) ([]BitfieldResult, error) {
	last := int64(-1) // bit that is written
	for i := range ops {
		if err := ops[i].check(); err != nil {
			return nil, err
		}
		if ops[i].Action != BitfieldGet {
			last = max(last, ops[i].Offset+int64(ops[i].Bits)-1)
		}
	}
	c, length, err := b.open()
	if err != nil {
		return nil, err
	}
	need := int(last/8) + 1
	if last < 0 {
		need = 0
	}
	if need > MaxString {
		return nil, ErrTooLong
	}
	s := b.string()
	if c.cut() || s.long(max(length, need)) && need > 0 {
		return s.fieldChunks(&c, length, need, ops)
	}
	data, err := s.grown(&c, length, need)
	if err != nil {
		return nil, err
	}
	changed := need > length
	results := make([]BitfieldResult, len(ops))
	for i := range ops {
		var wrote bool
		results[i], wrote = ops[i].apply(data)
		changed = changed || wrote
	}
	if changed {
		err = notifyUnless(b.Txn, EventSetBit, b.Key, s.putEdited(data))
	}
	return results, err
}

// apply executes one operation on data, which is long enough if it writes.
func (o *BitfieldOp) apply(data []byte) (res BitfieldResult, wrote bool) {
	old := o.load(data)
	if o.Action == BitfieldGet {
		return BitfieldResult{Value: old, OK: true}, false
	}
	base, incr := old, o.Value
	if o.Action == BitfieldSet {
		base, incr = o.Value, 0
	}
	fit, overflowed := o.fit(base, incr)
	if overflowed && o.Overflow == OverflowFail {
		return BitfieldResult{}, false
	}
	o.store(data, fit)
	if o.Action == BitfieldSet {
		return BitfieldResult{Value: old, OK: true}, fit != old
	}
	return BitfieldResult{Value: fit, OK: true}, fit != old
}

// load reads the integer; beyond data there are zeros.
func (o *BitfieldOp) load(data []byte) int64 {
	var u uint64
	for i := range int64(o.Bits) {
		at := o.Offset + i
		u <<= 1
		if at/8 < int64(len(data)) {
			u |= uint64(data[at/8]>>(7-at%8)) & 1
		}
	}
	if o.Signed {
		return o.extend(u)
	}
	return int64(u)
}

func (o *BitfieldOp) store(data []byte, n int64) {
	for i := range int64(o.Bits) {
		at := o.Offset + i
		mask := byte(0x80 >> (at % 8))
		if data[at/8] &^= mask; n>>(int64(o.Bits)-1-i)&1 != 0 {
			data[at/8] |= mask
		}
	}
}

// extend gives the highest bit of the integer to all above it.
func (o *BitfieldOp) extend(u uint64) int64 {
	shift := 64 - o.Bits
	return int64(u<<shift) >> shift
}

// fit returns base + incr if the integer can hold it, otherwise what takes its
// place. As in Redis, where an unsigned integer is set to a negative value that is
// above its largest one, and where the room above a signed one wraps around for
// values near the smallest of all, which then count as above as well.
func (o *BitfieldOp) fit(base, incr int64) (n int64, overflowed bool) {
	largest := int64(1)<<(o.Bits-1) - 1
	smallest := -largest - 1
	if !o.Signed {
		largest, smallest = int64(uint64(1)<<o.Bits-1), 0
	}
	above := base > largest || !o.Signed && base < 0 || o.Signed && o.Bits < 64 && base < 0 && incr > largest-base
	below := !above && base < smallest
	sum := base + incr
	switch {
	case above || below:
	case incr > 0:
		above = sum < base || sum > largest
	case incr < 0:
		below = sum > base || sum < smallest
	}
	switch {
	case !above && !below:
		return sum, false
	case o.Overflow == OverflowSat && above:
		return largest, true
	case o.Overflow == OverflowSat:
		return smallest, true
	case o.Signed:
		return o.extend(uint64(sum)), true
	}
	return sum & largest, true
}
