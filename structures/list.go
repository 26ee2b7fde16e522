package structures

import (
	"bytes"
	"slices"
	"sync"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// List is a key that holds a list. Elements have consecutive indexes from any
// start on: pushing in front counts down, so both ends cost the same, and the
// n-th element is found without a walk. What happens in the middle is paid for
// by moving the smaller side, one record an element, as the index is part of
// a record's name.
type List struct {
	Txn ListTxn
	Key string
}

// End is an end of a list.
type End uint8

// The ends of a list.
const (
	Front End = iota
	Back
)

// event is one of two events, by the end.
func (e End) event(front, back EventKind) EventKind {
	if e == Front {
		return front
	}
	return back
}

func (l List) open() (keydir.Collection, error) { return open(l.Txn, l.Key, keydir.List) }

// Len returns the number of elements, 0 if the key does not exist. O(1).
func (l List) Len() (int, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return f.Len(), nil
}

// Push puts values at one end, one after the other, if c holds for the list, and
// returns the new length, 0 if it does not hold. O(1) a value.
func (l List) Push(end End, values [][]byte, c Condition) (int, error) {
	if err := c.checkExistence(); err != nil {
		return 0, err
	}
	if c != 0 || len(values) == 0 {
		n, err := l.Len()
		switch {
		case err != nil || !c.Holds(n > 0):
			return 0, err
		case len(values) == 0:
			return n, nil
		}
	}
	if slices.ContainsFunc(values, func(v []byte) bool { return len(v) > MaxString }) {
		return 0, ErrTooLong
	}
	f, err := create(l.Txn, l.Key, keydir.List)
	if err != nil {
		return 0, err
	}
	head, tail := f.Bounds()
	for _, value := range values {
		index := tail + 1
		if end == Front {
			head--
			index = head
		} else {
			tail++
		}
		if err := l.Txn.PutIndex(l.Key, f, index, value); err != nil {
			return 0, err
		}
		l.Txn.Yield()
	}
	l.Txn.Notify(end.event(EventLPush, EventRPush), l.Key)
	return f.Len(), nil
}

// AppendIndex appends the name of an index, as the element's record has it.
func AppendIndex(dst []byte, index int64) []byte {
	return ordered.AppendHex(dst, ordered.Int(index))
}

// listReader reads elements of a list one after the other, with one buffer. Readers
// are used again, so that reading one element allocates nothing.
type listReader struct {
	List
	f    keydir.Collection
	buf  []byte
	name [ordered.HexLen]byte

	// What each reads together.
	locs  [readAhead]keydir.Loc
	names [readAhead][ordered.HexLen]byte
	elems [readAhead]string // the bytes of names
	ends  []int
}

// readAhead is how many elements are read together at most.
const readAhead = 64

var readers = sync.Pool{New: func() any {
	r := &listReader{ends: make([]int, 0, readAhead)}
	for i := range r.names {
		r.elems[i] = text(r.names[i][:])
	}
	return r
}}

// keptBuffer is the largest buffer, in bytes, that a reader keeps for its next
// use.
const keptBuffer = 128 << 10

func (l List) reader(f keydir.Collection) *listReader {
	r := readers.Get().(*listReader)
	r.List, r.f = l, f
	return r
}

// release ends the use of a reader and of the slices that it returned.
func (r *listReader) release() {
	r.List, r.f = List{}, keydir.Collection{}
	if cap(r.buf) > keptBuffer {
		r.buf = nil
	}
	readers.Put(r)
}

// each calls visit for n elements within the bounds until it returns false: those from an index on, or up
// to it and the last first if step is -1. It reads few elements in vain if visit stops soon. visit must
// not change the list.
func (r *listReader) each(index int64, n int, step int64, visit func(value []byte) bool) error {
	for ahead := 4; n > 0; ahead = min(4*ahead, readAhead) {
		k := min(n, ahead)
		locs, last := r.locs[:k], index+step*int64(k-1)
		r.f.LocsAt(min(index, last), locs)
		if step < 0 {
			slices.Reverse(locs)
		}
		for i, loc := range locs {
			at := index + step*int64(i)
			if loc == 0 {
				return &HoleError{Key: r.Key, Index: at}
			}
			AppendIndex(r.names[i][:0], at)
		}
		var err error
		if r.buf, r.ends, err = r.Txn.Values(r.buf[:0], r.ends[:0], r.Key, r.elems[:k], keydir.List, locs); err != nil {
			return err
		}
		start := 0
		for _, end := range r.ends {
			if !visit(r.buf[start:end:end]) {
				return nil
			}
			start = end
		}
		index, n = index+step*int64(len(r.ends)), n-len(r.ends)
	}
	return nil
}

// at returns the element at an index within the bounds. It is valid until the
// next call.
func (r *listReader) at(index int64) (_ []byte, err error) {
	r.buf, err = r.append(r.buf[:0], index)
	return r.buf, err
}

// append appends the element at an index within the bounds to dst.
func (r *listReader) append(dst []byte, index int64) ([]byte, error) {
	loc, ok := r.f.LocAt(index)
	if !ok {
		return dst, &HoleError{Key: r.Key, Index: index}
	}
	name := AppendIndex(r.name[:0], index)
	return r.Txn.Value(dst, r.Key, text(name), keydir.List, loc)
}

// move writes the element at an index to another one.
func (r *listReader) move(from, to int64) error {
	value, err := r.at(from)
	if err != nil {
		return err
	}
	if err := r.Txn.Step(1); err != nil {
		return err
	}
	return r.Txn.PutIndex(r.Key, r.f, to, value)
}

// At appends the element at a position, negative ones counting from the back, to
// dst. It returns dst as it was, and false, if there is none. O(1).
func (l List) At(dst []byte, position int64) ([]byte, bool, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return dst, false, err
	}
	index, ok := indexOf(f, position)
	if !ok {
		return dst, false, nil
	}
	r := l.reader(f)
	defer r.release()
	value, err := r.append(dst, index)
	if err != nil {
		return dst, false, err
	}
	return value, true, nil
}

