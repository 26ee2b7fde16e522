package check

import (
	"fmt"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// segmentOf finds the open segment of a location.
func segmentOf(env *Environment, loc keydir.Loc) (*segment.Segment, error) {
	sg := env.Segments.Load().Find(loc.Segment())
	if sg == nil {
		return nil, fmt.Errorf("%s: %w", format.DataName(loc.Segment()), failure.ErrMissing)
	}
	return sg, nil
}

// stripe checks every key of one stripe, under its lock.
func (c *checker) stripe(ns, stripe int) error {
	if err := c.Lock(stripe, false); err != nil {
		return err
	}
	defer c.Unlock(stripe, false)
	if err := c.ctx.Err(); err != nil {
		return err
	}
	sp := c.Spaces.Of(ns)
	if sp == nil {
		return nil
	}
	sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		if !slot.Type.Alongside() {
			c.result.Keys++
		}
		if row := format.LocatedBy(format.HomeSlot, slot.Type); row.Home != format.NoHome {
			c.leadsTo(sp, row, slot.Type, "", "", slot.Loc, false, nil)
		} else if coll := sp.Dir.CollectionOf(h, slot); slot.Type.Alongside() {
			c.alongside(sp, h, coll)
		} else {
			c.collection(sp, coll)
		}
		return c.goesOn()
	})
	return c.ended
}

// leads checks that loc leads to the record it should, and returns the record's value. ok is false if it cannot be
// read: then there is a finding, and nothing can be said about the value.
func (c *checker) leads(sp *namespace.Space, row *format.Row, typ keydir.Type, key, elem string, loc keydir.Loc, named bool) (value string, ok bool) {
	ok = c.leadsTo(sp, row, typ, key, elem, loc, named, func(v []byte) { value = string(v) })
	return value, ok
}

// leadsTo is leads for a caller that wants the value only within a function, or not at all: long ones are not copied.
func (c *checker) leadsTo(sp *namespace.Space, row *format.Row, typ keydir.Type, key, elem string, loc keydir.Loc, named bool, fn func(value []byte)) bool {
	if !c.goesOn() {
		return false
	}
	c.Read(int64(loc.Size()))
	sg, err := segmentOf(c.Environment, loc)
	if err == nil {
		err = sg.Identify(loc, func(rec format.Record) {
			if rec.Kind != row.Kind || rec.Type != typ || rec.Namespace != sp.ID || named && (string(rec.Key) != key || string(rec.Elem) != elem) {
				c.found("I4", sg.Name, int64(loc.Offset()), key, "the keydir expects another record here")
			}
			if fn != nil {
				fn(rec.Value)
			}
		})
	}
	if err != nil {
		c.found("I4", format.DataName(loc.Segment()), int64(loc.Offset()), key, "%v", err)
	}
	return err == nil
}

func (c *checker) collection(sp *namespace.Space, coll keydir.Collection) {
	switch key, typ := coll.Key(), coll.Type(); typ {
	case keydir.Chunks:
		c.chunks(sp, coll, key)
	case keydir.Stream:
		c.stream(sp, coll, key)
	default:
		count := c.elements(sp, coll)
		if typ == keydir.List && !coll.Regular() && !c.Places() {
			head, tail := coll.Bounds()
			c.found("I5", "", 0, key, "list has holes, which MANIFEST does not announce: %d elements from %d to %d", count, head, tail)
		}
		c.meta(sp, coll, key, string(format.AppendMeta(nil, typ, 0, count)), count)
	}
}

// elements checks that each element of a collection has its record, with the score that the keydir has, and counts them.
func (c *checker) elements(sp *namespace.Space, coll keydir.Collection) (count int) {
	key, typ := coll.Key(), coll.Type()
	row := locate.ElementsOf(typ)
	locate.Each(coll, func(p *format.Place, loc keydir.Loc) bool {
		count++
		if row.Value == format.NoValue {
			c.leadsTo(sp, row, typ, key, p.Text(), loc, true, nil)
		} else if value, ok := c.leads(sp, row, typ, key, p.Text(), loc, true); ok {
			if score, _, _ := coll.Score(p.Name); !sameScore(row, p.Name, value, score) {
				c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "%q of %q differs from the keydir's", value, p.Name)
			}
		}
		return c.ended == nil
	})
	return count
}

// sameScore reports whether a value is the text of a score.
func sameScore(row *format.Row, name, value string, score uint64) bool {
	switch row.Value {
	case format.ValueScore:
		return value == string(ordered.AppendHex(nil, score))
	case format.ValueDeadline:
		return value == strconv.FormatInt(ordered.ToInt(score), 10)
	}
	want, ok := row.Score([]byte(name), []byte(value))
	return ok && want == score
}

