package db

import (
	"iter"

	"github.com/stavedb/stave/structures"
)

// Hash is a handle on a key that holds a map from field names to values. Its methods return ErrWrongType if the key
// holds anything else. An empty hash does not exist: the last field takes the key with it. A field may have a deadline,
// see ExpireFields; from then on it is never seen again, whether or not the background cycle has reaped it yet.
type Hash struct{ handle }

// Hash returns a handle on the hash at key. It reads nothing.
func (s *Store) Hash(key string) Hash { return Hash{s.handle(key)} }

// Hash returns a handle on the hash at key, inside the transaction. It reads nothing.
func (t *Tx) Hash(key string) Hash { return Hash{t.handle(key)} }

// Field is a field of a hash: its name and its value.
//
//	Name string
//	Value []byte
type Field = structures.Field

// ScanOptions narrow a scan: a glob pattern, and how many elements one call visits.
//
//	Match string
//	Count int
//	NoValues bool
type ScanOptions = structures.ScanOptions

// Get returns a copy of a field's value. It returns ErrNotFound if the key or the field does not exist. O(log n).
func (h Hash) Get(field string) ([]byte, error) { return owned(h.AppendTo([]byte{}, field)) }

// AppendTo appends a field's value to dst and returns the extended buffer: Get without an allocation if dst has room.
// It returns dst unchanged and ErrNotFound if the key or the field does not exist. O(log n).
func (h Hash) AppendTo(dst []byte, field string) ([]byte, error) {
	var ok bool
	err := h.do(reading, func(t *Tx) (err error) {
		dst, ok, err = h.on(t).Get(dst, field)
		return err
	})
	return dst, found(ok, err)
}

// GetMany returns the values of several fields, in their order; nil stands for a field that does not exist. O(log n) a
// field.
func (h Hash) GetMany(fields ...string) ([][]byte, error) {
	values := make([][]byte, len(fields))
	err := h.do(reading, func(t *Tx) error { return h.on(t).GetMany(fields, collectAt(values)) })
	return owned(values, err)
}

// VisitMany calls visit with the place and the value of each of several fields, in their order, until it returns false:
// GetMany without copies. nil stands for a field that does not exist. The slice is valid during the call only, and
// visit may not use the store or change the transaction. O(log n) a field.
func (h Hash) VisitMany(fields []string, visit func(i int, value []byte) bool) error {
	return h.visit(func(t *Tx) error { return h.on(t).VisitMany(fields, visit) })
}

// Has says whether the field exists. O(log n).
func (h Hash) Has(field string) (bool, error) {
	return call(h.handle, reading, func(t *Tx) (bool, error) { return h.on(t).Has(field) })
}

// Len returns the number of fields, 0 if the key does not exist. O(1), and O(log n) in the number of fields with
// deadlines.
func (h Hash) Len() (int, error) {
	return call(h.handle, reading, func(t *Tx) (int, error) { return h.on(t).Len() })
}

// Put sets one field and says whether it is new. Without options it has no deadline afterwards; those of PutWith can be
// given. O(log n).
func (h Hash) Put(field string, value []byte, options ...WriteOption) (bool, error) {
	if len(options) > 0 {
		n, err := h.putWith([]Field{{Name: field, Value: value}}, options)
		return n > 0, err
	}
	return call(h.handle, writing, func(t *Tx) (bool, error) { return h.on(t).Put(field, value) })
}

// PutAll sets fields in their order and returns how many of them are new. They have no deadline afterwards. O(log n) a
// field.
func (h Hash) PutAll(fields ...Field) (int, error) {
	return call(h.handle, writing, func(t *Tx) (int, error) { return h.on(t).PutAll(fields) })
}

// Delete deletes fields and returns how many of them existed. O(log n) a field.
func (h Hash) Delete(fields ...string) (int, error) {
	return call(h.handle, writing, func(t *Tx) (int, error) { return h.on(t).Delete(fields) })
}

// Incr adds delta to the decimal integer that the field holds, 0 if it does not exist, and returns the sum. The
// deadline stays. It fails with structures.ErrHashNotInteger if the value is no int64, and with structures.ErrOverflow
// if the sum would not be one. O(log n).
func (h Hash) Incr(field string, delta int64) (int64, error) {
	return call(h.handle, writing, func(t *Tx) (int64, error) { return h.on(t).Incr(field, delta) })
}

// Entries returns all fields with their values: of up to 512 in order of insertion, of more in no particular order.
// O(n).
func (h Hash) Entries() ([]Field, error) {
	var fields []Field
	err := h.do(reading, func(t *Tx) error {
		return h.on(t).Visit(func(n int) { fields = make([]Field, 0, n) }, collectFields(&fields))
	})
	return fields, err
}

// Fields returns the names of all fields, in the order of Entries. O(n), without a read of a value.
func (h Hash) Fields() ([]string, error) {
	var names []string
	err := h.do(reading, func(t *Tx) error {
		return h.on(t).VisitFields(func(n int) { names = make([]string, 0, n) }, collect(&names))
	})
	return names, err
}

