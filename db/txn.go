package db

import (
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
	"github.com/stavedb/stave/ttl"
)

// txn is the transaction as structures sees it: the log's, with expired keys hidden from readers and dropped for writers.
// Every write of a key passes a method of it in this file, be it the end of a deadline (txn_writes_test.go has the few
// other changes of a store), and is captured there for replicas (capture.go).
type txn Tx

// Every write goes through it, so that watchers miss none.
func (t *Tx) txn() structures.Txn {
	if t.store.watchers.active.Load() != 0 {
		return trackingTxn{(*txn)(t)}
	}
	return (*txn)(t)
}

// Yield and Apart let others use the stripes of the transaction's keys meanwhile, unless it is a closure's, which may
// be walking through what others would move.
func (t *txn) Yield() {
	if !t.shown || t.begun {
		t.base.Yield()
	}
}

func (t *txn) Apart(fn func()) {
	if !t.shown || t.begun {
		t.base.Apart(fn)
		return
	}
	fn()
}

// Notify is for listeners: there are none.
func (t *txn) Notify(EventKind, string) {}

func (t *txn) Unwatched() structures.StreamTxn { return t }

func (t *txn) space() uint32 { return t.store.base.Space(t.ns) }

// hideExpired reports whether key has expired. A writer drops the key at once, so that its next
// step starts from nothing.
func (t *txn) hideExpired(key string) (bool, error) {
	space := t.space()
	ms, ok := t.store.deadlines.Get(space, key)
	if !ok || !t.due(ms) {
		gone, err := (*Tx)(t).fieldsGone(t.ns, space, key)
		if gone && t.write && err == nil {
			err = t.expireFields(key)
		}
		return gone, err
	}
	t.foundDue(ms, t.write)
	if !t.write {
		return true, nil
	}
	_, err := t.expire(key)
	return true, err
}

// expire drops a key whose time has come, and says whether it was there.
func (t *txn) expire(key string) (bool, error) {
	t.leaveOrder(key)
	existed, err := t.drop(key)
	if existed && err == nil {
		t.expired++
		t.changed(key)
		t.note(structures.EventExpired, key)
	}
	return existed, err
}

func (t *txn) Find(key string) (keydir.Slot, keydir.Collection, error) {
	if err := t.Step(1); err != nil {
		return keydir.Slot{}, keydir.Collection{}, err
	}
	if gone, err := t.hideExpired(key); gone || err != nil {
		return keydir.Slot{}, keydir.Collection{}, err
	}
	return t.base.Find(t.ns, key)
}

func (t *txn) Value(dst []byte, key, elem string, typ keydir.Type, loc keydir.Loc) ([]byte, error) {
	if err := t.Step(1); err != nil {
		return dst, err
	}
	if err := t.Room(int(loc.Size())); err != nil {
		return dst, err
	}
	return t.base.Value(dst, t.ns, key, elem, typ, loc)
}

func (t *txn) Values(dst []byte, ends []int, key string, elems []string, typ keydir.Type, locs []keydir.Loc) ([]byte, []int, error) {
	if err := t.Step(len(locs)); err != nil {
		return dst, ends, err
	}
	if t.room != nil {
		longest := 0
		for _, loc := range locs {
			longest = max(longest, int(loc.Size()))
		}
		if err := t.Room(longest); err != nil {
			return dst, ends, err
		}
	}
	return t.base.Values(dst, ends, t.ns, key, elems, typ, locs)
}

func (t *txn) ValuePart(dst []byte, key, elem string, typ keydir.Type, loc keydir.Loc, from, to int) ([]byte, error) {
	if err := t.Step(1 + to>>16 - from>>16); err != nil {
		return dst, err
	}
	if err := t.Room(min(to-from, int(loc.Size()))); err != nil {
		return dst, err
	}
	return t.base.ValuePart(dst, t.ns, key, elem, typ, loc, from, to)
}

func (t *txn) ValueLen(key, elem string, typ keydir.Type, loc keydir.Loc) (int, error) {
	return t.base.ValueLen(t.ns, key, elem, typ, loc)
}

func (t *txn) PutString(key string, value []byte) error {
	if err := t.Step(1); err != nil {
		return err
	}
	if _, err := t.hideExpired(key); err != nil {
		return err
	}
	if err := t.base.PutString(t.ns, key, value); err != nil {
		return err
	}
	if t.captured != nil {
		t.captured.Add(t.ns, "SET", key, text(value), "KEEPTTL")
	}
	t.noteFields(key, 0) // of a hash that it has replaced
	return nil
}

// PutChunks begins with a tombstone, which prevents old content of the key from reappearing among
// the chunks, and removes the deadline, which is put again after it.
func (t *txn) PutChunks(key string, value []byte, size int) (keydir.Collection, error) {
	ms, timed := t.Deadline(key)
	existed, err := t.Drop(key)
	if err != nil {
		return keydir.Collection{}, err
	}
	f, err := t.base.PutChunks(t.ns, key, value, size)
	if err == nil && t.captured != nil {
		t.captured.Add(t.ns, "SET", key, text(value))
	}
	if err == nil && existed && timed {
		err = t.SetDeadline(key, ms)
	}
	return f, err
}

