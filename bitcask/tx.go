package bitcask

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Tx is one atomic unit of reads and writes. It holds the stripe locks of its
// keys from Begin to End. Writes change the keydir at once, with locations
// that point into the transaction itself, so everything in it reads its own
// writes; Commit appends them to the log as one frame and puts the real
// locations in place; End without Commit takes them back.
//
// A Tx is for one goroutine.
type Tx struct {
	s       *Store
	write   bool
	all     bool
	stripes []uint8
	held    [keydir.Stripes / 64]uint64

	buf     []byte // room for a frame header, then records
	recs    []txRecord
	undo    []undoOp
	touched []touchedFamily

	positions  []int // scratch of frame
	frameStart int   // where the frame begins in buf
}

// txRecord is a record waiting in buf.
type txRecord struct {
	pos  int // of its crc in buf
	size int // without the records that follow it
	h    uint64
	sp   *space
}

// touchedFamily remembers a family as it was before the transaction, to know
// at commit whether its meta records change.
type touchedFamily struct {
	sp         *space
	h          uint64
	key        string
	typ        keydir.Type
	count      int
	head, tail int64
}

var (
	errReadTx  = errors.New("write in a read-only transaction")
	errNotAll  = errors.New("BUG: this needs a fresh transaction on every key")
	errForeign = errors.New("BUG: key outside the locks of its transaction")
)

// Begin starts a transaction on the given keys of any namespace.
func (s *Store) Begin(write bool, keys ...string) (*Tx, error) {
	t := s.newTx(write)
	for _, key := range keys {
		st := uint8(keydir.StripeOf(s.man.seed.Hash(key)))
		if bit := uint64(1) << (st % 64); t.held[st/64]&bit == 0 {
			t.held[st/64] |= bit
			t.stripes = append(t.stripes, st)
		}
	}
	slices.Sort(t.stripes)
	return t, t.lock()
}

// BeginAll starts a transaction on every key: for writing it runs alone, for
// reading beside other readers.
func (s *Store) BeginAll(write bool) (*Tx, error) {
	t := s.newTx(write)
	t.all = true
	return t, t.lock()
}

func (s *Store) newTx(write bool) *Tx {
	t := s.txs.Get().(*Tx)
	t.s, t.write = s, write
	if cap(t.buf) < frameHeaderSize {
		t.buf = make([]byte, frameHeaderSize, 512)
	}
	t.buf = t.buf[:frameHeaderSize]
	return t
}

// lock takes the stripe locks in ascending order, which is why no two
// transactions can wait for each other.
func (t *Tx) lock() error {
	if t.all {
		for i := range t.s.stripes {
			t.lockStripe(i)
		}
	}
	for _, i := range t.stripes {
		t.lockStripe(int(i))
	}
	if t.s.closed.Load() {
		t.End()
		return ErrClosed
	}
	if t.write && t.s.opts.ReadOnly {
		t.End()
		return ErrReadOnly
	}
	return nil
}

func (t *Tx) lockStripe(i int) {
	if t.write {
		t.s.stripes[i].Lock()
	} else {
		t.s.stripes[i].RLock()
	}
}

func (t *Tx) unlockStripe(i int) {
	if t.write {
		t.s.stripes[i].Unlock()
	} else {
		t.s.stripes[i].RUnlock()
	}
}

// keepBuffer is the largest buffer in bytes that a finished Tx keeps for the
// next one.
const keepBuffer = 64 << 10

// End releases the locks. What was not committed is taken back first.
func (t *Tx) End() {
	t.RollbackTo(Savepoint{buf: frameHeaderSize})
	if t.all {
		for i := range t.s.stripes {
			t.unlockStripe(i)
		}
	}
	for _, i := range t.stripes {
		t.unlockStripe(int(i))
	}
	s := t.s
	if cap(t.buf) > keepBuffer {
		t.buf = nil
	}
	clear(t.undo[:cap(t.undo)])
	clear(t.touched[:cap(t.touched)])
	*t = Tx{buf: t.buf, recs: t.recs[:0], undo: t.undo[:0], touched: t.touched[:0], stripes: t.stripes[:0], positions: t.positions}
	s.txs.Put(t)
}

// hash returns the hash of a key, which must be one the Tx has locked.
func (t *Tx) hash(key string) (uint64, error) {
	if len(key) > MaxKey {
		return 0, fmt.Errorf("key of %d bytes: %w", len(key), ErrTooLarge)
	}
	h := t.s.man.seed.Hash(key)
	if st := keydir.StripeOf(h); !t.all && t.held[st/64]&(1<<(st%64)) == 0 {
		return 0, fmt.Errorf("%w: %q", errForeign, key)
	}
	return h, nil
}

