package format

import (
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// IndexName is the text of the index of a list's element or of a chunk.
func IndexName(index int64) string {
	var b [16]byte
	return string(ordered.AppendHex(b[:0], ordered.Int(index)))
}

// ParseIndex is the inverse of IndexName.
func ParseIndex(elem []byte) (int64, bool) {
	u, ok := ordered.ParseHex(elem)
	return ordered.ToInt(u), ok
}

// PlaceName is the text of the place of a list's element: the index, and the sub-index unless that is zero.
func PlaceName(at keydir.ListPlace) string {
	var b [2 * ordered.HexLen]byte
	return string(appendPlace(b[:0], at))
}

func appendPlace(b []byte, at keydir.ListPlace) []byte {
	b = ordered.AppendHex(b, ordered.Int(at.Index))
	if at.Sub > 0 {
		b = ordered.AppendHex(b, at.Sub)
	}
	return b
}

// ParsePlace is the inverse of PlaceName.
func ParsePlace(elem []byte) (at keydir.ListPlace, ok bool) {
	if len(elem) <= ordered.HexLen {
		at.Index, ok = ParseIndex(elem)
		return at, ok
	}
	index, ok1 := ParseIndex(elem[:ordered.HexLen])
	sub, ok2 := ordered.ParseHex(elem[ordered.HexLen:])
	return keydir.ListPlace{Index: index, Sub: sub}, ok1 && ok2 && sub > 0
}

// RangeName is the text of the places from one to a later one, in the name of a tombstone.
func RangeName(from, to keydir.ListPlace) string {
	var b [4*ordered.HexLen + 1]byte
	return string(appendPlace(append(appendPlace(b[:0], from), '-'), to))
}

// ParseRange reads the places that a tombstone of a list names: a range, or one.
func ParseRange(elem []byte) (from, to keydir.ListPlace, ok bool) {
	i := hyphen(elem)
	if i < 0 {
		from, ok = ParsePlace(elem)
		return from, from, ok
	}
	from, ok1 := ParsePlace(elem[:i])
	to, ok2 := ParsePlace(elem[i+1:])
	return from, to, ok1 && ok2 && from.Less(to)
}

// hyphen is where the name of a range has its hyphen, -1 in another name.
func hyphen(elem []byte) int {
	for _, i := range [...]int{ordered.HexLen, 2 * ordered.HexLen} {
		if len(elem) > i && elem[i] == '-' {
			return i
		}
	}
	return -1
}

// needsOfPlaces is which bits of the manifest announce a record of a list with such a name.
func needsOfPlaces(elem []byte) Needs {
	i := hyphen(elem)
	switch {
	case i < 0 && len(elem) <= ordered.HexLen:
		return NeedsNothing
	case i < 0:
		return NeedsPlaces
	case len(elem) <= 2*ordered.HexLen+1:
		return NeedsRanges
	}
	return NeedsPlaceRanges
}