// Visit calls start once with the number of fields, then visit for each field until it returns false, all at one
// moment. start may be nil. The slices are valid during the call only, and neither function may use the store or change
// the transaction: it is the form that copies nothing. O(n).
func (h Hash) Visit(start func(n int), visit func(name, value []byte) bool) error {
	return h.visit(func(t *Tx) error { return h.on(t).Visit(start, visit) })
}

// VisitFields is Visit without the values, which are not read. O(n).
func (h Hash) VisitFields(start func(n int), visit func(name []byte) bool) error {
	return h.visit(func(t *Tx) error { return h.on(t).VisitFields(start, visit) })
}

// Scan returns some fields and the cursor that continues the scan; cursor 0 starts it, and a next cursor of 0 ends it.
// A field that exists from the start of the scan to its end is returned exactly once. A hash of up to 128 fields comes
// whole. O(o.Count), 10 if it is 0.
func (h Hash) Scan(cursor uint64, o ScanOptions) (fields []Field, next uint64, err error) {
	next, err = call(h.handle, reading, func(t *Tx) (uint64, error) {
		return h.on(t).Scan(cursor, o, func(name, value []byte) {
			f := Field{Name: string(name)}
			if !o.NoValues {
				f.Value = append([]byte{}, value...)
			}
			fields = append(fields, f)
		})
	})
	return fields, next, err
}

// All ranges over the fields, in no particular order. See the package documentation on iterators: it reads in pages, so
// the loop may change the hash.
func (h Hash) All() iter.Seq2[Field, error] {
	return scanPages(h.handle, func(cursor uint64) ([]Field, uint64, error) {
		return h.Scan(cursor, ScanOptions{Count: pageSize})
	})
}

func (h Hash) on(t *Tx) structures.Hash { return structures.Hash{Txn: t.txn(), Key: h.key} }

// ValueLen returns the length of a field's value in bytes, 0 if the key or the field does not exist. O(log n).
func (h Hash) ValueLen(field string) (int, error) {
	return call(h.handle, reading, func(t *Tx) (int, error) { return h.on(t).ValueLen(field) })
}

// GetAndDelete returns the values of several fields, in their order, and deletes them; nil stands for a field that does
// not exist. O(log n) a field.
func (h Hash) GetAndDelete(fields ...string) ([][]byte, error) {
	return collectAll(fields, func(visit func(i int, value []byte) bool) error { return h.VisitAndDelete(fields, visit) })
}

// VisitAndDelete is GetAndDelete for values that need not all be in memory at once: it calls visit with each value, in
// the order of the fields. If visit returns false, the fields after that one stay. The slice is valid during the call
// only.
func (h Hash) VisitAndDelete(fields []string, visit func(i int, value []byte) bool) error {
	return h.do(writing, func(t *Tx) error { return h.on(t).GetAndDelete(fields, visit) })
}

// Random returns fields chosen at random with their values: up to n different ones, or exactly -n that may repeat if n
// is negative. It returns none if the key does not exist. O(log n) a field.
func (h Hash) Random(n int) ([]Field, error) {
	var fields []Field
	err := h.do(reading, func(t *Tx) error { return h.on(t).VisitRandom(n, t.rand, nil, collectFields(&fields)) })
	return fields, err
}

// VisitRandom calls start once with the number of fields that Random would return, then visit for each of them until it
// returns false, all at one moment. start may be nil. The slices are valid during the call only, and neither function
// may use the store or change the transaction: it is the form that builds nothing. O(log n) a field.
func (h Hash) VisitRandom(n int, start func(n int), visit func(name, value []byte) bool) error {
	return h.visit(func(t *Tx) error { return h.on(t).VisitRandom(n, t.rand, start, visit) })
}

// VisitRandomFields is VisitRandom without the values, which are not read.
func (h Hash) VisitRandomFields(n int, start func(n int), visit func(name []byte) bool) error {
	return h.visit(func(t *Tx) error { return h.on(t).VisitRandomFields(n, t.rand, start, visit) })
}

// IncrFloat adds delta to the decimal float that the field holds, 0 if it does not exist, and returns the sum. It fails
// with structures.ErrHashNotFloat if the value is no float, and with structures.ErrSumInfinite if the sum would be
// infinite or no number. O(log n).
func (h Hash) IncrFloat(field string, delta float64) (float64, error) {
	return floatSum(h.IncrDecimal(field, decimal(delta)))
}

// IncrDecimal is IncrFloat in decimal text; see String.IncrDecimal.
func (h Hash) IncrDecimal(field, delta string) (string, error) {
	sum, err := call(h.handle, writing, func(t *Tx) ([]byte, error) { return h.on(t).IncrFloat(field, []byte(delta)) })
	return string(sum), err
}
