package structures

import (
	"cmp"
	"slices"

	"github.com/stavedb/stave/keydir"
)

// Move takes a member out of the set and adds it to the one at another key. It
// says false if the set does not have it. O(log n).
func (s Set) Move(to, member string) (bool, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return false, err
	}
	target := Set{Txn: s.Txn, Key: to}
	// The type is proved before anything is written.
	if _, err := target.open(); err != nil {
		return false, err
	}
	if s.Key == to {
		_, ok := f.Get(member)
		return ok, nil
	}
	if n, err := s.Remove([]string{member}); err != nil || n == 0 {
		return false, err
	}
	_, err = target.Add([]string{member})
	return true, err
}

// CountCombined returns how many members a combination has; it stops at limit if that is not 0. Costs are those of Combine.
func CountCombined(t SetTxn, op SetOp, keys []string, limit int) (n int, err error) {
	err = Combine(t, op, keys, func([]byte) bool {
		n++
		return n != limit
	})
	return n, err
}

// PutCombined makes the key the combination of the sets at keys, whatever it
// held before, and returns how many members it has; none deletes the key. The
// key may be one of the sets. The result is held in memory until it is written.
// Costs are those of Combine, and O(1) a member of the result.
func (s Set) PutCombined(op SetOp, keys []string) (int, error) {
	var members elementList
	err := Combine(s.Txn, op, keys, func(member []byte) bool {
		members.add(member, 0)
		return true
	})
	if err != nil {
		return 0, err
	}
	existed, err := s.Txn.Drop(s.Key)
	if err != nil {
		return 0, err
	}
	if members.n > 0 {
		err = s.fill(&members)
	}
	return members.n, notifyReplaced(s.Txn, op.event(EventSUnionStore, EventSInterStore, EventSDiffStore), s.Key, existed, members.n, err)
}

// fill makes the key, which holds nothing, a set of members that differ from each other.
func (s Set) fill(members *elementList) error {
	f, err := s.Txn.Collection(s.Key, keydir.Set)
	if err != nil {
		return err
	}
	return members.drain(func(member string, _ uint64) error {
		err := s.Txn.PutElem(s.Key, f, member, nil)
		s.Txn.Yield()
		return err
	})
}

// event is one of three events, by the operation.
func (op SetOp) event(union, inter, diff EventKind) EventKind {
	switch op {
	case Union:
		return union
	case Inter:
		return inter
	}
	return diff
}

// CountInter returns how many members all of the sets and sorted sets at keys
// have, or only sets if that is asked for; it stops at limit if that is not 0.
// O(smallest size * keys * log n).
func CountInter(t Base, keys []string, limit int, onlySets bool) (int, error) {
	all := make([]keydir.Collection, len(keys))
	missing := false
	for i, key := range keys {
		var err error
		if onlySets {
			all[i], err = open(t, key, keydir.Set)
		} else {
			all[i], err = openMembers(t, key)
		}
		if err != nil {
			return 0, err
		}
		missing = missing || !all[i].Valid()
	}
	if missing || len(all) == 0 {
		return 0, nil
	}
	slices.SortStableFunc(all, func(a, b keydir.Collection) int { return cmp.Compare(a.Len(), b.Len()) })
	n := 0
	all[0].Each(func(member []byte, _ keydir.Loc) bool {
		if inAll(all[1:], member) {
			n++
		}
		return (n != limit || limit == 0) && t.Step(len(all)) == nil
	})
	return n, t.Step(0)
}

// openMembers finds the set or the sorted set at key.
func openMembers(t Base, key string) (keydir.Collection, error) {
	slot, f, err := t.Find(key)
	switch {
	case err != nil || slot.Type == keydir.None:
		return keydir.Collection{}, err
	case slot.Type != keydir.Set && slot.Type != keydir.ZSet:
		return keydir.Collection{}, ErrWrongType
	}
	return f, nil
}
