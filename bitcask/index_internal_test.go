package bitcask

import (
	"reflect"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// FuzzIndexContents decodes arbitrary bytes: they are refused, or encode to the same.
func FuzzIndexContents(f *testing.F) {
	c := &indexContents{upTo: 7, fresh: firstFreshSpace + 3, record: keydir.MakeLoc(1, 2, 3), moved: map[uint32]uint32{1: 65537, 2: 1}}
	for i := range c.stripes {
		c.stripes[i] = 7 + uint64(i)
	}
	c.end = Mark{Opening: 1, Sequence: 7 + keydir.Stripes, Segment: 9, Length: 50, Sum: 6}
	c.segments = []indexSegment{{id: 1, length: 100, foot: format.Footer{Records: 1, MinSeq: 2, MaxSeq: 3}, end: 4}, {id: 9, length: 40}}
	c.sections = []indexSection{{space: 1, stripe: 0, offset: 72, length: 3, crc: 5}, {space: 0, stripe: 255, offset: 75, length: 9}}
	c.system = systemNames{"a": {value: []byte("1"), seq: 9, loc: keydir.MakeLoc(1, 40, 20)}, "b": {value: []byte{}, seq: 8, loc: keydir.MakeLoc(1, 90, 20)}}
	f.Add(c.encode())
	f.Add((&indexContents{fresh: firstFreshSpace}).encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := decodeIndex(b)
		if !ok {
			return
		}
		again, ok := decodeIndex(c.encode())
		if !ok || !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v became %+v, %v", c, again, ok)
		}
	})
}
