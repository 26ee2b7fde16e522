package db_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// The operations of the model test on streams.

// modelStream is what a stream holds.
type modelStream struct {
	entries       []modelEntry
	last, deleted db.StreamID
	added         uint64
	groups        map[string]*modelGroup
}

// modelEntry is an entry, with its fields in one text.
type modelEntry struct {
	id     db.StreamID
	fields string
}

func (s *modelStream) clone() *modelStream {
	if s == nil {
		return nil
	}
	c := *s
	c.entries = slices.Clone(s.entries)
	if c.groups = maps.Clone(s.groups); c.groups != nil {
		for name, g := range c.groups {
			c.groups[name] = g.clone()
		}
	}
	return &c
}

func (s *modelStream) len() int {
	if s == nil {
		return 0
	}
	return len(s.entries)
}

func (s *modelStream) describe(b *strings.Builder) {
	fmt.Fprintf(b, " last %v deleted %v added %d", s.last, s.deleted, s.added)
	for _, e := range s.entries {
		fmt.Fprintf(b, " %v=%s", e.id, e.fields)
	}
	s.describeGroups(b)
}

func entriesOf(list []db.StreamEntry) []modelEntry {
	out := []modelEntry{}
	for _, e := range list {
		out = append(out, modelEntry{e.ID, fieldsText(e.Fields)})
	}
	return out
}

// readStream reads a stream in several ways.
func readStream(s db.Stream) (*modelStream, int, error) {
	info, err := s.Info()
	if err != nil {
		return nil, 0, err
	}
	m := &modelStream{last: info.Last, deleted: info.Deleted, added: info.Added}
	var list []db.StreamEntry
	for e, err := range s.All(db.StreamID{}) {
		if err != nil {
			return nil, 0, err
		}
		list = append(list, e)
	}
	m.entries = entriesOf(list)
	back, err := s.RangeReverse(db.StreamID{}, db.MaxStreamID, 0)
	if err != nil {
		return nil, 0, err
	}
	slices.Reverse(back)
	if !slices.Equal(entriesOf(back), m.entries) {
		return nil, 0, fmt.Errorf("%d entries up, %d down", len(list), len(back))
	}
	n, err := s.Len()
	if n != info.Len {
		err = errors.Join(err, fmt.Errorf("%d entries, %d by its information", n, info.Len))
	}
	if err == nil {
		m.groups, err = readGroups(s)
	}
	return m, n, err
}

// stream is the stream of a key; nil if there is none.
func (v *modelValue) streamOf() *modelStream {
	if v == nil {
		return nil
	}
	return v.stream
}

func (x *modelOp) makeStream(key string) *modelStream {
	v, _ := x.make(key, db.TypeStream)
	if v.stream == nil {
		v.stream = &modelStream{}
	}
	return v.stream
}

// streamID is an id near those that a stream has.
func (x *modelOp) streamID(s *modelStream) db.StreamID {
	switch {
	case s == nil || x.rng.IntN(10) == 0:
		return db.StreamID{Ms: x.rng.Uint64N(4), Seq: x.rng.Uint64N(3)}
	case x.rng.IntN(200) == 0:
		return db.MaxStreamID
	case len(s.entries) > 0 && x.rng.IntN(3) > 0:
		return s.entries[x.rng.IntN(len(s.entries))].id
	}
	return db.StreamID{Ms: s.last.Ms + x.rng.Uint64N(5), Seq: x.rng.Uint64N(3)}
}

func (x *modelOp) streamTrim(s *modelStream) db.StreamTrim {
	o := db.StreamTrim{ByID: x.rng.IntN(2) == 0, MaxLen: x.rng.IntN(max(s.len(), 8)), Approximate: x.rng.IntN(3) == 0}
	if o.ByID {
		o.MinID = x.streamID(s)
	}
	if o.Approximate {
		o.Limit = x.rng.IntN(300)
	}
	if x.rng.IntN(2) == 0 {
		o.References = db.StreamReferences(x.rng.IntN(3))
	}
	return o
}

// stays says whether a deletion that minds references leaves an entry.
func (s *modelStream) stays(how db.StreamReferences, id db.StreamID) bool {
	for _, g := range s.groups {
		if _, pending := g.pending[id]; how == structures.NeedAcknowledged && (pending || g.last.Less(id)) {
			return true
		}
	}
	return false
}