// alongside checks a collection that stands alongside the content of a key, and that the content is there.
func (c *checker) alongside(sp *namespace.Space, h uint64, coll keydir.Collection) {
	key := coll.Key()
	c.elements(sp, coll)
	if coll.Type() == keydir.FieldDeadlines {
		LostFields(sp.Dir, h, key, coll, func(field []byte, loc keydir.Loc) {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "deadline of field %q, which is not there", field)
		})
	} else if stream, ok := sp.Dir.FindCollection(h, key); !ok || stream.Type() != keydir.Stream {
		c.found("I5", "", 0, key, "groups of a stream that is not there")
	}
}

// LostFields calls fn for the fields that have a deadline but do not exist.
func LostFields(dir *keydir.Directory, h uint64, key string, deadlines keydir.Collection, fn func(field []byte, loc keydir.Loc)) {
	hash, ok := dir.FindCollection(h, key)
	ok = ok && hash.Type() == keydir.Hash
	deadlines.Each(func(field []byte, loc keydir.Loc) bool {
		exists := false
		if ok {
			_, exists = hash.Get(format.Text(field))
		}
		if !exists {
			fn(field, loc)
		}
		return true
	})
}

// meta compares a meta record with the count.
func (c *checker) meta(sp *namespace.Space, coll keydir.Collection, key, want string, count int) {
	loc := coll.Meta()
	if loc == 0 {
		c.found("I5", "", 0, key, "no meta record")
		return
	}
	file, at := format.DataName(loc.Segment()), int64(loc.Offset())
	value, ok := c.leads(sp, format.LocatedBy(format.HomeMeta, coll.Type()), coll.Type(), key, format.MetaLen, loc, true)
	if ok && value != want || count != coll.Len() {
		c.found("I5", file, at, key, "meta record says %q, the keydir has %d elements, counted %q", value, coll.Len(), want)
	}
	if !ok || coll.Type() != keydir.List {
		return
	}
	head, tail := coll.Bounds()
	bounds := []struct{ name, value string }{{format.MetaHead, format.IndexName(head)}, {format.MetaTail, format.IndexName(tail)}}
	sg, err := segmentOf(c.Environment, loc)
	if err != nil {
		return // found above
	}
	buf := make([]byte, min(int64(loc.Size()), sg.Size.Load()-at))
	if _, err := sg.File.ReadAt(buf, at); err != nil {
		c.found("I5", file, at, key, "%v", err)
		return
	}
	first, err := format.ParseRecord(buf)
	if err != nil {
		return // found above
	}
	rest := buf[first.Size:]
	for _, w := range bounds {
		rec, err := format.ParseRecord(rest)
		if err != nil || !rec.Kind.Follows() || string(rec.Elem) != w.name || string(rec.Value) != w.value {
			c.found("I5", file, at, key, "%s is not %s", w.name, w.value)
			return
		}
		rest = rest[rec.Size:]
	}
}

// chunks checks a string in chunks and recounts its length.
func (c *checker) chunks(sp *namespace.Space, coll keydir.Collection, key string) {
	head, tail := coll.Bounds()
	size, _, _ := keydir.ChunkAt(tail)
	count, length, read := 0, int64(0), true
	for i := head; i <= tail && c.ended == nil; i++ {
		loc, ok := coll.LocAt(i)
		if !ok {
			continue
		}
		count++
		n := 0
		if !c.leadsTo(sp, locate.ElementsOf(keydir.Chunks), keydir.Chunks, key, format.IndexName(i), loc, true, func(value []byte) { n = len(value) }) {
			read = false
			continue
		}
		_, number, _ := keydir.ChunkAt(i)
		length = int64(size)*int64(number) + int64(n)
		if n > size || n == 0 {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "a chunk of %d bytes among those of %d", n, size)
		}
	}
	if !read { // its length is unknown, too
		if coll.Meta() != 0 {
			c.leads(sp, format.LocatedBy(format.HomeMeta, keydir.Chunks), keydir.Chunks, key, format.MetaLen, coll.Meta(), true)
		}
		return
	}
	c.meta(sp, coll, key, string(format.AppendMeta(nil, keydir.Chunks, length, count)), count)
}

// system checks that each system record is at its location.
func (c *checker) system() error {
	sp := new(namespace.Space)
	for name, r := range c.System.Dump() {
		value, ok := c.leads(sp, format.LocatedBy(format.HomeSystem, keydir.None), keydir.None, name, "", r.Loc, true)
		if ok && value != string(r.Value) {
			c.found("I4", format.DataName(r.Loc.Segment()), int64(r.Loc.Offset()), name, "the system record is not what is known of it")
		}
	}
	return c.ended
}
