package structures

import (
	"slices"
	"sync"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// List is a key that holds a list. Pushes give elements consecutive indexes from any
// start on: pushing in front counts down, so both ends cost the same. What happens in
// the middle (list_middle.go) leaves all other elements where they are: an index without an element is a
// hole, and an element between two indexes has a sub-index. The keydir counts
// elements by page where there is any such, so the n-th one is found without a walk.
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

// AppendIndex appends the name of an index, as the record of a chunk or of an element has it.
func AppendIndex(dst []byte, index int64) []byte {
	return ordered.AppendHex(dst, ordered.Int(index))
}

// AppendPlace appends the name of a place in a list, as the element's record has it.
func AppendPlace(dst []byte, at keydir.ListPlace) []byte {
	dst = AppendIndex(dst, at.Index)
	if at.Sub > 0 {
		dst = ordered.AppendHex(dst, at.Sub)
	}
	return dst
}

// placeOf returns the place of the element at a position that the list has.
func placeOf(f keydir.Collection, position int) keydir.ListPlace {
	var at [1]keydir.ListPlace
	var locs [1]keydir.Loc
	f.Elements(position, at[:], locs[:])
	return at[0]
}

// listReader reads elements of a list one after the other, with one buffer. Readers
// are used again, so that reading one element allocates nothing.
type listReader struct {
	List
	f    keydir.Collection
	buf  []byte
	name [placeLen]byte

	// What each reads together.
	places [readAhead]keydir.ListPlace
	locs   [readAhead]keydir.Loc
	names  [readAhead][placeLen]byte
	elems  [readAhead]string // the bytes of names
	ends   []int
}

// placeLen is the length of the longest name of a place.
const placeLen = 2 * ordered.HexLen

// readAhead is how many elements are read together at most.
const readAhead = 64

var readers = sync.Pool{New: func() any {
	return &listReader{ends: make([]int, 0, readAhead)}
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

// each calls visit for n elements that the list has until it returns false: those from a position on, or up
// to it and the last first if step is -1. It reads few elements in vain if visit stops soon. visit must
// not change the list.
func (r *listReader) each(position, n, step int, visit func(value []byte) bool) error {
	for ahead := 4; n > 0; ahead = min(4*ahead, readAhead) {
		k := min(n, ahead)
		places, locs := r.places[:k], r.locs[:k]
		r.f.Elements(min(position, position+step*(k-1)), places, locs)
		if step < 0 {
			slices.Reverse(places)
			slices.Reverse(locs)
		}
		for i := range places {
			name := ordered.AppendHex(r.names[i][:0], ordered.Int(places[i].Index))
			if sub := places[i].Sub; sub > 0 {
				name = ordered.AppendHex(name, sub)
			}
			r.elems[i] = text(name)
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
		position, n = position+step*len(r.ends), n-len(r.ends)
	}
	return nil
}

// append appends the element at a position that the list has to dst.
func (r *listReader) append(dst []byte, position int) ([]byte, error) {
	r.f.Elements(position, r.places[:1], r.locs[:1])
	return r.value(dst, r.places[0], r.locs[0])
}

// value appends an element whose record is at loc.
func (r *listReader) value(dst []byte, at keydir.ListPlace, loc keydir.Loc) ([]byte, error) {
	return r.Txn.Value(dst, r.Key, text(AppendPlace(r.name[:0], at)), keydir.List, loc)
}

// move writes an element, whose record is at loc, to another place.
func (r *listReader) move(from keydir.ListPlace, loc keydir.Loc, to keydir.ListPlace) (err error) {
	if r.buf, err = r.value(r.buf[:0], from, loc); err != nil {
		return err
	}
	return r.Txn.PutPlace(r.Key, r.f, to, r.buf)
}

// At appends the element at a position, negative ones counting from the back, to
// dst. It returns dst as it was, and false, if there is none. O(log n).
func (l List) At(dst []byte, position int64) ([]byte, bool, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return dst, false, err
	}
	i, ok := within(f, position)
	if !ok {
		return dst, false, nil
	}
	r := l.reader(f)
	defer r.release()
	value, err := r.append(dst, i)
	if err != nil {
		return dst, false, err
	}
	return value, true, nil
}

// within is a position counted from the front, if the list has it.
func within(f keydir.Collection, position int64) (int, bool) {
	n := int64(f.Len())
	if position < 0 {
		position += n
	}
	return int(position), 0 <= position && position < n
}

// Set replaces the element at a position. It says false if the key does not
// exist, and fails with ErrIndexRange if the position does not. O(log n).
func (l List) Set(position int64, value []byte) (bool, error) {
	if len(value) > MaxString {
		return false, ErrTooLong
	}
	f, err := l.open()
	if err != nil || !f.Valid() {
		return false, err
	}
	i, ok := within(f, position)
	if !ok {
		return true, ErrIndexRange
	}
	return true, notifyUnless(l.Txn, EventLSet, l.Key, l.Txn.PutPlace(l.Key, f, placeOf(f, i), value))
}

// Visit calls begin, unless it is nil, with the number of elements from
// position start to stop, both inclusive, then visit for each until it returns
// false. The slice is valid during the call only, and neither function may
// change the list. O(log n) and O(number visited).
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
	return r.each(first, count, 1, visit)
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
	first := 0
	if end == Back {
		first = f.Len() - n
	}
	_, err := l.Txn.DeleteRange(l.Key, f, placeOf(f, first), placeOf(f, first+n-1))
	return err
}
