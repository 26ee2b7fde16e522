package structures

import "github.com/stavedb/stave/keydir"

// ValueLen returns the length of a field's value in bytes, 0 if the field does
// not exist. O(log n).
func (h Hash) ValueLen(field string) (int, error) {
	f, err := h.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	loc, ok := f.Get(field)
	if !ok {
		return 0, nil
	}
	return h.Txn.ValueLen(h.Key, field, keydir.Hash, loc)
}

// GetAndDelete calls visit with the value of each of several fields, in their
// order, and deletes them; nil stands for one that does not exist, or not any
// more. The slice is valid during the call only. O(log n) a field.
func (h Hash) GetAndDelete(fields []string, visit func(i int, value []byte)) error {
	f, err := h.open()
	if err != nil {
		return err
	}
	deleted := false
	buf := make([]byte, 0, 64) // never nil: an empty value is not a missing one
	for i, field := range fields {
		var value []byte
		if f.Valid() && f.Len() > 0 {
			if loc, ok := f.Get(field); ok {
				if buf, err = h.Txn.Value(buf[:0], h.Key, field, keydir.Hash, loc); err != nil {
					return err
				}
				value = buf
				if _, err = h.Txn.DeleteElem(f, field); err != nil {
					return err
				}
				deleted = true
			}
		}
		visit(i, value)
	}
	if !deleted {
		return nil
	}
	return settle(h.Txn, h.Key, f, EventHDel)
}

// VisitRandom calls start, unless it is nil, with a number of fields, then visit
// with each of them until it returns false: up to n different fields chosen by
// random, or -n that may repeat if n is negative. The slices are valid during
// the call only, and neither function may change the hash. O(log n) a field.
func (h Hash) VisitRandom(n int, random func() uint64, start func(n int), visit func(name, value []byte) bool) error {
	f, err := h.open()
	if err != nil {
		return err
	}
	var buf []byte
	var failed error
	err = visitRandom(f, n, random, start, func(name []byte, loc keydir.Loc) bool {
		if buf, failed = h.Txn.Value(buf[:0], h.Key, text(name), keydir.Hash, loc); failed != nil {
			return false
		}
		return visit(name, buf)
	})
	if err == nil {
		err = failed
	}
	return err
}

// VisitRandomFields is VisitRandom without the values, which are not read.
func (h Hash) VisitRandomFields(n int, random func() uint64, start func(n int), visit func(name []byte) bool) error {
	f, err := h.open()
	if err != nil {
		return err
	}
	return visitRandom(f, n, random, start, func(name []byte, _ keydir.Loc) bool { return visit(name) })
}
