package format

import "github.com/stavedb/stave/keydir"

// The first table of kinds and types is full: a tag has three bits for the type. The tag of a
// record of kind 14 says nothing more, and one more byte, after the sequence, has kind and
// type of a second table:
//
//	bits 0-3 kind, as in the first table; bits 4-7 type
//
// All of them have the layout of KindElement, with a part after the key that may be empty.
const (
	secondStream = 1 // keydir.Stream
	secondGroups = 2 // keydir.StreamGroups
)

// extended reports whether a type is one of the second table.
func extended(t keydir.Type) bool { return t == keydir.Stream || t == keydir.StreamGroups }

// HasElement reports whether the name of a record has a part after the key.
func HasElement(k Kind, t keydir.Type) bool { return RowOf(k, t).Part != NoPart || k.Extended() }

// SecondTag packs kind and type of the second table.
func SecondTag(k Kind, t keydir.Type) byte {
	if t == keydir.StreamGroups {
		return byte(k) | secondGroups<<4
	}
	return byte(k) | secondStream<<4
}

// SplitSecond is the inverse of TagOf and SecondTag. ok is false for a tag that says more, or for a
// kind or a type that this build does not know.
func SplitSecond(tag, second byte) (k Kind, t keydir.Type, ok bool) {
	k = Kind(second & 15)
	switch second >> 4 {
	case secondStream:
		t = keydir.Stream
	case secondGroups:
		t = keydir.StreamGroups
	}
	return k, t, tag&^TagSequence == byte(KindExtended) && extended(t) && ValidKind(k, t)
}

// InSecond reports whether a byte of a second table follows a tag.
func InSecond(tag byte) bool { return Kind(tag&15) == KindExtended }
