package bitcask

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/keydir"
)

// A stream is a collection of entries in order of id, and an append is one record. Only what changes
// a stream in another way adds a meta record, by which everything else that is known of the stream
// can be told: what has been appended since has greater ids than the meta record's Last. That record
// is the tombstone of all entries before its First, too, so trimming a stream is one record. First
// never goes back while the key exists: the newest meta record hides all that an older one has hidden.
// A stream without entries exists as long as it has a meta record.

// PutEntry adds an entry to a stream.
func (t *Tx) PutEntry(ns int, key string, coll keydir.Collection, id keydir.StreamID, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	if coll.Full() {
		return fmt.Errorf("bitcask: %s of %d entries: %w", coll.Type(), coll.Len(), ErrIndexFull)
	}
	loc, err := t.add(KindElement, keydir.Stream, sp, h, key, format.EntryName(id), value)
	if err != nil {
		return err
	}
	old, had := coll.PutEntry(id, loc)
	t.undo.Append(undo.Op{Kind: undo.PutEntry, Dir: sp.Dir, Hash: h, Key: key, ID: id, Loc: old, Had: had})
	return nil
}

// DeleteEntry removes an entry of a stream. It reports whether it was there; then PutStreamMeta follows.
func (t *Tx) DeleteEntry(ns int, key string, coll keydir.Collection, id keydir.StreamID) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	old, had := coll.DeleteEntry(id)
	if !had {
		return false, nil
	}
	t.undo.Append(undo.Op{Kind: undo.DeleteEntry, Dir: sp.Dir, Hash: h, Key: key, ID: id, Loc: old})
	_, err = t.add(KindElementTombstone, keydir.Stream, sp, h, key, format.EntryName(id), nil)
	return err == nil, err
}

// StreamMeta returns what is known of a stream, its latest appends included.
func (t *Tx) StreamMeta(ns int, key string, coll keydir.Collection) (m keydir.StreamMeta, err error) {
	if m, err = t.storedMeta(ns, key, coll); err != nil {
		return m, err
	}
	if last, ok := coll.LastEntry(); ok && m.Last.Less(last) {
		m.Added += uint64(coll.CountEntries(m.Last))
		m.Last = last
	}
	m.Len = coll.Len()
	return m, nil
}

// LastEntryID returns the Last of StreamMeta. O(log n).
func (t *Tx) LastEntryID(ns int, key string, coll keydir.Collection) (keydir.StreamID, error) {
	m, err := t.storedMeta(ns, key, coll)
	if err != nil {
		return m.Last, err
	}
	if last, ok := coll.LastEntry(); ok && m.Last.Less(last) {
		m.Last = last
	}
	return m.Last, nil
}

// storedMeta is what the meta record of a stream says; zeros if there is none.
func (t *Tx) storedMeta(ns int, key string, coll keydir.Collection) (m keydir.StreamMeta, err error) {
	if !t.open {
		return m, ErrTxDone
	}
	loc := coll.Meta()
	sp := t.s.spaces.Of(ns)
	if loc == 0 || sp == nil {
		return m, nil
	}
	q := segment.Query{Namespace: sp.ID, Kind: KindMeta, Type: keydir.Stream, Key: key, Elem: format.MetaStream}
	value, _, match, err := t.get(nil, loc, &q, true)
	if err != nil {
		return m, err
	}
	m, ok := format.ParseStreamMeta(value)
	if !match || !ok {
		return m, &CorruptError{File: format.DataName(loc.Segment()), Offset: int64(loc.Offset()), Reason: format.BadStreamMeta}
	}
	return m, nil
}

// PutStreamMeta writes the meta record of a stream, and removes all entries before m.First. It sets
// m.Len itself, and leaves First where it is if m.First is before that.
func (t *Tx) PutStreamMeta(ns int, key string, coll keydir.Collection, m keydir.StreamMeta) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	stored, err := t.storedMeta(ns, key, coll)
	if err != nil {
		return err
	}
	if m.First.Less(stored.First) {
		m.First = stored.First
	}
	if trimmed := coll.TrimEntries(m.First); trimmed.Len() > 0 {
		t.undo.Append(undo.Op{Kind: undo.Trim, Dir: sp.Dir, Hash: h, Key: key, Trimmed: &trimmed})
	}
	m.Len = coll.Len()
	var b [format.StreamMetaSize]byte
	loc, err := t.add(KindMeta, keydir.Stream, sp, h, key, format.MetaStream, format.AppendStreamMeta(b[:0], m))
	if err != nil {
		return err
	}
	t.undo.Append(undo.Op{Kind: undo.Meta, Dir: sp.Dir, Hash: h, Key: key, Loc: coll.Meta()})
	coll.SetMeta(loc)
	return nil
}