// spaceFor returns the space of ns for writing key.
func (t *Tx) spaceFor(ns int, key string) (*space, uint64, error) {
	if !t.write {
		return nil, 0, errReadTx
	}
	h, err := t.hash(key)
	if err != nil {
		return nil, 0, err
	}
	sp, err := t.s.spaces.make(ns)
	return sp, h, err
}

// Find reports what key holds: its slot and, for a collection, its family. The
// Type is None if it holds nothing.
func (t *Tx) Find(ns int, key string) (keydir.Slot, keydir.Family, error) {
	h, err := t.hash(key)
	if err != nil {
		return keydir.Slot{}, keydir.Family{}, err
	}
	sp := t.s.spaces.of(ns)
	if sp == nil {
		return keydir.Slot{}, keydir.Family{}, nil
	}
	slot, fam, err := t.find(sp, h, key)
	if fam.Valid() && fam.Len() == 0 {
		return keydir.Slot{}, keydir.Family{}, err // emptied in this transaction
	}
	return slot, fam, err
}

func (t *Tx) find(sp *space, h uint64, key string) (keydir.Slot, keydir.Family, error) {
	for i := 0; ; i++ {
		slot, ok := sp.dir.Find(h, i)
		if !ok {
			return keydir.Slot{}, keydir.Family{}, nil
		}
		switch slot.Type {
		case keydir.Deadline:
		case keydir.String:
			match, err := t.prove(sp, slot.Loc, key)
			if err != nil || match {
				return slot, keydir.Family{}, err
			}
		default:
			if fam, ok := sp.dir.FindFamily(h, key); ok {
				return keydir.Slot{Type: fam.Type(), Loc: slot.Loc}, fam, nil
			}
		}
	}
}

// deadlineSlot finds the slot of the deadline record of key. The key itself
// exists, so a slot of the same hash is its own unless two hashes collide;
// the record decides.
func (t *Tx) deadlineSlot(sp *space, h uint64, key string) (keydir.Slot, bool, error) {
	for i := 0; ; i++ {
		slot, ok := sp.dir.Find(h, i)
		if !ok {
			return slot, false, nil
		}
		if slot.Type != keydir.Deadline {
			continue
		}
		q := query{ns: sp.id, kind: KindDeadline, typ: keydir.Deadline, key: key}
		_, _, match, err := t.get(nil, slot.Loc, &q, true)
		if err != nil || match {
			return slot, match, err
		}
	}
}

// prove reports whether the string record at loc is that of key.
func (t *Tx) prove(sp *space, loc keydir.Loc, key string) (bool, error) {
	q := query{ns: sp.id, kind: KindString, typ: keydir.String, key: key}
	_, _, match, err := t.get(nil, loc, &q, true)
	return match, err
}

// get reads a record from the log or, if it is still waiting, from the
// transaction.
func (t *Tx) get(dst []byte, loc keydir.Loc, q *query, peek bool) ([]byte, int, bool, error) {
	if loc.Pending() {
		rec, err := parseRecord(t.buf[t.recs[loc.Offset()].pos:])
		if err != nil {
			return dst, 0, false, fmt.Errorf("BUG: pending record: %w", err)
		}
		if !q.matches(&rec) {
			return dst, 0, false, nil
		}
		if !peek {
			dst = append(dst, rec.value...)
		}
		return dst, len(rec.value), true, nil
	}
	sg, err := t.s.segmentOf(loc)
	if err != nil {
		return dst, 0, false, err
	}
	return sg.get(dst, loc, q, peek)
}

const errName = "the record is not the one that the keydir expects"

// Value appends to dst the value of a string or element that Find or a family
// gave loc for. elem is ignored for strings.
func (t *Tx) Value(dst []byte, ns int, key, elem string, typ keydir.Type, loc keydir.Loc) ([]byte, error) {
	dst, _, err := t.value(dst, ns, key, elem, typ, loc, false)
	return dst, err
}

// ValueLen is the length of what Value would append.
func (t *Tx) ValueLen(ns int, key, elem string, typ keydir.Type, loc keydir.Loc) (int, error) {
	_, n, err := t.value(nil, ns, key, elem, typ, loc, true)
	return n, err
}

func (t *Tx) value(dst []byte, ns int, key, elem string, typ keydir.Type, loc keydir.Loc, peek bool) ([]byte, int, error) {
	sp := t.s.spaces.of(ns)
	if sp == nil {
		return dst, 0, ErrNotFound
	}
	q := query{ns: sp.id, kind: KindElement, typ: typ, key: key, elem: elem}
	if typ == keydir.String {
		q.kind, q.elem = KindString, ""
	}
	dst, n, match, err := t.get(dst, loc, &q, peek)
	if err == nil && !match {
		err = &CorruptError{dataName(loc.Segment()), int64(loc.Offset()), errName}
	}
	return dst, n, err
}