// unreference is what a deletion of an entry does to the groups.
func (s *modelStream) unreference(how db.StreamReferences, id db.StreamID) {
	if how == structures.DeleteReferences {
		for _, g := range s.groups {
			delete(g.pending, id)
		}
	}
}

// delete deletes an entry.
func (s *modelStream) delete(how db.StreamReferences, id db.StreamID) db.StreamDeletion {
	s.unreference(how, id)
	i := slices.IndexFunc(s.entries, func(e modelEntry) bool { return e.id == id })
	switch {
	case i < 0:
		return structures.EntryAbsent
	case s.stays(how, id):
		return structures.EntryKept
	}
	s.entries = slices.Delete(slices.Clone(s.entries), i, i+1)
	if s.deleted.Less(id) {
		s.deleted = id
	}
	return structures.EntryDeleted
}

// trim is what a trim does to a stream.
func (s *modelStream) trim(o db.StreamTrim) int {
	n := max(len(s.entries)-o.MaxLen, 0)
	if o.ByID {
		for n = 0; n < len(s.entries) && s.entries[n].id.Less(o.MinID); n++ {
		}
	}
	if o.Approximate && (n < len(s.entries) || o.Limit > 0 && n > o.Limit) {
		if o.Limit > 0 {
			n = min(n, o.Limit)
		}
		n -= n % 100
	}
	var left []modelEntry
	gone := 0
	for i, e := range s.entries {
		switch {
		case gone == n || o.ByID && !e.id.Less(o.MinID):
			s.entries = append(left, s.entries[i:]...)
			return gone
		case s.stays(o.References, e.id):
			left = append(left, e)
			continue
		case len(left) > 0 && s.deleted.Less(e.id):
			s.deleted = e.id
		}
		s.unreference(o.References, e.id)
		gone++
	}
	s.entries = left
	return gone
}

func opXAdd(x *modelOp) {
	key, many := x.key(), 1
	if x.rng.IntN(25) == 0 {
		many = 50 + x.rng.IntN(150)
	}
	for range many {
		fields := make([]db.Field, 1+x.rng.IntN(3))
		for i := range fields {
			fields[i] = db.Field{Name: x.name(), Value: []byte(x.value())}
			if many > 1 {
				fields[i].Value = nil
			}
		}
		v, want := x.get(key, db.TypeStream)
		s := v.streamOf()
		if s.len() > 1000 {
			return
		}
		o := db.StreamAddOptions{Only: x.rng.IntN(8) == 0}
		if x.rng.IntN(3) == 0 {
			o.ID = x.streamID(s)
		}
		if x.rng.IntN(5) == 0 {
			trim := x.streamTrim(s)
			o.Trim = &trim
		}
		x.begin("XADD %q %+v %q", key, o, fields)
		last := db.StreamID{}
		if s != nil {
			last = s.last
		}
		id := o.ID
		if id == (db.StreamID{}) {
			if id = (db.StreamID{Ms: uint64(x.now)}); id.Ms <= last.Ms {
				id = last.Next()
			}
		}
		switch {
		case want != nil:
		case o.Only && v == nil:
			want = db.ErrNotFound
		case last == db.MaxStreamID:
			want = structures.ErrStreamExhausted
		case !last.Less(id):
			want = structures.ErrStreamIDSmall
		}
		if want == nil {
			s = x.makeStream(key)
			s.entries = append(s.entries, modelEntry{id, fieldsText(fields)})
			s.last = id
			s.added++
			if o.Trim != nil {
				s.trim(*o.Trim)
			}
		}
		got, err := x.keys.Stream(key).AddWith(o, fields...)
		x.result(got, err, id, want)
	}
}

func opXDel(x *modelOp) {
	key := x.key()
	v, want := x.get(key, db.TypeStream)
	s := v.streamOf()
	ids := make([]db.StreamID, x.rng.IntN(4))
	for i := range ids {
		ids[i] = x.streamID(s)
	}
	how, minds := db.StreamReferences(x.rng.IntN(3)), x.rng.IntN(2) == 0
	if !minds {
		how = structures.KeepReferences
	}
	x.begin("XDELEX %q %d %v", key, how, ids)
	n, became := 0, make([]db.StreamDeletion, len(ids))
	for i, id := range ids {
		became[i] = structures.EntryAbsent
		if s != nil {
			became[i] = s.delete(how, id)
		}
		if became[i] == structures.EntryDeleted {
			n++
		}
	}
	if minds {
		got, err := x.keys.Stream(key).DeleteWith(how, ids...)
		x.result(fmt.Sprint(got), err, fmt.Sprint(became), want)
		return
	}
	got, err := x.keys.Stream(key).Delete(ids...)
	x.result(got, err, n, want)
}

