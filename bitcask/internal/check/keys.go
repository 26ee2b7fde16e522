package check

import (
	"fmt"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
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
		switch slot.Type {
		case keydir.String:
			c.result.Keys++
			c.leads(sp, format.KindString, slot.Type, "", "", slot.Loc, false)
		case keydir.Deadline:
			c.leads(sp, format.KindDeadline, slot.Type, "", "", slot.Loc, false)
		case keydir.FieldDeadlines:
			c.fieldDeadlines(sp, h, sp.Dir.CollectionOf(h, slot))
		case keydir.StreamGroups:
			c.streamGroups(sp, h, sp.Dir.CollectionOf(h, slot))
		default:
			c.result.Keys++
			c.collection(sp, sp.Dir.CollectionOf(h, slot))
		}
		return c.goesOn()
	})
	return c.ended
}

// leads checks that loc leads to the record it should, and returns the record's value. ok is false if it cannot be
// read: then there is a finding, and nothing can be said about the value.
func (c *checker) leads(sp *namespace.Space, k format.Kind, typ keydir.Type, key, elem string, loc keydir.Loc, named bool) (value string, ok bool) {
	if !c.goesOn() {
		return "", false
	}
	c.Read(int64(loc.Size()))
	sg, err := segmentOf(c.Environment, loc)
	if err == nil {
		err = sg.Identify(loc, func(rec *format.Record) {
			value = string(rec.Value)
			if rec.Kind != k || rec.Type != typ || rec.Namespace != sp.ID || named && (string(rec.Key) != key || string(rec.Elem) != elem) {
				c.found("I4", sg.Name, int64(loc.Offset()), key, "the keydir expects another record here")
			}
		})
	}
	if err != nil {
		c.found("I4", format.DataName(loc.Segment()), int64(loc.Offset()), key, "%v", err)
	}
	return value, err == nil
}

func (c *checker) collection(sp *namespace.Space, coll keydir.Collection) {
	key, typ := coll.Key(), coll.Type()
	count := 0
	switch typ {
	case keydir.Chunks:
		c.chunks(sp, coll, key)
		return
	case keydir.Stream:
		c.stream(sp, coll, key)
		return
	case keydir.List:
		head, tail := coll.Bounds()
		for i := head; i <= tail && c.ended == nil; i++ {
			if loc, ok := coll.LocAt(i); ok {
				count++
				c.leads(sp, format.KindElement, typ, key, format.IndexName(i), loc, true)
			}
		}
		if int64(count) != tail-head+1 {
			c.found("I5", "", 0, key, "list has holes: %d elements from %d to %d", count, head, tail)
		}
	default:
		coll.Scan(0, func(_ uint64, elem []byte, loc keydir.Loc) bool {
			count++
			value, ok := c.leads(sp, format.KindElement, typ, key, string(elem), loc, true)
			if ok && typ == keydir.ZSet {
				if score, _, _ := coll.Score(string(elem)); value != string(ordered.AppendHex(nil, score)) {
					c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "score %s of member %q differs from the keydir's", value, elem)
				}
			}
			return c.ended == nil
		})
	}
	c.meta(sp, coll, key, string(format.AppendMeta(nil, typ, 0, count)), count)
}

// fieldDeadlines checks the deadlines of the fields of one hash.
func (c *checker) fieldDeadlines(sp *namespace.Space, h uint64, coll keydir.Collection) {
	key := coll.Key()
	coll.Scan(0, func(_ uint64, field []byte, loc keydir.Loc) bool {
		value, ok := c.leads(sp, format.KindFieldDeadline, keydir.FieldDeadlines, key, string(field), loc, true)
		if score, _, _ := coll.Score(string(field)); ok && value != strconv.FormatInt(ordered.ToInt(score), 10) {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "deadline %s of field %q differs from the keydir's", value, field)
		}
		return c.ended == nil
	})
	LostFields(sp.Dir, h, key, coll, func(field []byte, loc keydir.Loc) {
		c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "deadline of field %q, which is not there", field)
	})
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
	value, ok := c.leads(sp, format.KindMeta, coll.Type(), key, format.MetaLen, loc, true)
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
		if err != nil || rec.Kind != format.KindBound || string(rec.Elem) != w.name || string(rec.Value) != w.value {
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
		value, ok := c.leads(sp, format.KindElement, keydir.Chunks, key, format.IndexName(i), loc, true)
		if !ok {
			read = false
			continue
		}
		_, number, _ := keydir.ChunkAt(i)
		length = int64(size)*int64(number) + int64(len(value))
		if len(value) > size || len(value) == 0 {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "a chunk of %d bytes among those of %d", len(value), size)
		}
	}
	if !read { // its length is unknown, too
		if coll.Meta() != 0 {
			c.leads(sp, format.KindMeta, keydir.Chunks, key, format.MetaLen, coll.Meta(), true)
		}
		return
	}
	c.meta(sp, coll, key, string(format.AppendMeta(nil, keydir.Chunks, length, count)), count)
}

// system checks that each system record is at its location.
func (c *checker) system() {
	sp := new(namespace.Space)
	for name, r := range c.System.Dump() {
		value, ok := c.leads(sp, format.KindSystem, keydir.None, name, "", r.Loc, true)
		if ok && value != string(r.Value) {
			c.found("I4", format.DataName(r.Loc.Segment()), int64(r.Loc.Offset()), name, "the system record is not what is known of it")
		}
	}
}