func (t *txn) ChunkSize() int { return t.store.opts.seam.ChunkSize }

func (t *txn) Collection(key string, typ keydir.Type) (keydir.Collection, error) {
	if _, err := t.hideExpired(key); err != nil {
		return keydir.Collection{}, err
	}
	f, err := t.base.Collection(t.ns, key, typ)
	if err == nil && typ == keydir.Stream && t.captured != nil && f.Empty() {
		t.captured.made = &nsKey{t.ns, key}
	}
	return f, err
}

func (t *txn) PutElem(key string, f keydir.Collection, elem string, value []byte) error {
	if err := t.Step(1); err != nil {
		return err
	}
	err := t.base.PutElem(t.ns, key, f, elem, value)
	if err == nil && t.captured != nil {
		err = t.captureElem(key, f, elem, value)
	}
	return err
}

func (t *txn) PutScored(key string, f keydir.Collection, elem string, score uint64) error {
	if err := t.Step(1); err != nil {
		return err
	}
	err := t.base.PutScored(t.ns, key, f, elem, score)
	if err == nil && t.captured != nil {
		t.captureScored(key, elem, score)
	}
	return err
}

func (t *txn) PutIndex(key string, f keydir.Collection, index int64, value []byte) error {
	if err := t.Step(1); err != nil {
		return err
	}
	if t.captured == nil {
		return t.base.PutIndex(t.ns, key, f, index, value)
	}
	head, tail := f.Bounds()
	err := t.base.PutIndex(t.ns, key, f, index, value)
	if err == nil {
		t.captureIndex(key, f, head, tail, index, value)
	}
	return err
}

func (t *txn) PutPlace(key string, f keydir.Collection, at keydir.ListPlace, value []byte) error {
	if err := t.Step(1); err != nil {
		return err
	}
	if t.captured == nil {
		return t.base.PutPlace(t.ns, key, f, at, value)
	}
	head, tail := f.Bounds()
	err := t.base.PutPlace(t.ns, key, f, at, value)
	if err == nil {
		t.captureIndex(key, f, head, tail, at.Index, value)
	}
	return err
}

func (t *txn) DeleteElem(key string, f keydir.Collection, elem string) (bool, error) {
	if err := t.Step(1); err != nil {
		return false, err
	}
	existed, err := t.base.DeleteElem(t.ns, key, f, elem)
	if err == nil && existed && t.captured != nil {
		t.captureDeleted(key, f.Type(), elem)
	}
	if err != nil || !existed || f.Type() != keydir.Hash {
		return existed, err
	}
	return true, t.fieldDeadlineGone(key)
}

func (t *txn) PutEntry(key string, f keydir.Collection, id keydir.StreamID, value []byte) error {
	if err := t.Step(1); err != nil {
		return err
	}
	err := t.base.PutEntry(t.ns, key, f, id, value)
	if err == nil && t.captured != nil {
		t.captureEntry(key, id, value)
	}
	return err
}

func (t *txn) DeleteEntry(key string, f keydir.Collection, id keydir.StreamID) (bool, error) {
	if err := t.Step(1); err != nil {
		return false, err
	}
	if t.captured == nil {
		return t.base.DeleteEntry(t.ns, key, f, id)
	}
	before, err := t.base.StreamMeta(t.ns, key, f)
	if err != nil {
		return false, err
	}
	did, err := t.base.DeleteEntry(t.ns, key, f, id)
	if err == nil && did {
		t.captureEntryDeleted(key, id, before)
	}
	return did, err
}

func (t *txn) StreamMeta(key string, f keydir.Collection) (keydir.StreamMeta, error) {
	return t.base.StreamMeta(t.ns, key, f)
}

func (t *txn) LastEntryID(key string, f keydir.Collection) (keydir.StreamID, error) {
	return t.base.LastEntryID(t.ns, key, f)
}

func (t *txn) PutStreamMeta(key string, f keydir.Collection, m keydir.StreamMeta) error {
	if t.captured == nil {
		return t.base.PutStreamMeta(t.ns, key, f, m)
	}
	first, some := f.FirstEntry()
	old, err := t.base.StreamMeta(t.ns, key, f)
	if err == nil {
		err = t.base.PutStreamMeta(t.ns, key, f, m)
	}
	if err == nil {
		t.captureStreamMeta(key, old, m, some && first.Less(m.First))
	}
	return err
}

func (t *txn) StreamGroups(key string) (keydir.Collection, error) {
	return t.base.StreamGroups(t.ns, key)
}

func (t *txn) NotedGroup() (*structures.NotedGroup, uint64) {
	switch {
	case t.group == nil && t.write:
		t.group = new(structures.NotedGroup)
	case t.group != nil && t.groupNS != t.ns:
		*t.group = structures.NotedGroup{}
	}
	t.groupNS = t.ns
	return t.group, t.base.Version()
}

