package bitcask

import (
	"fmt"

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

	// Not written yet: kindExtended is for kinds and types of a second table,
	// kindFree for what that leaves.
	kindExtended Kind = 14
	kindFree     Kind = 15
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

// hasElement reports whether names of this kind carry a part after the key.
func (k Kind) hasElement() bool {
	switch k {
	case KindElement, KindMeta, KindBound, KindOrder, KindElementTombstone, KindFieldDeadline, KindFieldDeadlineTombstone:
		return true
	}
	return k.extended()
}

// extended reports whether records of this kind name kind and type in one more byte.
func (k Kind) extended() bool { return k == kindExtended || k == kindFree }

// inCollection reports whether the location of records of this kind is in a
// collection, for which it takes the names of key and element to find it.
func (k Kind) inCollection() bool { return k == KindElement || k == KindMeta || k == KindFieldDeadline }

// follows reports whether records of this kind share the fate and the
// location of the record written just before them.
func (k Kind) follows() bool { return k == KindBound || k == KindOrder }

// plain reports whether the index has a slot for each live record of this kind.
func (k Kind) plain() bool { return k == KindString || k == KindDeadline }

// tombstone reports whether records of this kind only take away.
func (k Kind) tombstone() bool {
	return k == KindTombstone || k == KindElementTombstone || k == KindDeadlineTombstone || k == KindFieldDeadlineTombstone
}

// The last parts of meta names.
const (
	metaLen  = "__len__"
	metaHead = "__head__"
	metaTail = "__tail__"
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

// typePrefix is the first part of every name of a type, colon included.
var typePrefix = [...]string{
	keydir.None:     "stave:",
	keydir.String:   "string:",
	keydir.Hash:     "hash:",
	keydir.List:     "list:",
	keydir.Set:      "set:",
	keydir.ZSet:     "zset:",
	keydir.Deadline: "ttl:",

	keydir.FieldDeadlines: "ttl:",
	keydir.Chunks:         "string:",
}

// valid reports whether kind and type can stand together.
func validKind(k Kind, t keydir.Type) bool {
	switch k {
	case KindString:
		return t == keydir.String
	case KindElement, KindMeta:
		return t.IsCollection()
	case KindElementTombstone:
		return t.IsCollection() && t != keydir.Chunks // a string does not shrink
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

// tagOf packs kind and type into a tag. A string is a string there, in chunks or not:
// the kind says which.
func tagOf(k Kind, t keydir.Type) byte { return byte(k) | byte(t.Public())<<4 }

// splitTag is the inverse of tagOf.
func splitTag(tag byte) (Kind, keydir.Type) {
	k, t := Kind(tag&15), keydir.Type(tag>>4&7)
	if t == keydir.String && (k == KindElement || k == KindMeta) {
		t = keydir.Chunks
	}
	return k, t
}

// nameLen is the length of the name of a record.
func nameLen(k Kind, t keydir.Type, keyLen, elemLen int) int {
	n := len(typePrefix[t]) + keyLen
	if k.hasElement() {
		n += 1 + elemLen
	}
	return n
}

// appendName appends the plain-text name of an identity.
func appendName[K, E string | []byte](dst []byte, k Kind, t keydir.Type, key K, elem E) []byte {
	dst = append(dst, typePrefix[t]...)
	dst = append(dst, key...)
	if k.hasElement() {
		dst = append(dst, ':')
		dst = append(dst, elem...)
	}
	return dst
}

// splitName is the inverse of appendName: it cuts the name of a record into
// key and element, given the lengths that the record header carries.
func splitName(name []byte, k Kind, t keydir.Type, keyLen int) (key, elem []byte, err error) {
	prefix := typePrefix[t]
	if len(name) < len(prefix)+keyLen || string(name[:len(prefix)]) != prefix {
		return nil, nil, fmt.Errorf("name %q does not begin with %q", name, prefix)
	}
	key = name[len(prefix) : len(prefix)+keyLen]
	rest := name[len(prefix)+keyLen:]
	if !k.hasElement() {
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

// hashSpare is how many low bits of a hash do not count.
const hashSpare = 3
