package structures

import (
	"slices"

	"github.com/stavedb/stave/keydir"
)

// Hash is a key that holds a map from field names to values. The names are in
// memory, the values on disk: what needs names only reads nothing. A field may
// have a deadline, from which on it is gone.
type Hash struct {
	Txn HashTxn
	Key string
}

// Field is a field of a hash: its name and its value.
type Field struct {
	Name  string
	Value []byte
}

// Get appends a field's value to dst. It returns dst as it was, and false, if
// the field does not exist. O(log n).
func (h Hash) Get(dst []byte, field string) ([]byte, bool, error) {
	v, err := h.open()
	if err != nil {
		return dst, false, err
	}
	loc, ok := v.get(field)
	if !ok {
		return dst, false, nil
	}
	value, err := v.value(dst, field, loc)
	if err != nil {
		return dst, false, err
	}
	return value, true, nil
}

// GetMany calls visit with the value of each of several fields, in their order;
// nil stands for one that does not exist. The slice is valid during the call
// only. O(log n) a field.
func (h Hash) GetMany(fields []string, visit func(i int, value []byte)) error {
	return h.VisitMany(fields, func(i int, value []byte) bool {
		visit(i, value)
		return true
	})
}

// Has says whether the field exists. O(log n).
func (h Hash) Has(field string) (bool, error) {
	v, err := h.open()
	if err != nil {
		return false, err
	}
	_, ok := v.get(field)
	return ok, nil
}

// Len returns the number of fields, 0 if the key does not exist. O(1), and O(log
// n) in the number of fields that have a deadline.
func (h Hash) Len() (int, error) {
	v, err := h.open()
	return v.len(), err
}

// Put sets one field and says whether it is new. It has no deadline afterwards.
// O(log n).
func (h Hash) Put(field string, value []byte) (bool, error) {
	if err := checkElem(field, value); err != nil {
		return false, err
	}
	v, err := h.create()
	if err != nil {
		return false, err
	}
	isNew, err := v.put(field, value, false)
	return isNew, notifyUnless(h.Txn, EventHSet, h.Key, err)
}

// PutAll sets fields in their order and returns how many of them are new. They
// have no deadline afterwards. O(log n) a field.
func (h Hash) PutAll(fields []Field) (int, error) {
	if len(fields) == 0 {
		return 0, nil
	}
	n, _, err := h.PutWith(fields, FieldDeadline{Change: ClearDeadlines}, 0, 0)
	return n, err
}

// PutWith sets fields in their order, with their deadlines, if c holds for all of
// them. It returns how many of them are new; ok says whether c held. O(log n) a
// field.
func (h Hash) PutWith(list []Field, o FieldDeadline, now int64, c Condition) (n int, ok bool, err error) {
	if err := c.checkExistence(); err != nil {
		return 0, false, err
	}
	if err := checkFieldDeadline(o.MS); err != nil {
		return 0, false, err
	}
	for i := range list {
		if err := checkElem(list[i].Name, list[i].Value); err != nil {
			return 0, false, err
		}
	}
	v, err := h.open()
	if err != nil || len(list) == 0 || !v.allow(c, list) {
		return 0, len(list) == 0, err
	}
	if err := v.ensure(); err != nil {
		return 0, false, err
	}
	var done expiryCount
	for i := range list {
		isNew, err := v.put(list[i].Name, list[i].Value, o.Change != ClearDeadlines)
		if err != nil {
			return 0, false, err
		}
		if isNew {
			n++
		}
		if o.Change == SetDeadlines {
			r, err := v.expireIf(list[i].Name, o.MS, now, 0)
			if err != nil {
				return 0, false, err
			}
			done.count(r)
		}
	}
	h.Txn.Notify(EventHSet, h.Key)
	return n, true, v.notifyExpiry(done)
}

// allow says whether a condition holds for all fields.
func (v *hashView) allow(c Condition, list []Field) bool {
	return c == 0 || !slices.ContainsFunc(list, func(f Field) bool {
		_, exists := v.get(f.Name)
		return !c.Holds(exists)
	})
}

// Delete deletes fields and returns how many of them existed. O(log n) a field.
func (h Hash) Delete(fields []string) (int, error) {
	v, err := h.open()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, field := range fields {
		existed, err := v.delete(field)
		if err != nil {
			return n, err
		}
		if existed {
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	return n, v.afterDelete(EventHDel)
}

// deleteElems deletes elements, by which event, and returns how many there were.
func deleteElems(t SetTxn, key string, f keydir.Collection, elems []string, e EventKind) (int, error) {
	n := 0
	for _, elem := range elems {
		ok, err := t.DeleteElem(key, f, elem)
		if err != nil {
			return n, err
		}
		if !ok {
			continue
		}
		n++
		if f.Len() == 0 {
			break
		}
	}
	if n == 0 {
		return 0, nil
	}
	return n, afterDelete(t, key, f, e)
}

// Visit calls start, unless it is nil, with the number of fields, then visit
// for each until it returns false. The slices are valid during the call only,
// and neither function may change the hash. O(n).
func (h Hash) Visit(start func(n int), visit func(name, value []byte) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	if start != nil {
		start(v.len())
	}
	if v.len() > 0 {
		if err := v.eachValue(v.each, visit); err != nil {
			return err
		}
	}
	return h.Txn.Step(0)
}

// VisitFields is Visit without the values, which are not read. O(n).
func (h Hash) VisitFields(start func(n int), visit func(name []byte) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	if start != nil {
		start(v.len())
	}
	if v.len() > 0 {
		v.each(func(name []byte, _ keydir.Loc) bool { return visit(name) })
	}
	return h.Txn.Step(0)
}

// visitAll calls start with the size of a collection, 0 if it does not exist,
// and visit with each element until it returns false.
func visitAll(t Base, key string, typ keydir.Type, start func(n int), visit func(elem []byte, loc keydir.Loc) bool) error {
	f, err := open(t, key, typ)
	if err != nil {
		return err
	}
	n := 0
	if f.Valid() {
		n = f.Len()
	}
	if start != nil {
		start(n)
	}
	if n > 0 {
		f.Each(func(elem []byte, loc keydir.Loc) bool { return visit(elem, loc) && t.Step(1) == nil })
	}
	return t.Step(0)
}

// Scan visits some fields from the cursor on and returns the cursor that
// continues, 0 at the end. A field that exists from the start of a scan to its
// end is visited exactly once. The slices are valid during the call only; value
// is nil with o.NoValues. O(o.Count).
func (h Hash) Scan(cursor uint64, o ScanOptions, visit func(name, value []byte)) (next uint64, err error) {
	v, err := h.open()
	if err != nil {
		return 0, err
	}
	var buf []byte
	return scan(h.Txn, v.all, cursor, o, func(name []byte, loc keydir.Loc) (err error) {
		if v.hidden(text(name)) {
			return nil
		}
		if !o.NoValues {
			if buf, err = v.value(buf[:0], text(name), loc); err != nil {
				return err
			}
		}
		visit(name, buf)
		return nil
	})
}

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
