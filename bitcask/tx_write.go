package bitcask

import (
	"fmt"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Writing within a transaction: each call changes the keydir at once, notes how to roll that back,
// and adds a record to be committed.

// bigValue is the length in bytes from which a borrowed value is not copied into
// the transaction.
const bigValue = 1 << 20

// Borrow lets the transaction use the bytes of a long value in place when
// it commits. The caller of PutString and PutChunks leaves them alone until
// then.
func (t *Tx) Borrow() { t.borrow = true }

// add appends a record to the transaction and returns its pending location.
func (t *Tx) add(k Kind, typ keydir.Type, sp *namespace.Space, h uint64, key, elem string, value []byte) (keydir.Loc, error) {
	return t.addRecord(k, typ, sp, h, key, elem, value, false)
}

// addRecord is add; with apart the value stays out of line, uncopied.
func (t *Tx) addRecord(k Kind, typ keydir.Type, sp *namespace.Space, h uint64, key, elem string, value []byte, apart bool) (keydir.Loc, error) {
	if len(value) > MaxValue {
		return 0, t.refuse(fmt.Errorf("bitcask: value of %d bytes: %w", len(value), ErrTooLarge))
	}
	if len(t.buf)+t.outOfLine+format.RecordHeaderMax+format.NameLen(k, typ, len(key), len(elem))+len(value) > MaxCommit {
		return 0, t.refuse(fmt.Errorf("bitcask: commit of more than %d bytes: %w", MaxCommit, ErrTooLarge))
	}
	if refuse := t.s.opts.seam.Refuse; refuse != nil {
		if err := refuse(); err != nil {
			return 0, t.refuse(err)
		}
	}
	more := format.RecordHeaderMax + format.NameLen(k, typ, len(key), len(elem))
	if !apart {
		more += len(value)
	}
	t.growBuffer(more)
	pos := len(t.buf)
	t.buf = format.AppendRecordHeader(t.buf, k, typ, -1, sp.ID, len(key), len(elem), len(value))
	name := len(t.buf)
	t.buf = format.AppendName(t.buf, k, typ, key, elem)
	r := txRecord{
		h: h, pos: uint32(pos), outOfLine: uint32(t.outOfLine), size: uint32(len(t.buf) - pos + len(value)), name: uint32(name),
		elemLen: uint32(len(elem)), space: t.spaceIndex(sp), keyLen: uint16(len(key)), kind: k, typ: typ,
	}
	if apart {
		t.values = append(t.values, value)
		r.value = uint32(len(t.values))
		t.outOfLine += len(value)
	} else {
		t.buf = appendInSteps(t.buf, value)
	}
	t.recs.Append(r)
	return keydir.MakeLoc(keydir.PendingSegment, uint32(t.recs.Len()-1), r.size), nil
}

// refuse rolls back what the call in progress has done, and returns err, with which it fails. Otherwise a caller that goes
// on after the error would commit changes of the index that no record says.
func (t *Tx) refuse(err error) error {
	t.rollbackTo(t.call)
	return err
}

// PutString sets key to a string, whatever it held. Its deadline stays.
func (t *Tx) PutString(ns int, key string, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	slot, coll, err := t.replaced(sp, h, key)
	if err != nil && !failure.IsDamage(err) {
		return err
	}
	if slot.Type == keydir.None {
		if err := t.noteCollision(sp, h, false); err != nil {
			return err
		}
	} else {
		sp.Dir.Visit(h)
	}
	fresh := t.recs.Len() == 0 && t.undo.Len() == 0 && !coll.Valid()
	loc, err := t.addRecord(KindString, keydir.String, sp, h, key, "", value, t.borrow && len(value) >= bigValue)
	if err != nil {
		return err
	}
	if fresh {
		t.single = singlePut{put: true, old: slot}
		return nil
	}
	if coll.Valid() {
		t.dropCollection(sp, h, key, coll)
	}
	t.putSlot(sp, h, slot, slot.Type != keydir.None && !coll.Valid(), keydir.Slot{Type: keydir.String, Loc: loc})
	return nil
}

// putSlot inserts a slot, or puts it in the place of an old one.
func (t *Tx) putSlot(sp *namespace.Space, h uint64, old keydir.Slot, had bool, now keydir.Slot) {
	if had {
		sp.Dir.Replace(h, old, now)
		t.undo.Append(undo.Op{Kind: undo.Swap, Dir: sp.Dir, Hash: h, OldType: old.Type, Loc: old.Loc, New: now})
		return
	}
	sp.Dir.Insert(h, now)
	t.undo.Append(undo.Op{Kind: undo.Insert, Dir: sp.Dir, Hash: h, New: now})
}

// Collection returns the collection of type typ that key holds, or a new one. The
// key holds no other type, unless this transaction has emptied it.
func (t *Tx) Collection(ns int, key string, typ keydir.Type) (keydir.Collection, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return keydir.Collection{}, err
	}
	if coll, ok := sp.Dir.FindCollection(h, key); ok && coll.Type() == typ {
		return coll, nil
	} else if ok { // emptied: it would go at the commit
		if _, err := t.Drop(ns, key); err != nil {
			return keydir.Collection{}, err
		}
	}
	if sp.Dir.Full(h) {
		return keydir.Collection{}, t.refuse(fmt.Errorf("bitcask: new %s: %w", typ, ErrIndexFull))
	}
	if err := t.noteCollision(sp, h, false); err != nil {
		return keydir.Collection{}, err
	}
	if typ == keydir.Stream {
		if err := t.s.man.need(manifest.FeatureExtended); err != nil {
			return keydir.Collection{}, t.s.log.Fail(err)
		}
	}
	t.touch(sp, h, key, typ, keydir.Collection{})
	coll := sp.Dir.NewCollection(h, typ, key)
	t.undo.Append(undo.Op{Kind: undo.NewCollection, Dir: sp.Dir, Hash: h, Key: key})
	t.made = madeCollection{sp: sp, h: h, key: key}
	return coll, nil
}