func (t *txn) PutGroups(key string, all keydir.Collection, elem string, value []byte) error {
	if err := t.Step(1); err != nil {
		return err
	}
	if t.captured == nil {
		return t.base.PutGroups(t.ns, key, all, elem, value)
	}
	names, err := t.groupNames(key, elem, value)
	if err == nil {
		err = t.base.PutGroups(t.ns, key, all, elem, value)
	}
	if err == nil {
		t.captureGroups(key, elem, value, names)
	}
	return err
}

func (t *txn) DeleteGroups(key string, all keydir.Collection, elem string) (int, error) {
	if err := t.Step(1); err != nil {
		return 0, err
	}
	if t.captured == nil {
		return t.base.DeleteGroups(t.ns, key, all, elem)
	}
	names, err := t.groupNames(key, elem, nil)
	if err != nil {
		return 0, err
	}
	n, err := t.base.DeleteGroups(t.ns, key, all, elem)
	if err == nil && n > 0 {
		t.captureGroupsDeleted(key, elem, names)
	}
	return n, err
}

func (t *txn) DeleteRange(key string, f keydir.Collection, from, to keydir.ListPlace) (int, error) {
	if err := t.Step(1); err != nil {
		return 0, err
	}
	if t.captured == nil {
		return t.base.DeleteRange(t.ns, key, f, from, to)
	}
	var first [1]keydir.ListPlace
	if f.Len() > 0 {
		f.Elements(0, first[:], make([]keydir.Loc, 1))
	}
	n, err := t.base.DeleteRange(t.ns, key, f, from, to)
	if err == nil && n > 0 {
		t.captureRange(key, !first[0].Less(from), n)
	}
	return n, err
}

func (t *txn) Drop(key string) (bool, error) {
	if err := t.Step(1); err != nil {
		return false, err
	}
	// A key whose time has come was not there any more.
	if gone, err := t.hideExpired(key); gone || err != nil {
		return false, err
	}
	return t.drop(key)
}

func (t *txn) drop(key string) (bool, error) {
	existed, err := t.base.Drop(t.ns, key)
	if err == nil {
		if existed && t.captured != nil {
			t.captured.Join(t.ns, 1, 0, "DEL", key)
		}
		t.noteDeadline(key, 0)
		t.noteFields(key, 0)
		t.offerMissing(key)
		t.store.idle.Stir(nap.Any)
	}
	return existed, err
}

func (t *txn) Deadline(key string) (int64, bool) { return t.store.deadlines.Get(t.space(), key) }

func (t *txn) SetDeadline(key string, ms int64) error {
	if err := t.settable(ms); err != nil {
		return err
	}
	if err := t.base.SetDeadline(t.ns, key, ms); err != nil {
		return err
	}
	if t.captured != nil {
		t.captureDeadline(key, ms)
	}
	t.noteDeadline(key, ms)
	return nil
}

func (t *txn) ClearDeadline(key string) (bool, error) {
	if _, ok := t.Deadline(key); !ok {
		return false, nil
	}
	had, err := t.base.ClearDeadline(t.ns, key)
	if err == nil {
		if had && t.captured != nil {
			t.captured.Add(t.ns, "PERSIST", key)
		}
		t.noteDeadline(key, 0)
	}
	return had, err
}

func (t *txn) SetFieldDeadline(key, field string, ms int64) error {
	if err := t.settable(ms); err != nil {
		return err
	}
	if err := t.base.SetFieldDeadline(t.ns, key, field, ms); err != nil {
		return err
	}
	if t.captured != nil {
		t.captureFieldDeadline(key, field, ms)
	}
	if first, ok := t.store.fields.Get(t.space(), key); !ok || ms < first {
		t.noteFields(key, ms)
	}
	return nil
}

func (t *txn) ClearFieldDeadline(key, field string) (bool, error) {
	had, err := t.base.ClearFieldDeadline(t.ns, key, field)
	if err != nil || !had {
		return false, err
	}
	if t.captured != nil {
		if err := t.captureNoFieldDeadline(key, field); err != nil {
			return false, err
		}
	}
	return true, t.fieldDeadlineGone(key)
}

// noteDeadline changes the deadline of a key, in a way that can be rolled back. 0 clears.
func (t *txn) noteDeadline(key string, ms int64) { t.noteIn(t.store.deadlines, key, ms) }

func (t *txn) noteIn(index *ttl.Deadlines, key string, ms int64) {
	space := t.space()
	old, had := index.Get(space, key)
	if !had && ms == 0 {
		return
	}
	t.deadlines = append(t.deadlines, deadlineChange{index, space, key, old, had})
	if ms == 0 {
		index.Clear(space, key)
	} else {
		index.Set(space, key, ms)
		t.store.idle.Stir(ms)
	}
}
