package format

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/keydir"
)

// Kind says what a record is. Together with the namespace, the length of the
// user key and the name bytes it is the record's identity: the name alone is
// ambiguous ("hash:a:b:c"), the identity never is.
type Kind uint8

// The kinds of records. Their numbers are part of the format.
const (
	KindString            Kind = 1  // string:{key} -> value; replaces whatever the key held
	KindElement           Kind = 2  // {type}:{key}:{element} -> value
	KindMeta              Kind = 3  // {type}:{key}:__len__ -> count; of a string in chunks: length and count
	KindBound             Kind = 4  // list:{key}:__head__ and __tail__ -> index; follow their KindMeta
	KindOrder             Kind = 5  // zset:{key}:s:{score}:{member} -> empty; follows its KindElement
	KindDeadline          Kind = 6  // ttl:{key} -> Unix milliseconds
	KindTombstone         Kind = 7  // {type}:{key}: the key is gone, whole, with its deadline
	KindElementTombstone  Kind = 8  // {type}:{key}:{element}: the element is gone
	KindDeadlineTombstone Kind = 9  // ttl:{key}: the deadline is gone, the key stays
	KindNamespaces        Kind = 10 // stave:namespaces -> which directory each namespace uses
	KindFieldDeadline     Kind = 11 // ttl:{key}:{field} -> Unix milliseconds; goes with the field

	// ttl:{key}:{field}: the deadline is gone, the field stays
	KindFieldDeadlineTombstone Kind = 12

	// KindSystem is what the store notes of itself, by name: stave:{name} -> value.
	KindSystem Kind = 13

	// KindExtended is the kind in the tag of records whose kind and type one more byte
	// states, those of streams. No Record or Entry that is known has it.
	KindExtended Kind = 14
	KindFree     Kind = 15 // not written yet
)

// String returns what a record of the kind is about, such as "element".
func (k Kind) String() string {
	names := [...]string{
		KindString: "string", KindElement: "element", KindMeta: "count", KindBound: "bound", KindOrder: "order", KindDeadline: "deadline",
		KindTombstone: "tombstone", KindElementTombstone: "element tombstone", KindDeadlineTombstone: "deadline tombstone", KindNamespaces: "namespaces",
		KindFieldDeadline: "deadline of a field", KindFieldDeadlineTombstone: "tombstone of a field's deadline",
		KindSystem: "system",
	}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// HasElement reports whether names of this kind carry a part after the key.
func (k Kind) HasElement() bool {
	switch k {
	case KindElement, KindMeta, KindBound, KindOrder, KindElementTombstone, KindFieldDeadline, KindFieldDeadlineTombstone:
		return true
	}
	return k.Extended()
}

// Extended reports whether records of this kind name kind and type in one more byte.
func (k Kind) Extended() bool { return k == KindExtended || k == KindFree }

// InCollection reports whether the location of records of this kind is in a
// collection, for which it takes the names of key and element to find it.
func (k Kind) InCollection() bool { return k == KindElement || k == KindMeta || k == KindFieldDeadline }

// Follows reports whether records of this kind share the fate and the
// location of the record written just before them.
func (k Kind) Follows() bool { return k == KindBound || k == KindOrder }

// Plain reports whether the index has a slot for each live record of this kind.
func (k Kind) Plain() bool { return k == KindString || k == KindDeadline }

// Tombstone reports whether records of this kind only remove something.
func (k Kind) Tombstone() bool {
	return k == KindTombstone || k == KindElementTombstone || k == KindDeadlineTombstone || k == KindFieldDeadlineTombstone
}

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

// ValidKind reports whether kind and type can stand together.
func ValidKind(k Kind, t keydir.Type) bool {
	switch k {
	case KindString:
		return t == keydir.String
	case KindElement:
		return t.IsCollection() || t == keydir.StreamGroups
	case KindMeta:
		return t.IsCollection()
	case KindElementTombstone:
		return t.IsCollection() && t != keydir.Chunks || t == keydir.StreamGroups // a string does not shrink
	case KindBound:
		return t == keydir.List
	case KindOrder:
		return t == keydir.ZSet
	case KindTombstone:
		return t == keydir.String || t.IsCollection()
	case KindDeadline, KindDeadlineTombstone:
		return t == keydir.Deadline
	case KindFieldDeadline, KindFieldDeadlineTombstone:
		return t == keydir.FieldDeadlines
	case KindNamespaces, KindSystem:
		return t == keydir.None
	}
	return false
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
	if hasElement(k, t) {
		n += 1 + elemLen
	}
	return n
}

// AppendName appends the plain-text name of an identity.
func AppendName[K, E string | []byte](dst []byte, k Kind, t keydir.Type, key K, elem E) []byte {
	dst = append(dst, TypePrefix[t]...)
	dst = append(dst, key...)
	if hasElement(k, t) {
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
	if !hasElement(k, t) {
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
