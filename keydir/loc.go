package keydir

import (
	"fmt"
	"math"
	"math/bits"
)

// Loc is the location of a record: segment, byte offset, and a class that bounds the
// record's size from above, at most one eighth over, so that one read of Size bytes
// fetches the whole record. The zero Loc is no location.
//
//	 63        40 39         8 7     0
//	+------------+------------+-------+
//	| segment 24 | offset  32 | class |
//	+------------+------------+-------+
//
// The segment is highest, so that locations sort in log order.
type Loc uint64

// PendingSegment is the segment of a location that no segment holds yet: only the
// transaction, not yet committed, knows the meaning of the offset.
const PendingSegment = 1<<24 - 1

// MakeLoc packs a location. size is rounded up to its class.
// It panics if segment needs more than 24 bits.
func MakeLoc(segment, offset, size uint32) Loc {
	if segment > PendingSegment {
		panic(fmt.Sprintf("BUG: keydir: segment %d needs more than 24 bits", segment))
	}
	return Loc(segment)<<40 | Loc(offset)<<8 | Loc(sizeClass(size))
}

// Segment returns the id of the segment that holds the record.
func (l Loc) Segment() uint32 { return uint32(l >> 40) }

// Offset returns the byte offset of the record in its segment.
func (l Loc) Offset() uint32 { return uint32(l >> 8) }

// Size returns an upper bound of the record's size in bytes, less than an eighth above it.
func (l Loc) Size() uint32 { return classSize(uint8(l)) }

// Pending reports whether the location belongs to an uncommitted transaction.
func (l Loc) Pending() bool { return l.Segment() == PendingSegment }

// sizeClass returns the smallest class whose bound is at least size. Classes 1 to 8 are
// those sizes; above, every power of two has eight classes. Class 0 is reserved for the zero
// Loc, so MakeLoc never returns zero.
func sizeClass(size uint32) uint8 {
	if size <= 8 {
		return uint8(max(size, 1))
	}
	exp := bits.Len32(size-1) - 4               // size lies in (8<<exp, 16<<exp]
	steps := (uint64(size) + 1<<exp - 1) >> exp // 9..16
	return uint8(8*exp) + uint8(steps)
}

// classSize returns the bound of a class, the inverse of sizeClass.
func classSize(class uint8) uint32 {
	if class <= 8 {
		return uint32(class)
	}
	exp := (class - 9) / 8
	bound := uint64(class-8*exp) << exp
	return uint32(min(bound, math.MaxUint32))
}
