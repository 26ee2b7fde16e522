package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Reading within a transaction: from the log, or from what the transaction has written so far.

// Find reports what key holds: its slot and, for a collection, its handle. The Type is None if it holds nothing.
func (t *Tx) Find(ns int, key string) (keydir.Slot, keydir.Collection, error) {
	h, err := t.hash(key)
	if err != nil {
		return keydir.Slot{}, keydir.Collection{}, err
	}
	sp := t.s.spaces.Of(ns)
	if sp == nil {
		return keydir.Slot{}, keydir.Collection{}, nil
	}
	slot, coll, err := t.find(sp, h, key)
	if coll.Valid() && coll.Empty() {
		return keydir.Slot{}, keydir.Collection{}, err // emptied in this transaction
	}
	if slot.Type != keydir.None {
		sp.Dir.Visit(h)
	}
	return slot, coll, err
}

// Len is the number of keys of a namespace, without the collections that were
// emptied in this transaction: those go at its commit.
func (t *Tx) Len(ns int) int {
	if !t.open {
		return 0
	}
	t.materialize()
	sp := t.s.spaces.Of(ns)
	if sp == nil {
		return 0
	}
	n := sp.Dir.Len()
	for i := range t.touched {
		if tf := &t.touched[i]; tf.sp == sp {
			if coll, ok := sp.Dir.FindCollection(tf.h, tf.key); ok && coll.Empty() {
				n--
			}
		}
	}
	return n
}

func (t *Tx) find(sp *namespace.Space, h uint64, key string) (keydir.Slot, keydir.Collection, error) {
	for i := 0; ; i++ {
		slot, ok := sp.Dir.Find(h, i)
		if !ok {
			return keydir.Slot{}, keydir.Collection{}, nil
		}
		switch slot.Type {
		case keydir.Deadline, keydir.FieldDeadlines, keydir.StreamGroups:
		case keydir.String:
			match, err := t.prove(sp, slot.Loc, key)
			if err != nil || match {
				return slot, keydir.Collection{}, err
			}
		default:
			if coll, ok := sp.Dir.FindCollection(h, key); ok {
				return keydir.Slot{Type: coll.Type(), Loc: slot.Loc}, coll, nil
			}
		}
	}
}

// deadlineSlot finds the slot of the deadline record of key. The key itself exists, so a slot of the same hash is its
// own unless two hashes collide; the record decides.
func (t *Tx) deadlineSlot(sp *namespace.Space, h uint64, key string) (keydir.Slot, bool, error) {
	for i := 0; ; i++ {
		slot, ok := sp.Dir.Find(h, i)
		if !ok {
			return slot, false, nil
		}
		if slot.Type != keydir.Deadline {
			continue
		}
		q := segment.Query{Namespace: sp.ID, Kind: KindDeadline, Type: keydir.Deadline, Key: key}
		_, _, match, err := t.get(nil, slot.Loc, &q, true)
		if err != nil || match {
			return slot, match, err
		}
	}
}

// prove reports whether the string record at loc is that of key, and remembers the place of its value.
func (t *Tx) prove(sp *namespace.Space, loc keydir.Loc, key string) (bool, error) {
	q := segment.Query{Namespace: sp.ID, Kind: KindString, Type: keydir.String, Key: key}
	value, _, match, err := t.get(nil, loc, &q, true)
	if match && !loc.Pending() {
		t.provedLoc, t.provedKey, t.proved = loc, key, value
	}
	return match, err
}

// FailOnDisk makes reads fail with err if they would have to wait for the disk, as far as the system says what it has in
// memory. nil makes them wait, as they do at first. It returns what was set before.
func (t *Tx) FailOnDisk(err error) (before error) {
	before, t.onDisk = t.onDisk, err
	return before
}

// get reads a record from the log or, if it is still waiting, from the transaction.
func (t *Tx) get(dst []byte, loc keydir.Loc, q *segment.Query, peek bool) ([]byte, int, bool, error) {
	if loc.Pending() {
		rec := t.record(t.recs.At(int(loc.Offset())))
		if !q.Matches(&rec) {
			return dst, 0, false, nil
		}
		if peek {
			return rec.Value, len(rec.Value), true, nil
		}
		return append(dst, rec.Value...), len(rec.Value), true, nil
	}
	sg, err := t.s.segmentOf(loc)
	if err != nil {
		return dst, 0, false, err
	}
	q.OnDisk = t.onDisk
	return sg.Get(dst, loc, q, peek)
}