// add appends a record to the transaction and returns its pending location.
func (t *Tx) add(k Kind, typ keydir.Type, sp *space, h uint64, key, elem string, value []byte) (keydir.Loc, error) {
	if len(value) > MaxValue {
		return 0, fmt.Errorf("value of %d bytes: %w", len(value), ErrTooLarge)
	}
	if len(t.buf)+recordHeaderMax+nameLen(k, typ, len(key), len(elem))+len(value) > MaxCommit {
		return 0, fmt.Errorf("commit of more than %d bytes: %w", MaxCommit, ErrTooLarge)
	}
	pos := len(t.buf)
	t.buf = appendRecord(t.buf, k, typ, -1, sp.id, key, elem, value)
	t.recs = append(t.recs, txRecord{pos: pos, size: len(t.buf) - pos, h: h, sp: sp})
	return keydir.MakeLoc(keydir.PendingSegment, uint32(len(t.recs)-1), uint32(len(t.buf)-pos)), nil
}

// PutString sets key to a string, whatever it held. Its deadline stays.
func (t *Tx) PutString(ns int, key string, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	slot, fam, err := t.find(sp, h, key)
	if err != nil && !damaged(err) {
		return err
	}
	loc, err := t.add(KindString, keydir.String, sp, h, key, "", value)
	if err != nil {
		return err
	}
	now := keydir.Slot{Type: keydir.String, Loc: loc}
	switch {
	case fam.Valid():
		t.undo = append(t.undo, undoOp{op: undoDrop, dir: sp.dir, h: h, dropped: sp.dir.DropFamily(h, fam)})
		fallthrough
	case slot.Type == keydir.None:
		sp.dir.Insert(h, now)
		t.undo = append(t.undo, undoOp{op: undoInsert, dir: sp.dir, h: h, new: now})
	default:
		sp.dir.Swap(h, slot, now)
		t.undo = append(t.undo, undoOp{op: undoSwap, dir: sp.dir, h: h, old: slot, new: now})
	}
	return nil
}

// damaged reports whether err is about the old bytes of a record: overwriting
// or deleting it is how a user gets rid of it.
func damaged(err error) bool {
	var c *CorruptError
	return errors.As(err, &c)
}

// Family returns the collection of type typ that key holds, or a new one. The
// key holds no other type.
func (t *Tx) Family(ns int, key string, typ keydir.Type) (keydir.Family, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return keydir.Family{}, err
	}
	if fam, ok := sp.dir.FindFamily(h, key); ok {
		return fam, nil
	}
	t.touch(sp, h, key, typ, keydir.Family{})
	fam := sp.dir.NewFamily(h, typ, key)
	t.undo = append(t.undo, undoOp{op: undoNewFamily, dir: sp.dir, h: h, key: key})
	return fam, nil
}

// touch remembers how a family was when the transaction came to it.
func (t *Tx) touch(sp *space, h uint64, key string, typ keydir.Type, fam keydir.Family) {
	for i := len(t.touched) - 1; i >= 0; i-- {
		if f := &t.touched[i]; f.h == h && f.sp == sp && f.key == key {
			return
		}
	}
	tf := touchedFamily{sp: sp, h: h, key: key, typ: typ}
	if fam.Valid() {
		tf.count = fam.Len()
		if typ == keydir.List {
			tf.head, tf.tail = fam.Bounds()
		}
	}
	t.touched = append(t.touched, tf)
}

// PutElem sets a hash field or adds a set member.
func (t *Tx) PutElem(ns int, key string, fam keydir.Family, elem string, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	if len(elem) > MaxElement {
		return fmt.Errorf("element of %d bytes: %w", len(elem), ErrTooLarge)
	}
	t.touch(sp, h, key, fam.Type(), fam)
	loc, err := t.add(KindElement, fam.Type(), sp, h, key, elem, value)
	if err != nil {
		return err
	}
	old, had := fam.Put(elem, loc)
	t.undo = append(t.undo, undoOp{op: undoPut, dir: sp.dir, h: h, key: key, elem: elem, loc: old, had: had})
	return nil
}

// PutScored adds a sorted set member or changes its score. The order record
// goes right behind the element and shares its fate.
func (t *Tx) PutScored(ns int, key string, fam keydir.Family, elem string, score uint64) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	if len(elem) > MaxElement {
		return fmt.Errorf("member of %d bytes: %w", len(elem), ErrTooLarge)
	}
	t.touch(sp, h, key, keydir.ZSet, fam)
	var hex [16]byte
	text := ordered.AppendHex(hex[:0], score)
	loc, err := t.add(KindElement, keydir.ZSet, sp, h, key, elem, text)
	if err != nil {
		return err
	}
	if err := t.follow(KindOrder, keydir.ZSet, sp, h, key, "s:"+string(text)+":"+elem, nil); err != nil {
		return err
	}
	oldScore, old, had := fam.PutScored(elem, score, loc)
	t.undo = append(t.undo, undoOp{op: undoPutScored, dir: sp.dir, h: h, key: key, elem: elem, loc: old, had: had, score: oldScore})
	return nil
}

