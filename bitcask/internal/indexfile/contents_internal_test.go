package indexfile

import (
	"reflect"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// FuzzIndexContents decodes arbitrary bytes: they are refused, or encode to the same.
func FuzzIndexContents(f *testing.F) {
	c := &Contents{UpTo: 7, Fresh: namespace.FirstFreshSpace + 3, Record: keydir.MakeLoc(1, 2, 3), Moved: map[uint32]uint32{1: 65537, 2: 1}}
	for i := range c.Stripes {
		c.Stripes[i] = 7 + uint64(i)
	}
	c.End = format.Mark{Opening: 1, Sequence: 7 + keydir.Stripes, Segment: 9, Length: 50, Sum: 6}
	c.Segments = []Segment{{ID: 1, Length: 100, Foot: format.Footer{Records: 1, MinSeq: 2, MaxSeq: 3}, End: 4}, {ID: 9, Length: 40}}
	c.Live = map[uint32]int64{1: 60, 9: 0}
	c.Sections = []Section{{Space: 1, Stripe: 0, Offset: 72, Length: 3, Crc: 5, Counts: keydir.Counts{Keys: 3, Deadlines: 2, FieldDeadlines: 1}}, {Space: 0, Stripe: 255, Offset: 75, Length: 9}}
	c.System = system.Names{"a": {Value: []byte("1"), Seq: 9, Loc: keydir.MakeLoc(1, 40, 20)}, "b": {Value: []byte{}, Seq: 8, Loc: keydir.MakeLoc(1, 90, 20)}}
	f.Add(c.Encode())
	f.Add((&Contents{Fresh: namespace.FirstFreshSpace}).Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := Decode(b, Version)
		if !ok {
			return
		}
		again, ok := Decode(c.Encode(), Version)
		if !ok || !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v became %+v, %v", c, again, ok)
		}
	})
}