// Value appends to dst the value of a string or element that Find or a collection
// gave loc for. elem is ignored for strings.
func (t *Tx) Value(dst []byte, ns int, key, elem string, typ keydir.Type, loc keydir.Loc) ([]byte, error) {
	if !t.open {
		return dst, ErrTxDone
	}
	if typ == keydir.String && loc == t.provedLoc {
		sg, err := t.s.segmentOf(loc)
		if err != nil {
			return dst, err
		}
		return sg.AppendFrom(dst, t.proved, loc)
	}
	dst, _, err := t.value(dst, ns, key, elem, typ, loc, false)
	return dst, err
}

// maxTogether is after how many bytes Values stops, so that elements, however long, are read in bounded memory.
const maxTogether = 64 << 10

// Values is Value of several elements of a collection. It appends their values to dst, one after another, and where
// each ends to ends. It may stop after any but the first.
func (t *Tx) Values(dst []byte, ends []int, ns int, key string, elems []string, typ keydir.Type, locs []keydir.Loc) ([]byte, []int, error) {
	if !t.open {
		return dst, ends, ErrTxDone
	}
	q, err := t.query(ns, key, "", typ)
	if err != nil {
		return dst, ends, err
	}
	q.OnDisk = t.onDisk
	limit := len(dst) + maxTogether
	for done := len(ends); len(locs) > 0 && len(dst) < limit; {
		if loc := locs[0]; loc.Pending() {
			dst, _, err = t.value(dst, ns, key, elems[0], typ, loc, false)
			ends = append(ends, len(dst))
		} else if sg, missing := t.s.segmentOf(loc); missing != nil {
			err = missing
		} else {
			dst, ends, err = sg.AppendElements(dst, ends, &q, elems, locs, limit)
		}
		if err != nil {
			return dst, ends, err
		}
		n := len(ends) - done
		elems, locs, done = elems[n:], locs[n:], len(ends)
	}
	return dst, ends, nil
}

// ValuePart is Value of the bytes from one position to another, as far as there are any.
func (t *Tx) ValuePart(dst []byte, ns int, key, elem string, typ keydir.Type, loc keydir.Loc, from, to int) ([]byte, error) {
	if !t.open {
		return dst, ErrTxDone
	}
	if loc.Pending() {
		value, n, err := t.value(nil, ns, key, elem, typ, loc, true)
		return append(dst, value[min(from, n):min(to, n)]...), err
	}
	sg, err := t.s.segmentOf(loc)
	if err != nil {
		return dst, err
	}
	if typ == keydir.String && loc == t.provedLoc {
		n := len(t.proved)
		return sg.AppendFrom(dst, t.proved[min(from, n):min(to, n)], loc)
	}
	q, err := t.query(ns, key, elem, typ)
	if err != nil {
		return dst, err
	}
	q.OnDisk = t.onDisk
	dst, match, err := sg.GetPart(dst, loc, &q, from, to)
	if err == nil && !match {
		err = sg.NotNamed(loc)
	}
	return dst, err
}

// ValueLen is the length of what Value would append.
func (t *Tx) ValueLen(ns int, key, elem string, typ keydir.Type, loc keydir.Loc) (int, error) {
	if !t.open {
		return 0, ErrTxDone
	}
	if typ == keydir.String && loc == t.provedLoc {
		return len(t.proved), nil
	}
	_, n, err := t.value(nil, ns, key, elem, typ, loc, true)
	return n, err
}

func (t *Tx) value(dst []byte, ns int, key, elem string, typ keydir.Type, loc keydir.Loc, peek bool) ([]byte, int, error) {
	q, err := t.query(ns, key, elem, typ)
	if err != nil {
		return dst, 0, err
	}
	dst, n, match, err := t.get(dst, loc, &q, peek)
	if err == nil && !match {
		err = t.notNamed(loc)
	}
	return dst, n, err
}

// notNamed is the error for a location that leads to an intact record of another name.
func (t *Tx) notNamed(loc keydir.Loc) error {
	sg, err := t.s.segmentOf(loc)
	if err == nil {
		err = sg.NotNamed(loc)
	}
	return err
}

// query is what the record of a string or element has to be.
func (t *Tx) query(ns int, key, elem string, typ keydir.Type) (segment.Query, error) {
	sp := t.s.spaces.Of(ns)
	if sp == nil {
		return segment.Query{}, ErrNotFound
	}
	if typ == keydir.String {
		return segment.Query{Namespace: sp.ID, Kind: KindString, Type: typ, Key: key}, nil
	}
	return segment.Query{Namespace: sp.ID, Kind: KindElement, Type: typ, Key: key, Elem: elem}, nil
}
