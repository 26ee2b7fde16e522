package db

import (
	"iter"
	"strconv"

	"github.com/stavedb/stave/structures"
)

// List is a handle on a key that holds a list of values. Its methods return ErrWrongType if the key holds anything
// else. An empty list does not exist: the last element takes the key with it.
//
// Positions count from 0 at the front; negative ones count from the back, -1 being the last element.
type List struct{ handle }

// List returns a handle on the list at key. It reads nothing.
func (s *Store) List(key string) List { return List{s.handle(key)} }

// List returns a handle on the list at key, inside the transaction. It reads nothing.
func (t *Tx) List(key string) List { return List{t.handle(key)} }

// Len returns the number of elements, 0 if the key does not exist. O(1).
func (l List) Len() (int, error) {
	return call(l.handle, reading, func(t *Tx) (int, error) { return l.on(t).Len() })
}

// PushFront puts values in front, one after the other, so that the last one comes first, and returns the new length.
// O(1) a value.
func (l List) PushFront(values ...[]byte) (int, error) { return l.push(structures.Front, values) }

// PushBack puts values at the back and returns the new length. O(1) a value.
func (l List) PushBack(values ...[]byte) (int, error) { return l.push(structures.Back, values) }

func (l List) push(end structures.End, values [][]byte) (int, error) {
	return call(l.handle, writing, func(t *Tx) (int, error) { return l.on(t).Push(end, values, 0) })
}

// PushWith is PushFront or PushBack of several values, with conditions about the list: IfAbsent or IfPresent. O(1) a
// value.
func (l List) PushWith(end End, values [][]byte, options ...WriteOption) (int, error) {
	condition, err := conditionOf(options)
	if err != nil {
		return 0, err
	}
	n, err := call(l.handle, writing, func(t *Tx) (int, error) { return l.on(t).Push(end, values, condition) })
	none := len(values) == 0 && condition == structures.IfAbsent // nothing has been pushed, as was asked for
	return n, held(n > 0 || condition == 0 || none, options, err)
}

// PopFront removes and returns the first element. It returns ErrNotFound if the key does not exist. O(1), or
// O(log n) in a list that was changed in the middle.
func (l List) PopFront() ([]byte, error) { return l.pop(structures.Front) }

// PopBack removes and returns the last element. It returns ErrNotFound if the key does not exist. O(1), or
// O(log n) in a list that was changed in the middle.
func (l List) PopBack() ([]byte, error) { return l.pop(structures.Back) }

func (l List) pop(end structures.End) ([]byte, error) {
	return owned(callFound(l.handle, writing, func(t *Tx) ([]byte, bool, error) { return l.on(t).PopOne([]byte{}, end) }))
}

// PopFrontN removes and returns up to n elements from the front, the first one first. It returns ErrNotFound if the key
// does not exist, and structures.ErrNegative for a negative n. O(1) an element, or O(log n)
// in a list that was changed in the middle.
func (l List) PopFrontN(n int) ([][]byte, error) { return l.popN(structures.Front, n) }

// PopBackN removes and returns up to n elements from the back, the last one first. It returns ErrNotFound if the key
// does not exist, and structures.ErrNegative for a negative n. O(1) an element, or O(log n)
// in a list that was changed in the middle.
func (l List) PopBackN(n int) ([][]byte, error) { return l.popN(structures.Back, n) }

func (l List) popN(end structures.End, n int) ([][]byte, error) {
	return callFound(l.handle, writing, func(t *Tx) ([][]byte, bool, error) { return l.on(t).Pop(end, n) })
}

// At returns a copy of the element at a position, or ErrNotFound if there is none. O(1), or O(log n) in a list that was
// changed in the middle.
func (l List) At(position int64) ([]byte, error) {
	return owned(callFound(l.handle, reading, func(t *Tx) ([]byte, bool, error) { return l.on(t).At([]byte{}, position) }))
}

// Set replaces the element at a position. It returns ErrNotFound if the key does not exist, and
// structures.ErrIndexRange if the list has no such position. O(log n).
func (l List) Set(position int64, value []byte) error {
	ok, err := call(l.handle, writing, func(t *Tx) (ok bool, err error) {
		err = t.described(l.key, func() error {
			ok, err = l.on(t).Set(position, value)
			return err
		}, func() []string { return []string{"LSET", l.key, strconv.FormatInt(position, 10), string(value)} })
		return ok, err
	})
	return found(ok, err)
}

// Range returns the elements from start to stop, both inclusive; positions beyond the list are cut to it. O(number
// returned).
func (l List) Range(start, stop int64) ([][]byte, error) {
	var values [][]byte
	err := l.do(reading, func(t *Tx) error {
		return l.on(t).Visit(start, stop, func(n int) { values = make([][]byte, 0, n) }, func(value []byte) bool {
			values = append(values, append([]byte{}, value...))
			return true
		})
	})
	return values, err
}

// Visit calls begin once with the number of elements from start to stop, then visit for each of them until it returns
// false, all at one moment. begin may be nil. The slice is valid during the call only, and neither function may use the
// store or change the transaction: it is the form that copies nothing. O(number visited).
func (l List) Visit(start, stop int64, begin func(n int), visit func(value []byte) bool) error {
	return l.visit(func(t *Tx) error { return l.on(t).Visit(start, stop, begin, visit) })
}

