package check

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// stream checks the entries of a stream, and recounts them: as many as the meta record says, and those
// after its Last.
func (c *checker) stream(sp *namespace.Space, coll keydir.Collection, key string) {
	count, first := 0, keydir.StreamID{}
	coll.AscendEntries(keydir.StreamID{}, func(id keydir.StreamID, loc keydir.Loc) bool {
		if count == 0 {
			first = id
		}
		count++
		c.leads(sp, format.KindElement, keydir.Stream, key, format.EntryName(id), loc, true)
		return c.ended == nil
	})
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
	value, ok := c.leads(sp, format.KindMeta, keydir.Stream, key, format.MetaStream, loc, true)
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
	case count > 0 && first.Less(m.First):
		c.found("I5", file, at, key, "entry %d-%d, and those before %d-%d are gone", first.Ms, first.Seq, m.First.Ms, m.First.Seq)
	}
}

// streamGroups checks what the groups of one stream have.
func (c *checker) streamGroups(sp *namespace.Space, h uint64, coll keydir.Collection) {
	key := coll.Key()
	if stream, ok := sp.Dir.FindCollection(h, key); !ok || stream.Type() != keydir.Stream {
		c.found("I5", "", 0, key, "groups of a stream that is not there")
	}
	coll.Scan(0, func(_ uint64, elem []byte, loc keydir.Loc) bool {
		value, ok := c.leads(sp, format.KindElement, keydir.StreamGroups, key, string(elem), loc, true)
		score, _, _ := coll.Score(string(elem))
		if want, valid := keydir.GroupsScore(elem, []byte(value)); ok && (!valid || want != score) {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "%q of a group differs from the keydir's", value)
		}
		return c.ended == nil
	})
}
