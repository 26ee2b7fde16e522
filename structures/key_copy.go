package structures

import "github.com/stavedb/stave/keydir"

// Copy makes another key, of dst, hold what the key holds, with its deadline. It
// says false, and does nothing, if the key does not exist, or if the other does
// and replace is not set. dst is a view on another namespace of the same atomic
// unit, or k.Txn; the two are not the same key. O(n).
func (k Key) Copy(dst Txn, to string, replace bool) (bool, error) {
	done, err := k.copy(dst, to, replace)
	if done && err == nil {
		dst.Notify(EventCopyTo, to)
	}
	return done, err
}

func (k Key) copy(dst Txn, to string, replace bool) (bool, error) {
	slot, _, err := k.Txn.Find(k.Key)
	if err != nil || slot.Type == keydir.None {
		return false, err
	}
	taken, err := Key{Txn: dst, Key: to}.exists()
	if err != nil || taken && !replace {
		return false, err
	}
	if taken {
		if _, err := dst.Drop(to); err != nil {
			return false, err
		}
		dst.Notify(EventNew, to)
	}
	if slot.Type == keydir.String {
		err = k.copyString(dst, to)
	} else {
		err = k.copyCollection(dst, to, slot.Type)
	}
	if err != nil {
		return false, err
	}
	if ms, set := k.Txn.Deadline(k.Key); set {
		return true, dst.SetDeadline(to, ms)
	}
	return true, nil
}

// Move is Copy of a key that is deleted then.
func (k Key) Move(dst Txn, to string) (bool, error) {
	copied, err := k.copy(dst, to, false)
	if err != nil || !copied {
		return false, err
	}
	_, err = k.Txn.Drop(k.Key)
	if err == nil {
		k.Txn.Notify(EventMoveFrom, k.Key)
		dst.Notify(EventMoveTo, to)
	}
	return true, err
}

func (k Key) copyString(dst Txn, to string) error {
	value, _, err := String(k).Get(nil)
	if err != nil {
		return err
	}
	return String{Txn: dst, Key: to}.put(value)
}

// copyCollection copies a collection. Putting into one collection while another is
// walked may move memory that both share, so names are listed first, and the
// source is looked up once the target is there.
func (k Key) copyCollection(dst Txn, to string, typ keydir.Type) error {
	target, err := dst.Collection(to, typ)
	if err != nil {
		return err
	}
	source, err := open(k.Txn, k.Key, typ)
	if err != nil {
		return err
	}
	switch typ {
	case keydir.List, keydir.Chunks:
		return k.copyIndexed(dst, source, target)
	case keydir.Hash:
		return k.copyHash(dst, target)
	}
	elements := make([]string, 0, source.Len())
	source.Each(func(elem []byte, _ keydir.Loc) bool {
		elements = append(elements, string(elem))
		return true
	})
	for _, name := range elements {
		if typ == keydir.ZSet {
			score, _, _ := source.Score(name)
			err = dst.PutScored(target, name, score)
		} else {
			err = dst.PutElem(target, name, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyHash copies the fields with their deadlines.
func (k Key) copyHash(dst Txn, target keydir.Collection) error {
	source, err := Hash(k).open()
	if err != nil {
		return err
	}
	type field struct {
		name string
		loc  keydir.Loc
	}
	list := make([]field, 0, source.len())
	source.each(func(name []byte, loc keydir.Loc) bool {
		list = append(list, field{string(name), loc})
		return true
	})
	var value []byte
	for _, f := range list {
		if value, err = source.value(value[:0], f.name, f.loc); err != nil {
			return err
		}
		if err := dst.PutElem(target, f.name, value); err != nil {
			return err
		}
		if ms, ok := source.deadline(f.name); ok {
			if err := dst.SetFieldDeadline(target, f.name, ms); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyIndexed copies a list or the chunks of a string, of which some may be missing.
func (k Key) copyIndexed(dst Txn, source, target keydir.Collection) error {
	head, tail := source.Bounds()
	var value, name []byte
	for i := head; i <= tail; i++ {
		loc, ok := source.LocAt(i)
		if !ok && source.Type() == keydir.Chunks {
			continue
		}
		if !ok {
			return &HoleError{Key: k.Key, Index: i}
		}
		name = AppendIndex(name[:0], i)
		var err error
		if value, err = k.Txn.Value(value[:0], k.Key, string(name), source.Type(), loc); err != nil {
			return err
		}
		if err := dst.PutIndex(target, i, value); err != nil {
			return err
		}
	}
	return nil
}