// All ranges over the elements, front to back. See the package documentation on iterators: it reads in pages, so
// elements pushed or removed in front during the loop shift the rest.
func (l List) All() iter.Seq2[[]byte, error] {
	return scanPages(l.handle, func(position uint64) (page [][]byte, next uint64, err error) {
		page, err = l.Range(int64(position), int64(position+pageSize-1))
		if len(page) == pageSize {
			next = position + pageSize
		}
		return page, next, err
	})
}

// Trim keeps the elements from start to stop, both inclusive, and deletes the others; an empty range deletes the key.
// O(1) for every 512 deleted elements, and one record at each end.
func (l List) Trim(start, stop int64) error {
	return l.do(writing, func(t *Tx) error {
		return t.described(l.key, func() error { return l.on(t).Trim(start, stop) }, func() []string {
			return []string{"LTRIM", l.key, strconv.FormatInt(start, 10), strconv.FormatInt(stop, 10)}
		})
	})
}

// InsertBefore puts value before the first element that equals pivot and returns the new length, -1 if no element does,
// and 0 if the key does not exist. O(n) to find pivot, and one record, or in a list
// of up to 32 elements also one for each on the shorter side.
func (l List) InsertBefore(pivot, value []byte) (int, error) { return l.insert(true, pivot, value) }

// InsertAfter puts value after the first element that equals pivot and returns the new length, -1 if no element does,
// and 0 if the key does not exist. O(n) to find pivot, and one record, or in a list
// of up to 32 elements also one for each on the shorter side.
func (l List) InsertAfter(pivot, value []byte) (int, error) { return l.insert(false, pivot, value) }

func (l List) insert(before bool, pivot, value []byte) (int, error) {
	return call(l.handle, writing, func(t *Tx) (n int, err error) {
		err = t.described(l.key, func() error {
			n, err = l.on(t).Insert(before, pivot, value)
			return err
		}, func() []string {
			where := "AFTER"
			if before {
				where = "BEFORE"
			}
			return []string{"LINSERT", l.key, where, string(pivot), string(value)}
		})
		return n, err
	})
}

// Remove deletes elements that equal value and returns how many it deleted: the first count of them if count is
// positive, the last -count if it is negative, all if it is 0. O(n) to find them, and a record for each that is deleted.
func (l List) Remove(count int64, value []byte) (int, error) {
	return call(l.handle, writing, func(t *Tx) (n int, err error) {
		err = t.described(l.key, func() error {
			n, err = l.on(t).Remove(count, value)
			return err
		}, func() []string { return []string{"LREM", l.key, strconv.FormatInt(count, 10), string(value)} })
		return n, err
	})
}

// End is an end of a list.
type End = structures.End

// The ends of a list.
const (
	Front = structures.Front
	Back  = structures.Back
)

// ListMove says how many elements of a list are moved, and how.
//
//	Count    int
//	Exactly  bool // all of them, or none
//	OneByOne bool // each is put to the outermost place in turn, not all of them in their order
type ListMove = structures.ListMove

// MoveMany is Move of several elements, which it returns in the order in which they stand then. It returns ErrNotFound
// if the key does not exist, or has too few. O(1) an element, or O(log n) if either list was changed in the middle.
func (l List) MoveMany(to string, from, into End, m ListMove) ([][]byte, error) {
	var ok bool
	values, err := callKeys(l.handle, writing, []string{l.key, to}, func(t *Tx) (values [][]byte, err error) {
		values, ok, err = l.on(t).MoveMany(to, from, into, m)
		return values, err
	})
	return owned(values, found(ok, err))
}

// Move takes an element off one end of the list and puts it to an end of the list at another key, which may be the
// same: that rotates the list. It returns the element, or ErrNotFound if the key does not exist, and ErrWrongType if
// either key holds anything but a list. O(1), or O(log n) if either list was changed in the middle.
func (l List) Move(to string, from, into End) ([]byte, error) {
	var ok bool
	value, err := callKeys(l.handle, writing, []string{l.key, to}, func(t *Tx) (value []byte, err error) {
		value, ok, err = l.on(t).Move(to, from, into)
		return value, err
	})
	return owned(value, found(ok, err))
}

// PositionOptions narrow List.Positions.
//
//	Rank int64
//	Count int64
//	MaxLen int64
type PositionOptions = structures.PositionOptions

// Positions returns the positions of the elements that equal value, all of them or those that the options choose, in
// the order in which they are found. It returns none if the key does not exist. O(n).
func (l List) Positions(value []byte, o PositionOptions) ([]int64, error) {
	return call(l.handle, reading, func(t *Tx) ([]int64, error) { return l.on(t).Positions(value, o) })
}

// PopFirst removes up to n elements from one end of the first of several lists that exists, and returns its key and
// them, the outermost first. It returns ErrNotFound if none exists, ErrWrongType if a key before that holds anything
// else, and structures.ErrNegative for a negative n. O(number of keys), and O(1) an element, or
// O(log n) in a list that was changed in the middle.
func (k Keyspace) PopFirst(end End, n int, keys ...string) (key string, values [][]byte, err error) {
	var ok bool
	err = k.doKeys(writing, keys, func(t *Tx) (err error) {
		key, values, ok, err = structures.PopFirst(t.txn(), keys, end, n)
		return err
	})
	return key, values, found(ok, err)
}

func (l List) on(t *Tx) structures.List { return structures.List{Txn: t.txn(), Key: l.key} }