// indexOf is the index of a position, if the list has it.
func indexOf(f keydir.Collection, position int64) (int64, bool) {
	n := int64(f.Len())
	if position < 0 {
		position += n
	}
	head, _ := f.Bounds()
	return head + position, 0 <= position && position < n
}

// Set replaces the element at a position. It says false if the key does not
// exist, and fails with ErrIndexRange if the position does not. O(1).
func (l List) Set(position int64, value []byte) (bool, error) {
	if len(value) > MaxString {
		return false, ErrTooLong
	}
	f, err := l.open()
	if err != nil || !f.Valid() {
		return false, err
	}
	index, ok := indexOf(f, position)
	if !ok {
		return true, ErrIndexRange
	}
	return true, notifyUnless(l.Txn, EventLSet, l.Key, l.Txn.PutIndex(l.Key, f, index, value))
}

// Visit calls begin, unless it is nil, with the number of elements from
// position start to stop, both inclusive, then visit for each until it returns
// false. The slice is valid during the call only, and neither function may
// change the list. O(number visited).
func (l List) Visit(start, stop int64, begin func(n int), visit func(value []byte) bool) error {
	f, err := l.open()
	if err != nil {
		return err
	}
	first, count := 0, 0
	if f.Valid() {
		first, count = window(start, stop, f.Len())
	}
	if begin != nil {
		begin(count)
	}
	if count == 0 {
		return nil
	}
	r := l.reader(f)
	defer r.release()
	head, _ := f.Bounds()
	return r.each(head+int64(first), count, 1, visit)
}

// Trim keeps the elements from position start to stop, both inclusive. It
// touches none of them: the ends are deleted, as a range each.
func (l List) Trim(start, stop int64) error {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return err
	}
	first, count := window(start, stop, f.Len())
	if count == 0 {
		return dropAll(l.Txn, l.Key, EventLTrim)
	}
	if err := l.deleteEnd(f, Front, first); err != nil {
		return err
	}
	return notifyUnless(l.Txn, EventLTrim, l.Key, l.deleteEnd(f, Back, f.Len()-count))
}