func opXTrim(x *modelOp) {
	key := x.key()
	v, want := x.get(key, db.TypeStream)
	s := v.streamOf()
	o := x.streamTrim(s)
	x.begin("XTRIM %q %+v", key, o)
	n := 0
	if s != nil {
		n = s.trim(o)
	}
	got, err := x.keys.Stream(key).Trim(o)
	x.result(got, err, n, want)
}

func opXSetID(x *modelOp) {
	key := x.key()
	v, want := x.get(key, db.TypeStream)
	s := v.streamOf()
	last, o := x.streamID(s), db.StreamSetID{}
	if x.rng.IntN(3) == 0 {
		n := x.rng.Uint64N(uint64(s.len()) + 5)
		o.Added = &n
	}
	if x.rng.IntN(3) == 0 {
		id := x.streamID(s)
		o.Deleted = &id
	}
	x.begin("XSETID %q %v %+v", key, last, o)
	switch {
	case o.Deleted != nil && last.Less(*o.Deleted):
		want = structures.ErrStreamSetDeleted
	case want != nil:
	case s == nil:
		want = db.ErrNotFound
	case last.Less(s.deleted):
		want = structures.ErrStreamSetBelowDeleted
	case len(s.entries) > 0 && last.Less(s.entries[len(s.entries)-1].id):
		want = structures.ErrStreamSetTop
	case len(s.entries) > 0 && o.Added != nil && *o.Added < uint64(len(s.entries)):
		want = structures.ErrStreamSetAdded
	}
	if want == nil {
		s.last = last
		if o.Added != nil {
			s.added = *o.Added
		}
		if o.Deleted != nil && *o.Deleted != (db.StreamID{}) {
			s.deleted = *o.Deleted
		}
	}
	x.result(nil, x.keys.Stream(key).SetID(last, o), nil, want)
}

func opXCreate(x *modelOp) {
	key := x.key()
	x.begin("create the stream %q", key)
	var want error
	if x.space[key] != nil {
		want = db.ErrExists
	}
	info := db.StreamInfo{Last: db.StreamID{Ms: x.rng.Uint64N(5)}, Added: x.rng.Uint64N(5)}
	x.result(nil, x.keys.Stream(key).Create(info), nil, want)
	if want == nil {
		s := x.makeStream(key)
		s.last, s.added = info.Last, info.Added
	}
}

func opXRange(x *modelOp) {
	key := x.key()
	v, want := x.get(key, db.TypeStream)
	s := v.streamOf()
	from, to, count, reverse := x.streamID(s), x.streamID(s), x.rng.IntN(6), x.rng.IntN(2) == 0
	x.begin("XRANGE %q %v %v count %d reverse %v", key, from, to, count, reverse)
	list := []modelEntry{}
	if s != nil {
		for _, e := range s.entries {
			if !e.id.Less(from) && !to.Less(e.id) {
				list = append(list, e)
			}
		}
	}
	read := x.keys.Stream(key).Range
	if reverse {
		slices.Reverse(list)
		read = x.keys.Stream(key).RangeReverse
	}
	if count > 0 {
		list = list[:min(count, len(list))]
	}
	got, err := read(from, to, count)
	if err != nil {
		list = nil
	}
	x.result(append([]modelEntry(nil), entriesOf(got)...), err, append([]modelEntry(nil), list...), want)
}

func opXInfo(x *modelOp) {
	key := x.key()
	x.begin("XLEN and XINFO %q", key)
	v, want := x.get(key, db.TypeStream)
	s := v.streamOf()
	n, err := x.keys.Stream(key).Len()
	x.result(n, err, s.len(), want)
	if want == nil {
		want = some(s != nil)
	}
	info, err := x.keys.Stream(key).Info()
	if s == nil {
		s = &modelStream{}
	}
	info.First = db.StreamID{}
	x.result(info, err, db.StreamInfo{Last: s.last, Deleted: s.deleted, Added: s.added, Len: len(s.entries)}, want)
}