// manyTouched is how many collections a transaction touches before it keeps a set
// of them alongside the list.
const manyTouched = 8

// touch remembers how a collection was before the transaction's first change.
func (t *Tx) touch(sp *namespace.Space, h uint64, key string, typ keydir.Type, coll keydir.Collection) {
	if last := len(t.touched) - 1; last >= 0 && t.touched[last].is(sp, h, key) {
		return
	}
	if len(t.touched) <= manyTouched || t.mayKnow(h) {
		for i := len(t.touched) - 1; i >= 0; i-- {
			if t.touched[i].is(sp, h, key) {
				return
			}
		}
	}
	tf := touchedCollection{sp: sp, h: h, key: key, typ: typ}
	if coll.Valid() {
		tf.count = coll.Len()
		if typ.Indexed() {
			tf.head, tf.tail = coll.Bounds()
		}
	}
	t.touched = append(t.touched, tf)
	if len(t.known) > 0 {
		t.known[h] = true
		t.mostKnown = max(t.mostKnown, len(t.known))
	}
}

// mayKnow reports whether some touched collection has this hash.
func (t *Tx) mayKnow(h uint64) bool {
	if len(t.known) == 0 {
		if t.known == nil {
			t.known = make(map[uint64]bool)
		}
		for i := range t.touched {
			t.known[t.touched[i].h] = true
		}
		t.mostKnown = max(t.mostKnown, len(t.known))
	}
	return t.known[h]
}

// roomFor fails if an element would be new in a collection that takes no more.
func roomFor(coll keydir.Collection, elem string) error {
	if coll.Full() {
		if _, ok := coll.Get(elem); !ok {
			return fmt.Errorf("bitcask: %s of %d elements: %w", coll.Type(), coll.Len(), ErrIndexFull)
		}
	}
	return nil
}

// PutElem sets a hash field or adds a set member.
func (t *Tx) PutElem(ns int, key string, coll keydir.Collection, elem string, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	if len(elem) > MaxElement {
		return fmt.Errorf("bitcask: element of %d bytes: %w", len(elem), ErrTooLarge)
	}
	if err := roomFor(coll, elem); err != nil {
		return err
	}
	typ := coll.Type()
	t.touch(sp, h, key, typ, coll)
	loc, err := t.add(KindElement, typ, sp, h, key, elem, value)
	if err != nil {
		return err
	}
	old, had, place := coll.PutNoted(elem, loc)
	if t.made.is(sp, h, key) {
		return nil
	}
	t.undo.Append(undo.Op{Kind: undo.Put, Dir: sp.Dir, Hash: h, Key: key, Elem: elem, Loc: old, Had: had, Place: place})
	return nil
}

// PutScored adds a sorted set member or changes its score. The order record follows the element's
// directly and shares its fate.
func (t *Tx) PutScored(ns int, key string, coll keydir.Collection, elem string, score uint64) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	if len(elem) > MaxElement {
		return fmt.Errorf("bitcask: member of %d bytes: %w", len(elem), ErrTooLarge)
	}
	if err := roomFor(coll, elem); err != nil {
		return err
	}
	t.touch(sp, h, key, keydir.ZSet, coll)
	t.order = ordered.AppendHex(append(t.order[:0], "s:"...), score)
	text := t.order[len("s:"):]
	loc, err := t.add(KindElement, keydir.ZSet, sp, h, key, elem, text)
	if err != nil {
		return err
	}
	t.order = append(append(t.order, ':'), elem...)
	if err := t.follow(KindOrder, keydir.ZSet, sp, h, key, format.Text(t.order), nil); err != nil { // which copies it
		return err
	}
	oldScore, old, had := coll.PutScored(elem, score, loc)
	if t.made.is(sp, h, key) {
		return nil
	}
	t.undo.Append(undo.Op{Kind: undo.PutScored, Dir: sp.Dir, Hash: h, Key: key, Elem: elem, Loc: old, Had: had, Score: oldScore})
	return nil
}

