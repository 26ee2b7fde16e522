package structures

import "github.com/stavedb/stave/keydir"

// A copy of a key, which COPY, RENAME, MOVE and SWAPDB within MULTI make. Names are part of every record, so all
// records are written again.

// Copy makes another key, of dst, hold what the key holds, with its deadline, if c
// holds for that other key. ok says whether the key exists. dst is a view on
// another namespace of the same atomic unit, or k.Txn; the two are not the same
// key. O(n).
func (k Key) Copy(dst Txn, to string, c Condition) (copied, ok bool, err error) {
	copied, ok, err = k.copy(dst, to, c)
	if copied && err == nil {
		dst.Notify(EventCopyTo, to)
	}
	return copied, ok, err
}

func (k Key) copy(dst Txn, to string, c Condition) (copied, ok bool, err error) {
	if err := c.checkExistence(); err != nil {
		return false, false, err
	}
	slot, source, err := k.Txn.Find(k.Key)
	if err != nil || slot.Type == keydir.None {
		return false, false, err
	}
	taken, err := Key{Txn: dst, Key: to}.exists()
	if err != nil || !c.Holds(taken) {
		return false, true, err
	}
	if taken {
		if _, err := dst.Drop(to); err != nil {
			return false, true, err
		}
		dst.Notify(EventNew, to)
	}
	if slot.Type == keydir.String {
		err = k.copyString(dst, to)
	} else {
		err = k.copyCollection(dst, to, source)
	}
	if ms, set := k.Txn.Deadline(k.Key); set && err == nil {
		err = dst.SetDeadline(to, ms)
	}
	return err == nil, true, err
}

// Move is Copy, unless the other key exists, of a key that is deleted then. O(n).
func (k Key) Move(dst Txn, to string) (moved, ok bool, err error) {
	moved, ok, err = k.move(dst, to, IfAbsent)
	if moved && err == nil {
		k.Txn.Notify(EventMoveFrom, k.Key)
		dst.Notify(EventMoveTo, to)
	}
	return moved, ok, err
}

// move is copy of a key that is deleted then.
func (k Key) move(dst Txn, to string, c Condition) (moved, ok bool, err error) {
	moved, ok, err = k.copy(dst, to, c)
	if moved && err == nil {
		_, err = k.Txn.Drop(k.Key)
	}
	return moved, ok, err
}

func (k Key) copyString(dst Txn, to string) error {
	value, _, err := String{Txn: k.Txn, Key: k.Key}.Get(nil)
	if err != nil {
		return err
	}
	return String{Txn: dst, Key: to}.put(value)
}

// copyCollection copies a collection.
func (k Key) copyCollection(dst Txn, to string, source keydir.Collection) error {
	target, err := dst.Collection(to, source.Type())
	switch {
	case err != nil:
		return err
	case source.Type().Indexed():
		return k.copyIndexed(dst, to, source, target)
	case source.Type() == keydir.Stream:
		return Stream{Txn: k.Txn, Key: k.Key}.copy(dst, to, source, target)
	}
	return k.copyElements(dst, to, source, target)
}

// copyElements copies members, or fields with their deadlines; fields whose time has come are left out. Putting into
// one collection while another one is walked may move memory that both share, so there is a list of the elements.
func (k Key) copyElements(dst Txn, to string, source, target keydir.Collection) error {
	v := hashView{hash: Hash{Txn: k.Txn, Key: k.Key}, all: source}
	if source.Type() == keydir.Hash {
		if err := v.refresh(); err != nil {
			return err
		}
	}
	var list elementList
	step := steps(k.Txn, []keydir.Collection{source})
	v.each(func(name []byte, loc keydir.Loc) bool {
		list.add(name, uint64(loc))
		return step()
	})
	if err := k.Txn.Step(0); err != nil {
		return err
	}
	var value []byte
	return list.drain(func(name string, number uint64) (err error) {
		switch source.Type() {
		case keydir.ZSet:
			score, _, _ := source.Score(name)
			err = dst.PutScored(to, target, name, score)
		case keydir.Set:
			err = dst.PutElem(to, target, name, nil)
		default:
			value, err = v.copyField(dst, to, target, name, keydir.Loc(number), value[:0])
		}
		dst.Yield()
		return err
	})
}

// copyField copies a field with its deadline; the value is read into buf, which it returns.
func (v *hashView) copyField(dst HashTxn, to string, target keydir.Collection, field string, loc keydir.Loc, buf []byte) ([]byte, error) {
	value, err := v.value(buf, field, loc)
	if err == nil {
		err = dst.PutElem(to, target, field, value)
	}
	if ms, ok := v.deadline(field); ok && err == nil {
		err = dst.SetFieldDeadline(to, field, ms)
	}
	return value, err
}

// copyIndexed copies the chunks of a string, of which some may be missing, or a list. The copy of a list is at
// consecutive indexes.
func (k Key) copyIndexed(dst Txn, to string, source, target keydir.Collection) error {
	head, tail := source.Bounds()
	if source.Type() == keydir.List {
		tail = head + int64(source.Len()) - 1
	}
	var value, name []byte
	for i := head; i <= tail; i++ {
		var loc keydir.Loc
		if source.Type() == keydir.List {
			var places [1]keydir.ListPlace
			var locs [1]keydir.Loc
			source.Elements(int(i-head), places[:], locs[:])
			loc, name = locs[0], AppendPlace(name[:0], places[0])
		} else if loc, _ = source.LocAt(i); loc == 0 {
			continue
		} else {
			name = AppendIndex(name[:0], i)
		}
		var err error
		if value, err = k.Txn.Value(value[:0], k.Key, text(name), source.Type(), loc); err != nil {
			return err
		}
		if err := dst.PutIndex(to, target, i, value); err != nil {
			return err
		}
		dst.Yield()
	}
	return nil
}
