package format

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/keydir"
)

// The last parts of meta names.
const (
	MetaLen  = "__len__"
	MetaHead = "__head__"
	MetaTail = "__tail__"

	MetaStream = "__meta__"
)

// Identity is what a record is about. No two facts share one, whatever bytes
// their keys and elements hold.
type Identity struct {
	Namespace uint32
	Kind      Kind
	Type      keydir.Type // of the key; keydir.Deadline and keydir.FieldDeadlines for deadlines, keydir.None for KindNamespaces and KindSystem
	Key       []byte
	Elem      []byte // element, meta name or order part; nil for kinds without one
}

// TypePrefix is the first part of every name of a type, colon included.
var TypePrefix = [...]string{
	keydir.None:     "stave:",
	keydir.String:   "string:",
	keydir.Hash:     "hash:",
	keydir.List:     "list:",
	keydir.Set:      "set:",
	keydir.ZSet:     "zset:",
	keydir.Deadline: "ttl:",

	keydir.FieldDeadlines: "ttl:",
	keydir.Chunks:         "string:",
	keydir.Stream:         "stream:",
	keydir.StreamGroups:   "stream:",
}

// TagOf packs kind and type into a tag. A string is a string there, in chunks or not:
// the kind says which.
func TagOf(k Kind, t keydir.Type) byte {
	if extended(t) {
		return byte(KindExtended)
	}
	return byte(k) | byte(t.Public())<<4
}

// SplitTag is the inverse of TagOf.
func SplitTag(tag byte) (Kind, keydir.Type) {
	k, t := Kind(tag&15), keydir.Type(tag>>4&7)
	if t == keydir.String && (k == KindElement || k == KindMeta) {
		t = keydir.Chunks
	}
	return k, t
}

// NameLen is the length of the name of a record.
func NameLen(k Kind, t keydir.Type, keyLen, elemLen int) int {
	n := len(TypePrefix[t]) + keyLen
	if HasElement(k, t) {
		n += 1 + elemLen
	}
	return n
}

// AppendName appends the plain-text name of an identity.
func AppendName[K, E string | []byte](dst []byte, k Kind, t keydir.Type, key K, elem E) []byte {
	dst = append(dst, TypePrefix[t]...)
	dst = append(dst, key...)
	if HasElement(k, t) {
		dst = append(dst, ':')
		dst = append(dst, elem...)
	}
	return dst
}

// splitName is the inverse of AppendName: it cuts the name of a record into
// key and element, given the lengths that the record header carries.
func splitName(name []byte, k Kind, t keydir.Type, keyLen int) (key, elem []byte, err error) {
	prefix := TypePrefix[t]
	if len(name) < len(prefix)+keyLen || string(name[:len(prefix)]) != prefix {
		return nil, nil, fmt.Errorf("name %q does not begin with %q", name, prefix)
	}
	key = name[len(prefix) : len(prefix)+keyLen]
	rest := name[len(prefix)+keyLen:]
	if !HasElement(k, t) {
		if len(rest) != 0 {
			return nil, nil, fmt.Errorf("name %q is longer than its key", name)
		}
		return key, nil, nil
	}
	if len(rest) == 0 || rest[0] != ':' {
		return nil, nil, fmt.Errorf("name %q has no element", name)
	}
	return key, rest[1:], nil
}

// SpareHashBits is how many low bits of a hash do not count.
const SpareHashBits = 3

// UnknownRecord is the error for a record that verifies and whose kind this
// build does not know. The caller, which knows the file, adds its name.
type UnknownRecord struct {
	Kind Kind
	At   uint32 // offset in the segment; 0 in a hint
}

func (e *UnknownRecord) Error() string {
	return fmt.Sprintf("record of kind %d at offset %d: %v", uint8(e.Kind), e.At, failure.ErrVersion)
}

func (e *UnknownRecord) Unwrap() error { return failure.ErrVersion }

// firstReservedKind is the lowest kind that an older build may meet without
// knowing it. Records of kinds from here on that a build does not know have
// one of two layouts, so that it can verify them: kind 13 has that of
// KindNamespaces, 14 and 15 that of KindElement with one more byte after the
// sequence. The first part of the name ends with the first colon.
const firstReservedKind = KindSystem

// maxPrefix bounds the first part of a name, colon included.
const maxPrefix = 16

// Reserved reports whether a record of this kind and type is one that a newer
// version may have written.
func Reserved(tag byte) bool {
	k, t := SplitTag(tag)
	return k >= firstReservedKind && !ValidKind(k, t)
}
