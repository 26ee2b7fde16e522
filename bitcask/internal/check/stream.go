package check

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// stream checks the entries of a stream, and recounts them: as many as the meta record says, and those
// after its Last.
func (c *checker) stream(sp *namespace.Space, coll keydir.Collection, key string) {
	count := c.elements(sp, coll)
	if count != coll.Len() {
		c.found("I5", "", 0, key, "the keydir has %d entries, counted %d", coll.Len(), count)
	}
	loc := coll.Meta()
	if loc == 0 {
		if count == 0 {
			c.found("I5", "", 0, key, "a stream without entries and without a meta record")
		}
		return
	}
	value, ok := c.leads(sp, format.LocatedBy(format.HomeMeta, keydir.Stream), keydir.Stream, key, format.MetaStream, loc, true)
	if !ok {
		return
	}
	file, at := format.DataName(loc.Segment()), int64(loc.Offset())
	m, ok := format.ParseStreamMeta([]byte(value))
	switch {
	case !ok:
		c.found("I5", file, at, key, "meta record says %q", value)
	case count != m.Len+coll.CountEntries(m.Last):
		c.found("I5", file, at, key, "meta record says %d entries up to %d-%d, the keydir has %d", m.Len, m.Last.Ms, m.Last.Seq, count)
	default:
		coll.AscendEntries(keydir.StreamID{}, func(first keydir.StreamID, _ keydir.Loc) bool {
			if first.Less(m.First) {
				c.found("I5", file, at, key, "entry %d-%d, and those before %d-%d are gone", first.Ms, first.Seq, m.First.Ms, m.First.Seq)
			}
			return false
		})
	}
}
