package format

import "github.com/stavedb/stave/internal/ordered"

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

// RangeName is the text of the indexes from one to a greater one, in the name of a tombstone.
func RangeName(from, to int64) string {
	var b [2*ordered.HexLen + 1]byte
	return string(ordered.AppendHex(append(ordered.AppendHex(b[:0], ordered.Int(from)), '-'), ordered.Int(to)))
}

// ParseRange reads the indexes that a tombstone of a list names: a range, or one.
func ParseRange(elem []byte) (from, to int64, ok bool) {
	if !isRange(elem) {
		from, ok = ParseIndex(elem)
		return from, from, ok
	}
	from, ok1 := ParseIndex(elem[:ordered.HexLen])
	to, ok2 := ParseIndex(elem[ordered.HexLen+1:])
	return from, to, ok1 && ok2 && from < to
}

func isRange(elem []byte) bool {
	return len(elem) == 2*ordered.HexLen+1 && elem[ordered.HexLen] == '-'
}
