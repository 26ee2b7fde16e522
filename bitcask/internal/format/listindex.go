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
