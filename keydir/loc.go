package keydir

import (
	"fmt"
	"math"
	"math/bits"
)

// Type says what a slot of the directory stands for.
type Type uint8

// The types of a logical key. A key has exactly one of String, Hash, List, Set,
// ZSet and Chunks, which is a string that is too long for one record: its chunks
// are a collection (see ChunkIndex). The others are pseudo types, of slots that live
// beside the slot of the key itself: Deadline is that of a key's deadline record,
// and FieldDeadlines a collection of its own, of the fields of a hash that have a
// deadline, with the deadlines as scores.
const (
	None Type = iota
	String
	Hash
	List
	Set
	ZSet
	Deadline
	FieldDeadlines
	Chunks
)

var typeNames = [...]string{"none", "string", "hash", "list", "set", "zset", "ttl", "fieldttl", "string"}

// String returns the name users know the type by.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// typeSet has a bit for each of some types.
type typeSet uint16

func setOf(t Type) typeSet        { return 1 << t }
func (s typeSet) has(t Type) bool { return s>>t&1 != 0 }

// collectionTypes are the types whose keys are collections.
const collectionTypes typeSet = 1<<Hash | 1<<List | 1<<Set | 1<<ZSet | 1<<Chunks

// IsCollection reports whether keys of this type are collections.
func (t Type) IsCollection() bool { return collectionTypes.has(t) }

// hasCollection reports whether slots of this type lead to collections.
func (t Type) hasCollection() bool { return (collectionTypes | setOf(FieldDeadlines)).has(t) }

// scored reports whether the elements of collections of this type have scores.
func (t Type) scored() bool { return t == ZSet || t == FieldDeadlines }

// Indexed reports whether the elements of such collections are found by an index
// and have no name.
func (t Type) Indexed() bool { return t == List || t == Chunks }

// Public is the type as users know it: to them a string is a string, however it
// is stored.
func (t Type) Public() Type {
	if t == Chunks {
		return String
	}
	return t
}

// ChunkIndex is the index of a chunk in the collection of its string: the size in
// bytes into which the string is cut, and the number of the chunk. So every chunk
// says itself where it belongs, and strings cut into other sizes stay readable.
func ChunkIndex(size, number int) int64 { return int64(size)<<32 | int64(number) }

// ChunkAt is the inverse of ChunkIndex. ok is false for what is no index of a
// chunk.
func ChunkAt(index int64) (size, number int, ok bool) {
	size, number = int(index>>32), int(index&(1<<32-1))
	return size, number, size > 0 && number >= 0 && number < maxNumber
}

// maxNumber bounds the numbers of chunks; no string has so many.
const maxNumber = 1 << 30

// Loc says where a record starts: segment, byte offset, and a class that bounds
// the record's size from above, at most one eighth over, so that one read of
// Size bytes fetches the whole record. The zero Loc is no location.
//
//	 63        40 39         8 7     0
//	+------------+------------+-------+
//	| segment 24 | offset  32 | class |
//	+------------+------------+-------+
//
// Segments stand highest, so that locations sort in log order.
type Loc uint64

// PendingSegment is the segment of a location that no segment holds yet: a
// transaction not yet committed has its own meaning for the offset.
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

// Pending reports whether the location is one of an uncommitted transaction.
func (l Loc) Pending() bool { return l.Segment() == PendingSegment }

// sizeClass returns the smallest class whose bound is at least size. Classes 1
// to 8 are those sizes; from there every power of two is cut into eight. Class 0
// is left to the zero Loc, so a made Loc is never zero.
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
