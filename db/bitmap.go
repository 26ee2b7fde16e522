package db

import "github.com/stavedb/stave/structures"

// Bitmap is a handle on a key that holds a byte string, seen as bits: bit 0 is the highest of the first byte, and
// beyond the end there are only zeros. Its methods return ErrWrongType if the key holds anything else. A bitmap of more
// than 4 KiB (see [String]) is kept in chunks of 512 bytes once a bit has been changed, and a bit costs a chunk, read
// or written; a shorter one is written whole. Many changes are cheapest in one Field.
type Bitmap struct{ handle }

// Bitmap returns a handle on the bitmap at key. It reads nothing.
func (s *Store) Bitmap(key string) Bitmap { return Bitmap{s.handle(key)} }

// Bitmap returns a handle on the bitmap at key, inside the transaction. It reads nothing.
func (t *Tx) Bitmap(key string) Bitmap { return Bitmap{t.handle(key)} }

// BitRange is a part of a bitmap, both ends inclusive.
//
//	Start, End int64
//	Bits bool
//	Open bool
type BitRange = structures.BitRange

// AllBits is the range of a whole bitmap.
var AllBits = structures.AllBits

// BitfieldOp is one step of Bitmap.Field, on the integer at an offset in bits.
//
//	Action BitfieldAction
//	Signed bool
//	Bits int
//	Offset int64
//	Value int64
//	Overflow Overflow
type BitfieldOp = structures.BitfieldOp

// BitfieldResult is what a BitfieldOp returns.
//
//	Value int64
//	OK bool
type BitfieldResult = structures.BitfieldResult

// BitfieldAction is what a BitfieldOp does.
type BitfieldAction = structures.BitfieldAction

// The actions of a BitfieldOp.
const (
	BitfieldGet  = structures.BitfieldGet  // returns the integer
	BitfieldSet  = structures.BitfieldSet  // writes Value and returns the old one
	BitfieldIncr = structures.BitfieldIncr // adds Value and returns the sum
)

// Overflow says what happens to a value that does not fit the integer of a BitfieldOp.
type Overflow = structures.Overflow

// The modes of overflow.
const (
	OverflowWrap = structures.OverflowWrap // the bits that do not fit are dropped
	OverflowSat  = structures.OverflowSat  // the nearest value that fits is taken
	OverflowFail = structures.OverflowFail // nothing is written, and the result is not OK
)

// BitOp is an operation on bitmaps.
type BitOp = structures.BitOp

// The operations of Keyspace.CombineBits. BitNot takes one source, BitDiff, BitDiff1 and BitAndOr two or more, the others
// one or more.
const (
	BitAnd = structures.BitAnd
	BitOr  = structures.BitOr
	BitXor = structures.BitXor
	BitNot = structures.BitNot

	BitDiff  = structures.BitDiff  // the bits of the first that none of the others has
	BitDiff1 = structures.BitDiff1 // the bits of any of the others that the first does not have
	BitAndOr = structures.BitAndOr // the bits of the first that any of the others has
	BitOne   = structures.BitOne   // the bits that exactly one has
)

// Get returns the bit at a position. It fails with structures.ErrBitOffset if the position is negative or beyond 512
// MB. O(1), of a short bitmap O(length).
func (b Bitmap) Get(offset int64) (bool, error) {
	return call(b.handle, reading, func(t *Tx) (bool, error) { return b.on(t).Get(offset) })
}

// Set changes the bit at a position and returns its old value. The bitmap grows as far as needed, and its deadline
// stays. It fails with structures.ErrBitOffset if the position is negative or beyond 512 MiB. Nothing is written if
// nothing changes. O(1), of a short bitmap O(length).
func (b Bitmap) Set(offset int64, on bool) (was bool, err error) {
	return call(b.handle, writing, func(t *Tx) (bool, error) { return b.on(t).Set(offset, on) })
}

// Count returns the number of bits that are set in a range, 0 if the key does not exist. O(length).
func (b Bitmap) Count(r BitRange) (int64, error) {
	return call(b.handle, reading, func(t *Tx) (int64, error) { return b.on(t).Count(r) })
}

// Position returns the position of the first bit in a range that is on, or off, and -1 if there is none. A key that
// does not exist has no bit on, and bit 0 off. O(length).
func (b Bitmap) Position(on bool, r BitRange) (int64, error) {
	return call(b.handle, reading, func(t *Tx) (int64, error) { return b.on(t).Position(on, r) })
}

// Field executes operations on integers within the bitmap, in their order, and returns their results. If one may write,
// the bitmap grows to where all of them fit; its deadline stays. It fails with structures.ErrBitfieldType if an integer
// has an impossible width, and with structures.ErrBitOffset if its offset is negative or beyond 512 MiB. What changes is
// written once. O(number of operations), of a short bitmap O(length).
func (b Bitmap) Field(ops ...BitfieldOp) ([]BitfieldResult, error) {
	does := reading
	for i := range ops {
		if ops[i].Action != BitfieldGet {
			does = writing
		}
	}
	results, err := call(b.handle, does, func(t *Tx) ([]BitfieldResult, error) { return b.on(t).Field(ops) })
	return owned(results, err)
}

// CombineBits makes dest hold the result of an operation on the bitmaps at the keys, all seen as long as the longest of
// them, and returns that length in bytes. dest has no deadline afterwards, and does not exist if the length is 0. It
// fails with structures.ErrBitNot if BitNot is given other than one source. O(sum of the lengths).
func (k Keyspace) CombineBits(op BitOp, dest string, keys ...string) (int, error) {
	return callKeys(k.handle, writing, append([]string{dest}, keys...), func(t *Tx) (int, error) { return structures.CombineBits(t.txn(), op, dest, keys) })
}

func (b Bitmap) on(t *Tx) structures.Bitmap { return structures.Bitmap{Txn: t.txn(), Key: b.key} }