// deleteEnd deletes n elements at one end.
func (l List) deleteEnd(f keydir.Collection, end End, n int) error {
	if n == 0 {
		return nil
	}
	head, tail := f.Bounds()
	if end == Front {
		tail = head + int64(n) - 1
	} else {
		head = tail - int64(n) + 1
	}
	_, err := l.Txn.DeleteRange(l.Key, f, head, tail)
	return err
}

// Insert puts value before or after the first element that equals pivot. It
// returns the new length, -1 if no element does, and 0 if the key does not
// exist. O(n).
func (l List) Insert(before bool, pivot, value []byte) (int, error) {
	if len(value) > MaxString {
		return 0, ErrTooLong
	}
	f, err := l.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	found, err := l.search(f, pivot, 1)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return -1, nil
	}
	at := found[0] // how many elements will be in front of the new one
	if !before {
		at++
	}
	n := int64(f.Len())
	head, tail := f.Bounds()
	r := l.reader(f)
	defer r.release()
	if at <= n-at {
		for index := head; index < head+at && err == nil; index++ {
			err = r.move(index, index-1)
		}
		head--
	} else {
		for index := tail; index >= head+at && err == nil; index-- {
			err = r.move(index, index+1)
		}
	}
	if err != nil {
		return 0, err
	}
	if err := l.Txn.PutIndex(l.Key, f, head+at, value); err != nil {
		return 0, err
	}
	l.Txn.Notify(EventLInsert, l.Key)
	return f.Len(), nil
}

// search returns the positions of elements that equal value, in ascending order:
// the first limit of them, the last -limit, or all if limit is 0.
func (l List) search(f keydir.Collection, value []byte, limit int64) ([]int64, error) {
	var found []int64
	err := l.eachPosition(f, limit < 0, f.Len(), func(position int64, elem []byte) bool {
		if bytes.Equal(elem, value) {
			found = append(found, position)
		}
		count := int64(len(found))
		return count == 0 || count != limit && count != -limit
	})
	if limit < 0 {
		slices.Reverse(found)
	}
	return found, err
}

// Remove deletes elements that equal value and returns their number: the first
// count of them, the last -count if count is negative, or all if it is 0. O(n).
func (l List) Remove(count int64, value []byte) (int, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	gaps, err := l.search(f, value, count)
	if err != nil || len(gaps) == 0 {
		return 0, err
	}
	if len(gaps) == f.Len() {
		return len(gaps), dropAll(l.Txn, l.Key, EventLRem)
	}
	front := closeInFront(gaps, int64(f.Len()))
	if err := l.closeGaps(f, gaps, front); err != nil {
		return 0, err
	}
	if err := l.deleteEnd(f, Front, front); err != nil {
		return 0, err
	}
	return len(gaps), notifyUnless(l.Txn, EventLRem, l.Key, l.deleteEnd(f, Back, len(gaps)-front))
}

// closeInFront returns how many of the gaps at some positions in a list of length n are best closed
// by moving the elements before them. Those after the other gaps move, and the ones between stay,
// so the longest stretch between two neighbours is the one to spare.
func closeInFront(gaps []int64, n int64) int {
	best, spared := 0, gaps[0]
	for i := 1; i <= len(gaps); i++ {
		next := n
		if i < len(gaps) {
			next = gaps[i]
		}
		if stretch := next - gaps[i-1] - 1; stretch > spared {
			best, spared = i, stretch
		}
	}
	return best
}

// closeGaps moves elements over the gaps: backwards over the first `front` of
// them, forwards over the others. As many elements at the ends are left over.
func (l List) closeGaps(f keydir.Collection, gaps []int64, front int) error {
	r := l.reader(f)
	defer r.release()
	head, tail := f.Bounds()
	if left := gaps[:front]; front > 0 {
		to := head + left[front-1]
		for from := to; from >= head; from-- {
			if len(left) > 0 && from == head+left[len(left)-1] {
				left = left[:len(left)-1]
				continue
			}
			if err := r.move(from, to); err != nil {
				return err
			}
			to--
		}
	}
	if right := gaps[front:]; len(right) > 0 {
		to := head + right[0]
		for from := to; from <= tail; from++ {
			if len(right) > 0 && from == head+right[0] {
				right = right[1:]
				continue
			}
			if err := r.move(from, to); err != nil {
				return err
			}
			to++
		}
	}
	return nil
}
