package structures

import "github.com/stavedb/stave/keydir"

// ValueLen returns the length of a field's value in bytes, 0 if the field does
// not exist. O(log n).
func (h Hash) ValueLen(field string) (int, error) {
	v, err := h.open()
	if err != nil {
		return 0, err
	}
	loc, ok := v.get(field)
	if !ok {
		return 0, nil
	}
	return h.Txn.ValueLen(h.Key, field, keydir.Hash, loc)
}

// GetAndDelete calls visit with the value of each of several fields, in their order, until it returns false, and
// deletes them; nil stands for one that does not exist. The slice is valid during the call only. O(log n) a field.
func (h Hash) GetAndDelete(fields []string, visit func(i int, value []byte) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	deleted := false
	err = v.getMany(fields, visit, func(field string) (err error) {
		deleted, err = v.delete(field)
		return err
	})
	if err != nil || !deleted {
		return err
	}
	return v.afterDelete(EventHDel)
}

// VisitRandom calls start, unless it is nil, with a number of fields, then visit
// with each of them until it returns false: up to n different fields chosen by
// random, or -n that may repeat if n is negative. The slices are valid during
// the call only, and neither function may change the hash. O(log n) a field.
func (h Hash) VisitRandom(n int, random func() uint64, start func(n int), visit func(name, value []byte) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	return v.eachValue(func(visit func(name []byte, loc keydir.Loc) bool) { v.random(n, random, start, visit) }, visit)
}

// VisitRandomFields is VisitRandom without the values, which are not read.
func (h Hash) VisitRandomFields(n int, random func() uint64, start func(n int), visit func(name []byte) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	v.random(n, random, start, func(name []byte, _ keydir.Loc) bool { return visit(name) })
	return nil
}