// follow adds a record that shares the location of the one before it.
func (t *Tx) follow(k Kind, typ keydir.Type, sp *space, h uint64, key, elem string, value []byte) error {
	_, err := t.add(k, typ, sp, h, key, elem, value)
	return err
}

// PutIndex sets the list element at an index.
func (t *Tx) PutIndex(ns int, key string, fam keydir.Family, index int64, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	t.touch(sp, h, key, keydir.List, fam)
	loc, err := t.add(KindElement, keydir.List, sp, h, key, indexName(index), value)
	if err != nil {
		return err
	}
	old, had := fam.PutAt(index, loc)
	t.undo = append(t.undo, undoOp{op: undoPutAt, dir: sp.dir, h: h, key: key, index: index, loc: old, had: had})
	return nil
}

// indexName is the text of a list index.
func indexName(index int64) string {
	var b [16]byte
	return string(ordered.AppendHex(b[:0], ordered.Int(index)))
}

// parseIndex is the inverse of indexName.
func parseIndex(elem []byte) (int64, bool) {
	u, ok := ordered.ParseHex(elem)
	return ordered.ToInt(u), ok
}

// IndexName is the element name of a list index, as Value wants it.
func IndexName(index int64) string { return indexName(index) }

// DeleteElem removes a field or member. It reports whether it was there.
func (t *Tx) DeleteElem(ns int, key string, fam keydir.Family, elem string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	t.touch(sp, h, key, fam.Type(), fam)
	op := undoOp{op: undoDelete, dir: sp.dir, h: h, key: key, elem: elem}
	if fam.Type() == keydir.ZSet {
		op.op = undoDeleteScored
		op.score, op.loc, op.had = fam.DeleteScored(elem)
	} else {
		op.loc, op.had = fam.Delete(elem)
	}
	if !op.had {
		return false, nil
	}
	t.undo = append(t.undo, op)
	_, err = t.add(KindElementTombstone, fam.Type(), sp, h, key, elem, nil)
	return true, err
}

// DeleteIndex removes the list element at an index.
func (t *Tx) DeleteIndex(ns int, key string, fam keydir.Family, index int64) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	t.touch(sp, h, key, keydir.List, fam)
	old, had := fam.DeleteAt(index)
	if !had {
		return false, nil
	}
	t.undo = append(t.undo, undoOp{op: undoDeleteAt, dir: sp.dir, h: h, key: key, index: index, loc: old})
	_, err = t.add(KindElementTombstone, keydir.List, sp, h, key, indexName(index), nil)
	return true, err
}

// Drop deletes a key of any type, with its deadline. One tombstone covers a
// collection of any size.
func (t *Tx) Drop(ns int, key string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	slot, fam, err := t.find(sp, h, key)
	if err != nil && !damaged(err) {
		return false, err
	}
	if slot.Type == keydir.None {
		return false, nil
	}
	existed := true
	if fam.Valid() {
		existed = fam.Len() > 0
		t.touch(sp, h, key, fam.Type(), fam)
	}
	if _, err := t.add(KindTombstone, slot.Type, sp, h, key, "", nil); err != nil {
		return false, err
	}
	if fam.Valid() {
		t.undo = append(t.undo, undoOp{op: undoDrop, dir: sp.dir, h: h, dropped: sp.dir.DropFamily(h, fam)})
	} else {
		t.deleteSlot(sp, h, slot)
	}
	if old, ok, err := t.deadlineSlot(sp, h, key); err != nil && !damaged(err) {
		return false, err
	} else if old.Type == keydir.Deadline && (ok || err != nil) {
		t.deleteSlot(sp, h, old)
	}
	return existed, nil
}

func (t *Tx) deleteSlot(sp *space, h uint64, slot keydir.Slot) {
	sp.dir.Delete(h, slot)
	t.undo = append(t.undo, undoOp{op: undoDeleteSlot, dir: sp.dir, h: h, old: slot})
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
	now := keydir.Slot{Type: keydir.Deadline, Loc: loc}
	if had {
		sp.dir.Swap(h, old, now)
		t.undo = append(t.undo, undoOp{op: undoSwap, dir: sp.dir, h: h, old: old, new: now})
		return nil
	}
	sp.dir.Insert(h, now)
	t.undo = append(t.undo, undoOp{op: undoInsert, dir: sp.dir, h: h, new: now})
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

// text views bytes as a string, without a copy; for calls that keep nothing.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
