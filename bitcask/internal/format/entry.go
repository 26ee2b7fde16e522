package format

import (
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/keydir"
)

// Entry is what loading needs to know of one record and its followers. Its
// slices are valid until the source of entries moves on.
type Entry struct {
	Identity
	Seq    uint64
	At     uint32 // offset of the record in its segment
	Size   uint32 // with the records that follow it
	Inline []byte // the value, for the kinds that RAM holds the value of
}

// Inlined reports whether the keydir needs the value of such a record.
func Inlined(k Kind, t keydir.Type) bool {
	return k == KindDeadline || k == KindFieldDeadline || k == KindNamespaces || k == KindSystem ||
		k == KindElement && (t == keydir.ZSet || t == keydir.StreamGroups) || k == KindMeta && t == keydir.Stream
}

// Deadline is what an entry of KindDeadline or KindFieldDeadline says.
func (e *Entry) Deadline(file string) (int64, error) {
	ms, err := strconv.ParseInt(Text(e.Inline), 10, 64)
	if err != nil {
		return 0, &failure.CorruptError{File: file, Offset: int64(e.At), Reason: "deadline is not a number"}
	}
	return ms, nil
}
