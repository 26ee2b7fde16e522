package structures_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// memory is a Txn over a real keydir with its records in a slice. A record
// remembers its name, and Value proves it, as the log does.
type memory struct {
	seed      keydir.Seed
	dir       *keydir.Directory
	records   []memoryRecord
	deadlines map[string]int64
	chunk     int // bytes of a chunk
	streams   map[string]keydir.StreamMeta
	writes    int
	deletes   int
	drops     int
	reads     int
	yields    int
	events    []string
	now       int64 // for the deadlines of fields
}

func (m *memory) Unwatched() structures.StreamTxn { return structures.Quiet{Txn: m} }

func (m *memory) Notify(e structures.EventKind, key string) {
	m.events = append(m.events, e.String()+" "+key)
}

type memoryRecord struct {
	key, elem string
	typ       keydir.Type
	value     []byte
}

func newMemory() *memory {
	seed := keydir.Seed{1, 2}
	return &memory{seed: seed, dir: keydir.NewDirectory(seed), deadlines: map[string]int64{}, streams: map[string]keydir.StreamMeta{}, chunk: 16}
}

var errName = errors.New("another record than the keydir expects")

func (m *memory) add(key, elem string, typ keydir.Type, value []byte) keydir.Loc {
	m.writes++
	m.records = append(m.records, memoryRecord{key, elem, typ, append([]byte{}, value...)})
	return keydir.MakeLoc(1, uint32(len(m.records)), uint32(64+len(value)))
}

func (m *memory) record(key, elem string, typ keydir.Type, loc keydir.Loc) (*memoryRecord, error) {
	r := &m.records[loc.Offset()-1]
	if r.key != key || r.elem != elem || r.typ != typ {
		return nil, fmt.Errorf("%w: want %v %q %q, is %v %q %q", errName, typ, key, elem, r.typ, r.key, r.elem)
	}
	return r, nil
}

// find is Find that also sees collections that have been emptied.
func (m *memory) find(key string) (keydir.Slot, keydir.Collection) {
	h := m.seed.Hash(key)
	for i := 0; ; i++ {
		slot, ok := m.dir.Find(h, i)
		if !ok {
			return keydir.Slot{}, keydir.Collection{}
		}
		if slot.Type == keydir.String {
			if m.records[slot.Loc.Offset()-1].key == key {
				return slot, keydir.Collection{}
			}
			continue
		}
		if slot.Type.Alongside() {
			continue
		}
		if f := m.dir.CollectionOf(h, slot); f.Key() == key {
			return slot, f
		}
	}
}

func (m *memory) Find(key string) (keydir.Slot, keydir.Collection, error) {
	slot, f := m.find(key)
	if f.Valid() && f.Empty() {
		return keydir.Slot{}, keydir.Collection{}, nil
	}
	if d, _, _ := m.fieldDeadlines(key); d.Valid() && d.Len() == f.Len() && d.Rank(ordered.Int(m.now)+1, "") == f.Len() {
		m.unlink(key) // all fields have expired
		return keydir.Slot{}, keydir.Collection{}, nil
	}
	return slot, f, nil
}

func (m *memory) Value(dst []byte, key, elem string, typ keydir.Type, loc keydir.Loc) ([]byte, error) {
	m.reads++
	r, err := m.record(key, elem, typ, loc)
	if err != nil {
		return dst, err
	}
	return append(dst, r.value...), nil
}

// Values stops now and then, as a store does.
func (m *memory) Values(dst []byte, ends []int, key string, elems []string, typ keydir.Type, locs []keydir.Loc) (_ []byte, _ []int, err error) {
	for i, loc := range locs[:min(len(locs), 1+m.reads%7)] {
		if dst, err = m.Value(dst, key, elems[i], typ, loc); err != nil {
			return dst, ends, err
		}
		ends = append(ends, len(dst))
	}
	return dst, ends, nil
}

func (m *memory) ValuePart(dst []byte, key, elem string, typ keydir.Type, loc keydir.Loc, from, to int) ([]byte, error) {
	m.reads++
	r, err := m.record(key, elem, typ, loc)
	if err != nil {
		return dst, err
	}
	return append(dst, r.value[min(from, len(r.value)):min(to, len(r.value))]...), nil
}

func (m *memory) ValueLen(key, elem string, typ keydir.Type, loc keydir.Loc) (int, error) {
	r, err := m.record(key, elem, typ, loc)
	if err != nil {
		return 0, err
	}
	return len(r.value), nil
}

func (m *memory) Step(int) error  { return nil }
func (m *memory) Room(int) error  { return nil }
func (m *memory) Yield()          { m.yields++ }
func (m *memory) Apart(fn func()) { fn() }

