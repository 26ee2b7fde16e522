package format

import (
	"bytes"
	"strconv"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// EntryName is the text of the id of a stream's entry in its name: time and number, each in 16 hex
// digits, so that names sort as ids do.
func EntryName(id keydir.StreamID) string {
	var b [2*ordered.HexLen + 1]byte
	return string(ordered.AppendHex(append(ordered.AppendHex(b[:0], id.Ms), '-'), id.Seq))
}

// ParseEntryName is the inverse of EntryName.
func ParseEntryName(elem []byte) (id keydir.StreamID, ok bool) {
	if len(elem) != 2*ordered.HexLen+1 || elem[ordered.HexLen] != '-' {
		return id, false
	}
	ms, ok1 := ordered.ParseHex(elem[:ordered.HexLen])
	seq, ok2 := ordered.ParseHex(elem[ordered.HexLen+1:])
	return keydir.StreamID{Ms: ms, Seq: seq}, ok1 && ok2
}

// AppendStreamMeta appends the value of the meta record of a stream: the ids First, Last and Deleted
// as "time-number", and the numbers Added and Len, all decimal, with spaces between them.
func AppendStreamMeta(dst []byte, m keydir.StreamMeta) []byte {
	for _, id := range []keydir.StreamID{m.First, m.Last, m.Deleted} {
		dst = append(strconv.AppendUint(dst, id.Ms, 10), '-')
		dst = append(strconv.AppendUint(dst, id.Seq, 10), ' ')
	}
	dst = append(strconv.AppendUint(dst, m.Added, 10), ' ')
	return strconv.AppendUint(dst, uint64(m.Len), 10)
}

// ParseStreamMeta is the inverse of AppendStreamMeta.
func ParseStreamMeta(value []byte) (m keydir.StreamMeta, ok bool) {
	ok = true
	number := func(end byte) (n uint64) {
		i := len(value)
		if end != 0 {
			i = bytes.IndexByte(value, end)
		}
		if i < 0 || i > 20 {
			ok = false
			return 0
		}
		n, err := strconv.ParseUint(string(value[:i]), 10, 64)
		if err != nil || i > 1 && value[0] == '0' {
			ok = false
		}
		if value = value[i:]; end != 0 {
			value = value[1:]
		}
		return n
	}
	for _, id := range []*keydir.StreamID{&m.First, &m.Last, &m.Deleted} {
		id.Ms, id.Seq = number('-'), number(' ')
	}
	m.Added = number(' ')
	n := number(0)
	if m.Len = int(n); n > 1<<62 {
		ok = false
	}
	return m, ok
}

// StreamMetaSize bounds the value of the meta record of a stream in bytes.
const StreamMetaSize = 3*(20+1+20+1) + 20 + 1 + 20
