package keydir

import "fmt"

// Type is the type of a slot.
type Type uint8

// The types of a key. A key has exactly one of String, Hash, List, Set, ZSet, Stream and Chunks, which is a string that
// is too long for one record: its chunks are a collection (see ChunkIndex). The others are the types of further slots
// of the same key: Deadline leads to the key's deadline record, and FieldDeadlines is a collection of the fields of a
// hash that have a deadline, with the deadlines as scores. StreamGroups is what the consumer groups of a stream have:
// groups, consumers and pending entries, with scores that put together what belongs together.
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
	Stream
	StreamGroups
)

var typeNames = [...]string{"none", "string", "hash", "list", "set", "zset", "ttl", "fieldttl", "string", "stream", "streamgroups"}

// String returns the name by which users know the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// typeSet is a set of types, one bit each.
type typeSet uint16

func setOf(t Type) typeSet        { return 1 << t }
func (s typeSet) has(t Type) bool { return s>>t&1 != 0 }

// collectionTypes are the types whose keys are collections.
const collectionTypes typeSet = 1<<Hash | 1<<List | 1<<Set | 1<<ZSet | 1<<Chunks | 1<<Stream

// IsCollection reports whether keys of this type are collections.
func (t Type) IsCollection() bool { return collectionTypes.has(t) }

// hasCollection reports whether slots of this type lead to collections.
func (t Type) hasCollection() bool {
	return (collectionTypes | setOf(FieldDeadlines) | setOf(StreamGroups)).has(t)
}

// scored reports whether the elements of collections of this type have scores.
func (t Type) scored() bool { return t == ZSet || t == FieldDeadlines || t == StreamGroups }

// Indexed reports whether the elements of collections of this type are found by an index
// and have no name.
func (t Type) Indexed() bool { return t == List || t == Chunks }

// Alongside reports whether slots of this type stand alongside that of a key's content.
func (t Type) Alongside() bool { return t == Deadline || t == FieldDeadlines || t == StreamGroups }

// Named reports whether the elements of collections of this type have names.
func (t Type) Named() bool { return !t.Indexed() && t != Stream }

// Public returns the type as users know it: a string, however it is stored.
func (t Type) Public() Type {
	if t == Chunks {
		return String
	}
	return t
}

// ChunkIndex returns the index of a chunk in the collection of its string: the chunk size of
// the string in bytes, and the number of the chunk. So every chunk names its own place, and
// strings with other chunk sizes stay readable.
func ChunkIndex(size, number int) int64 { return int64(size)<<32 | int64(number) }

// ChunkAt is the inverse of ChunkIndex. ok is false if the index is not one of a chunk.
func ChunkAt(index int64) (size, number int, ok bool) {
	size, number = int(index>>32), int(index&(1<<32-1))
	return size, number, size > 0 && number >= 0 && number < maxNumber
}

// maxNumber bounds the numbers of chunks; no string has that many.
const maxNumber = 1 << 30