func (m *memory) unlink(key string) bool {
	h := m.seed.Hash(key)
	slot, f := m.find(key)
	switch {
	case f.Valid():
		existed := !f.Empty()
		delete(m.streams, key)
		if d, ok := m.dir.FindAlongside(h, key, keydir.FieldDeadlines); ok {
			m.dir.DropCollection(h, d)
		}
		if g, ok := m.dir.FindAlongside(h, key, keydir.StreamGroups); ok {
			m.dir.DropCollection(h, g)
		}
		m.dir.DropCollection(h, f)
		return existed
	case slot.Type == keydir.String:
		m.dir.Delete(h, slot)
		return true
	}
	return false
}

func (m *memory) PutString(key string, value []byte) error {
	loc := m.add(key, "", keydir.String, value)
	m.unlink(key)
	m.dir.Insert(m.seed.Hash(key), keydir.Slot{Type: keydir.String, Loc: loc})
	return nil
}

func (m *memory) PutChunks(key string, value []byte, size int) (keydir.Collection, error) {
	value = bytes.Clone(value) // of chunks of this very string, perhaps
	m.unlink(key)
	f := m.dir.NewCollection(m.seed.Hash(key), keydir.Chunks, key)
	for i := 0; i*size < len(value); i++ {
		if err := m.PutIndex(key, f, keydir.ChunkIndex(size, i), value[i*size:min((i+1)*size, len(value))]); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (m *memory) ChunkSize() int { return m.chunk }

func (m *memory) Collection(key string, typ keydir.Type) (keydir.Collection, error) {
	slot, f := m.find(key)
	switch {
	case slot.Type == typ:
		return f, nil
	case f.Valid() && f.Len() == 0:
		m.unlink(key)
	case slot.Type != keydir.None:
		panic("BUG: the caller has not checked the type")
	}
	return m.dir.NewCollection(m.seed.Hash(key), typ, key), nil
}

func (m *memory) PutElem(key string, f keydir.Collection, elem string, value []byte) error {
	f.Put(string([]byte(elem)), m.add(key, string([]byte(elem)), f.Type(), value))
	return nil
}

func (m *memory) PutScored(key string, f keydir.Collection, elem string, score uint64) error {
	f.PutScored(elem, score, m.add(key, elem, keydir.ZSet, nil))
	return nil
}

func (m *memory) PutIndex(key string, f keydir.Collection, index int64, value []byte) error {
	f.PutAt(index, m.add(key, string(structures.AppendIndex(nil, index)), f.Type(), value))
	return nil
}

func (m *memory) PutPlace(key string, f keydir.Collection, at keydir.ListPlace, value []byte) error {
	f.PutPlace(at, m.add(key, string(structures.AppendPlace(nil, at)), f.Type(), value))
	return nil
}

func (m *memory) PutEntry(key string, f keydir.Collection, id keydir.StreamID, value []byte) error {
	f.PutEntry(id, m.add(key, fmt.Sprintf("%016x-%016x", id.Ms, id.Seq), keydir.Stream, value))
	return nil
}

func (m *memory) DeleteEntry(key string, f keydir.Collection, id keydir.StreamID) (bool, error) {
	_, existed := f.DeleteEntry(id)
	return existed, nil
}

func (m *memory) StreamMeta(key string, f keydir.Collection) (keydir.StreamMeta, error) {
	s := m.streams[key]
	if last, ok := f.LastEntry(); ok && s.Last.Less(last) {
		s.Added += uint64(f.CountEntries(s.Last))
		s.Last = last
	}
	s.Len = f.Len()
	return s, nil
}

func (m *memory) LastEntryID(key string, f keydir.Collection) (keydir.StreamID, error) {
	s, err := m.StreamMeta(key, f)
	return s.Last, err
}

func (m *memory) PutStreamMeta(key string, f keydir.Collection, s keydir.StreamMeta) error {
	if old := m.streams[key].First; s.First.Less(old) {
		s.First = old
	}
	f.TrimEntries(s.First)
	m.streams[key] = s
	f.SetMeta(m.add(key, "", keydir.Stream, nil))
	return nil
}

func (m *memory) NotedGroup() (*structures.NotedGroup, uint64) { return nil, 0 }

func (m *memory) StreamGroups(key string) (keydir.Collection, error) {
	g, _ := m.dir.FindAlongside(m.seed.Hash(key), key, keydir.StreamGroups)
	return g, nil
}

func (m *memory) PutGroups(key string, _ keydir.Collection, elem string, value []byte) error {
	score, ok := keydir.GroupsScore([]byte(elem), value)
	if !ok {
		return fmt.Errorf("%q is no value of %q", value, elem)
	}
	g, _ := m.StreamGroups(key)
	if !g.Valid() {
		g = m.dir.NewCollection(m.seed.Hash(key), keydir.StreamGroups, key)
	}
	loc := m.add(key, elem, keydir.StreamGroups, value)
	g.PutScored(elem, score, loc)
	return nil
}

func (m *memory) DeleteGroups(key string, _ keydir.Collection, elem string) (n int, err error) {
	g, _ := m.StreamGroups(key)
	ranges, ok := keydir.GroupsRangeOf([]byte(elem))
	if !g.Valid() || !ok {
		return 0, nil
	}
	for _, elem := range append(g.Within(ranges), elem) {
		if _, _, had := g.DeleteScored(elem); had {
			n++
		}
	}
	if g.Len() == 0 {
		m.dir.DropCollection(m.seed.Hash(key), g)
	}
	return n, nil
}

func (m *memory) DeleteElem(key string, f keydir.Collection, elem string) (existed bool, err error) {
	if f.Type() == keydir.ZSet {
		_, _, existed = f.DeleteScored(elem)
	} else {
		_, existed = f.Delete(elem)
	}
	if existed {
		m.deletes++
		if _, err := m.ClearFieldDeadline(key, elem); err != nil {
			return false, err
		}
	}
	return existed, nil
}

func (m *memory) fieldDeadlines(key string) (keydir.Collection, int64, error) {
	d, _ := m.dir.FindAlongside(m.seed.Hash(key), key, keydir.FieldDeadlines)
	return d, m.now, nil
}

func (m *memory) FieldDeadlines(key string) (keydir.Collection, int64, error) {
	return m.fieldDeadlines(key)
}

func (m *memory) SetFieldDeadline(key, field string, ms int64) error {
	_, f := m.find(key)
	if _, ok := f.Get(field); !ok {
		panic("BUG: a deadline for a field that does not exist")
	}
	d, _, _ := m.fieldDeadlines(key)
	if !d.Valid() {
		d = m.dir.NewCollection(m.seed.Hash(key), keydir.FieldDeadlines, key)
	}
	d.PutScored(field, ordered.Int(ms), 1)
	return nil
}

func (m *memory) ClearFieldDeadline(key, field string) (bool, error) {
	d, _, _ := m.fieldDeadlines(key)
	if !d.Valid() {
		return false, nil
	}
	_, _, had := d.DeleteScored(field)
	if d.Len() == 0 {
		m.dir.DropCollection(m.seed.Hash(key), d)
	}
	return had, nil
}

func (m *memory) DeleteRange(key string, f keydir.Collection, from, to keydir.ListPlace) (int, error) {
	n := f.DeleteRange(from, to).Len()
	m.deletes += n
	return n, nil
}

func (m *memory) Drop(key string) (bool, error) {
	m.drops++
	delete(m.deadlines, key)
	return m.unlink(key), nil
}

func (m *memory) Deadline(key string) (int64, bool) {
	ms, ok := m.deadlines[key]
	return ms, ok
}

func (m *memory) SetDeadline(key string, ms int64) error {
	if slot, _, _ := m.Find(key); slot.Type == keydir.None {
		panic("BUG: a deadline for a key that does not exist")
	}
	m.deadlines[key] = ms
	return nil
}

func (m *memory) ClearDeadline(key string) (bool, error) {
	_, ok := m.deadlines[key]
	delete(m.deadlines, key)
	return ok, nil
}

// commit removes collections that have been emptied, as the end of a transaction
// does.
func (m *memory) commit(keys ...string) {
	for _, key := range keys {
		if _, f := m.find(key); f.Valid() && f.Len() == 0 {
			m.unlink(key)
		}
	}
}

// Short ways to a key's types.
func (m *memory) string(key string) structures.String { return structures.String{Txn: m, Key: key} }
func (m *memory) hash(key string) structures.Hash     { return structures.Hash{Txn: m, Key: key} }
func (m *memory) list(key string) structures.List     { return structures.List{Txn: m, Key: key} }
func (m *memory) set(key string) structures.Set       { return structures.Set{Txn: m, Key: key} }
func (m *memory) zset(key string) structures.SortedSet {
	return structures.SortedSet{Txn: m, Key: key}
}
func (m *memory) key(key string) structures.Key { return structures.Key{Txn: m, Key: key} }

// oneOfEach holds a key of every type, named after it.
func oneOfEach(t *testing.T) *memory {
	t.Helper()
	m := newMemory()
	_, err1 := m.string("string").Set([]byte("v"), structures.SetOptions{})
	_, err2 := m.hash("hash").Put("f", []byte("v"))
	_, err3 := m.list("list").Push(structures.Back, [][]byte{[]byte("v")}, 0)
	_, err4 := m.set("set").Add([]string{"m"})
	_, err5 := m.zset("zset").Add([]structures.Scored{{Member: "m", Score: 1}}, 0)
	must(t, errors.Join(err1, err2, err3, err4, err5))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
