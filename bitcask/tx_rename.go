package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Rename moves a key whole, with its deadline, to another name of the same or
// another namespace, replacing what that held. Names are part of every record,
// so this writes the records again: O(elements). It reports whether there was
// anything to move.
func (t *Tx) Rename(fromNS int, from string, toNS int, to string) (bool, error) {
	moved, err := t.copy(fromNS, from, toNS, to)
	if err != nil || !moved {
		return false, err
	}
	_, err = t.Drop(fromNS, from)
	return true, err
}

// copy copies the value of a key, without its deadline, over another key. The
// two are different keys.
func (t *Tx) copy(fromNS int, from string, toNS int, to string) (bool, error) {
	slot, _, err := t.Find(fromNS, from)
	if err != nil || slot.Type == keydir.None {
		return false, err
	}
	if _, err := t.Drop(toNS, to); err != nil {
		return false, err
	}
	if slot.Type == keydir.String {
		value, err := t.Value(nil, fromNS, from, "", keydir.String, slot.Loc)
		if err != nil {
			return false, err
		}
		return true, t.PutString(toNS, to, value)
	}
	target, err := t.Collection(toNS, to, slot.Type)
	if err != nil {
		return false, err
	}
	// Only now: making the target may move the memory of the source.
	_, coll, err := t.Find(fromNS, from)
	if err != nil {
		return false, err
	}
	return true, t.copyElements(fromNS, from, coll, toNS, to, target)
}

// copyElements reads the source through a list of its elements: putting into
// one collection while walking another may move memory that both share.
func (t *Tx) copyElements(fromNS int, from string, coll keydir.Collection, toNS int, to string, target keydir.Collection) error {
	if coll.Type().Indexed() {
		return t.copyIndexed(fromNS, from, coll, toNS, to, target)
	}
	type element struct {
		name string
		loc  keydir.Loc
	}
	list := make([]element, 0, coll.Len())
	coll.Scan(0, func(_ uint64, elem []byte, loc keydir.Loc) bool {
		list = append(list, element{name: string(elem), loc: loc})
		return true
	})
	var value []byte
	for _, e := range list {
		var err error
		switch coll.Type() {
		case keydir.ZSet:
			score, _, _ := coll.Score(e.name)
			err = t.PutScored(toNS, to, target, e.name, score)
		case keydir.Set:
			err = t.PutElem(toNS, to, target, e.name, nil)
		default:
			if value, err = t.Value(value[:0], fromNS, from, e.name, coll.Type(), e.loc); err == nil {
				err = t.PutElem(toNS, to, target, e.name, value)
			}
		}
		if err != nil {
			return err
		}
	}
	if coll.Type() == keydir.Hash {
		return t.copyFieldDeadlines(fromNS, from, toNS, to)
	}
	return nil
}

func (t *Tx) copyIndexed(fromNS int, from string, coll keydir.Collection, toNS int, to string, target keydir.Collection) error {
	head, tail := coll.Bounds()
	var value []byte
	for i := head; i <= tail; i++ {
		loc, ok := coll.LocAt(i)
		if !ok {
			continue
		}
		var err error
		if value, err = t.Value(value[:0], fromNS, from, format.IndexName(i), coll.Type(), loc); err != nil {
			return err
		}
		if err := t.PutIndex(toNS, to, target, i, value); err != nil {
			return err
		}
	}
	return nil
}