// follow adds a record that shares the location of the one before it.
func (t *Tx) follow(k Kind, typ keydir.Type, sp *namespace.Space, h uint64, key, elem string, value []byte) error {
	_, err := t.add(k, typ, sp, h, key, elem, value)
	return err
}

// DeleteElem removes a field, with its deadline, or a member. It reports whether it was there.
func (t *Tx) DeleteElem(ns int, key string, coll keydir.Collection, elem string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	t.touch(sp, h, key, coll.Type(), coll)
	op := undo.Op{Kind: undo.Delete, Dir: sp.Dir, Hash: h, Key: key, Elem: elem}
	if coll.Type() == keydir.ZSet {
		op.Kind = undo.DeleteScored
		op.Score, op.Loc, op.Had = coll.DeleteScored(elem)
	} else {
		op.Loc, op.Had, op.Place = coll.DeleteNoted(elem)
	}
	if !op.Had {
		return false, nil
	}
	t.undo.Append(op)
	t.made = madeCollection{}
	if coll.Type() == keydir.Hash {
		t.dropAlongside(keydir.FieldDeadlines, sp, h, key, elem)
	}
	_, err = t.add(KindElementTombstone, coll.Type(), sp, h, key, elem, nil)
	return err == nil, err
}

// Drop deletes a key of any type, with its deadline. One tombstone covers a
// collection of any size.
func (t *Tx) Drop(ns int, key string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	slot, coll, err := t.find(sp, h, key)
	if err != nil && !failure.IsDamage(err) {
		return false, err
	}
	if slot.Type == keydir.None {
		return false, nil
	}
	existed := true
	if coll.Valid() {
		existed = !coll.Empty()
		t.touch(sp, h, key, coll.Type(), coll)
	}
	if _, err := t.add(KindTombstone, slot.Type, sp, h, key, "", nil); err != nil {
		return false, err
	}
	if coll.Valid() {
		t.dropCollection(sp, h, key, coll)
	} else {
		t.deleteSlot(sp, h, slot)
	}
	if old, ok, err := t.deadlineSlot(sp, h, key); err != nil && !failure.IsDamage(err) {
		return false, t.refuse(err)
	} else if old.Type == keydir.Deadline && (ok || err != nil) {
		t.deleteSlot(sp, h, old)
	}
	return existed, nil
}

// deleteSlot and dropCollection are the only ways by which a transaction removes entries that it
// did not make: they warn lock-free readers that a rollback may restore them.
func (t *Tx) deleteSlot(sp *namespace.Space, h uint64, slot keydir.Slot) {
	t.s.stripes[keydir.StripeOf(h)].removed.Or(keydir.RemovedBit(h))
	sp.Dir.Delete(h, slot)
	t.undo.Append(undo.Op{Kind: undo.DeleteSlot, Dir: sp.Dir, Hash: h, OldType: slot.Type, Loc: slot.Loc})
}

func (t *Tx) dropCollection(sp *namespace.Space, h uint64, key string, coll keydir.Collection) {
	if t.made.is(sp, h, key) {
		t.made = madeCollection{}
	}
	t.s.stripes[keydir.StripeOf(h)].removed.Or(keydir.RemovedBit(h))
	for _, typ := range keydir.Alongside {
		if beside, ok := sp.Dir.FindAlongside(h, key, typ); ok {
			t.dropOne(sp, h, beside)
		}
	}
	t.dropOne(sp, h, coll)
}

// dropOne is dropCollection without what stands alongside.
func (t *Tx) dropOne(sp *namespace.Space, h uint64, coll keydir.Collection) {
	dropped := sp.Dir.DropCollection(h, coll)
	t.undo.Append(undo.Op{Kind: undo.Drop, Dir: sp.Dir, Hash: h, Dropped: &dropped})
}

// SetDeadline gives a key that exists a deadline in Unix milliseconds.
func (t *Tx) SetDeadline(ns int, key string, ms int64) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	old, had, err := t.deadlineSlot(sp, h, key)
	if err != nil {
		return err
	}
	var b [20]byte
	loc, err := t.add(KindDeadline, keydir.Deadline, sp, h, key, "", strconv.AppendInt(b[:0], ms, 10))
	if err != nil {
		return err
	}
	if !had {
		if err := t.noteCollision(sp, h, true); err != nil {
			return err
		}
	}
	t.putSlot(sp, h, old, had, keydir.Slot{Type: keydir.Deadline, Loc: loc})
	return nil
}

// ClearDeadline takes the deadline of a key away.
func (t *Tx) ClearDeadline(ns int, key string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	old, had, err := t.deadlineSlot(sp, h, key)
	if err != nil || !had {
		return false, err
	}
	if _, err := t.add(KindDeadlineTombstone, keydir.Deadline, sp, h, key, "", nil); err != nil {
		return false, err
	}
	t.deleteSlot(sp, h, old)
	return true, nil
}
