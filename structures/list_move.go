package structures

import (
	"bytes"
	"slices"

	"github.com/stavedb/stave/keydir"
)

// Move takes an element off one end of the list and puts it to an end of the
// list at another key, which may be the same: that rotates it. It returns the
// element, and false if the key does not exist. As fast as Pop.
func (l List) Move(to string, from, into End) ([]byte, bool, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return nil, false, err
	}
	hushed := quietList{l.Txn}
	target := List{Txn: hushed, Key: to}
	// The type is proved before anything is written.
	if _, err := target.open(); err != nil {
		return nil, true, err
	}
	if to == l.Key && f.Len() == 1 {
		// To pop the only element would delete the key, with its deadline.
		value, _, err := l.At([]byte{}, 0)
		if err != nil {
			return nil, true, err
		}
		_, err = target.Set(0, value)
		return value, true, l.moved(to, from, into, false, err)
	}
	last := f.Len() == 1
	values, _, err := List{Txn: hushed, Key: l.Key}.Pop(from, 1)
	if err != nil {
		return nil, true, err
	}
	_, err = target.Push(into, values, 0)
	return values[0], true, l.moved(to, from, into, last, err)
}

// moved notifies of a move. As in Redis the push comes first.
func (l List) moved(to string, from, into End, last bool, err error) error {
	if err != nil {
		return err
	}
	l.Txn.Notify(into.event(EventLPush, EventRPush), to)
	l.Txn.Notify(from.event(EventLPop, EventRPop), l.Key)
	if last {
		l.Txn.Notify(EventDel, l.Key)
	}
	return nil
}

// ListMove says how many elements of a list are moved, and how.
type ListMove struct {
	Count    int
	Exactly  bool // all of them, or none
	OneByOne bool // each is put to the outermost place in turn, not all of them in their order
}

// MoveMany takes elements off one end of the list and puts them to an end of the list at another key, which may be the
// same. It returns them in the order in which they stand there, and false if the key does not exist, or has too few.
// As fast as Pop.
func (l List) MoveMany(to string, from, into End, m ListMove) ([][]byte, bool, error) {
	f, err := l.open()
	if err != nil || !f.Valid() || m.Exactly && f.Len() < m.Count {
		return nil, false, err
	}
	hushed := quietList{l.Txn}
	target := List{Txn: hushed, Key: to}
	// The type is proved before anything is written.
	if _, err := target.open(); err != nil {
		return nil, true, err
	}
	n, last := min(m.Count, f.Len()), m.Count >= f.Len()
	if to == l.Key && last {
		return l.rearrange(target, n, from, into, m)
	}
	values, _, err := List{Txn: hushed, Key: l.Key}.Pop(from, n)
	if err != nil {
		return nil, true, err
	}
	m.arrange(values, from, into)
	_, err = target.Push(into, pushed(values, into), 0)
	return values, true, l.moved(to, from, into, last, err)
}

// arrange puts elements, the first that was taken off first, into the order in which they are to stand.
func (m ListMove) arrange(values [][]byte, from, into End) {
	if m.OneByOne && into == Front || !m.OneByOne && from == Back {
		slices.Reverse(values)
	}
}

// pushed are elements in the order in which they are pushed to an end to stand as they do.
func pushed(values [][]byte, into End) [][]byte {
	if into == Back {
		return values
	}
	values = slices.Clone(values)
	slices.Reverse(values)
	return values
}

// rearrange is MoveMany of all elements to the same key. To pop them all would delete it, with its deadline.
func (l List) rearrange(target List, n int, from, into End, m ListMove) (values [][]byte, _ bool, err error) {
	err = l.Visit(0, -1, func(int) { values = make([][]byte, 0, n) }, func(value []byte) bool {
		values = append(values, bytes.Clone(value))
		return true
	})
	if err != nil {
		return nil, true, err
	}
	if from == Back {
		slices.Reverse(values) // the first that is taken off first
	}
	if m.arrange(values, from, into); m.OneByOne && from == into {
		for i, value := range values {
			if _, err := target.Set(int64(i), value); err != nil {
				return nil, true, err
			}
		}
	}
	return values, true, l.moved(target.Key, from, into, false, nil)
}

// PopFirst is Pop on the first of several lists that exists, and returns its
// key. It says false if none does. O(number of keys), and that of Pop.
func PopFirst(t ListTxn, keys []string, end End, n int) (key string, values [][]byte, ok bool, err error) {
	for _, key := range keys {
		values, ok, err := List{Txn: t, Key: key}.Pop(end, n)
		if err != nil || ok {
			return key, values, ok, err
		}
	}
	return "", nil, false, nil
}

// PositionOptions narrow a search for elements.
type PositionOptions struct {
	// Rank is which match is the first that counts; a negative one searches
	// from the back, -1 being the last match. Default: 1.
	Rank int64
	// Count is how many matches to return. Default: all of them.
	Count int64
	// MaxLen bounds how many elements are compared. Default: all of them.
	MaxLen int64
}

// Positions returns the positions, counted from the front, of elements that
// equal value, in the order in which they are found. O(n).
func (l List) Positions(value []byte, o PositionOptions) ([]int64, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return nil, err
	}
	return l.positions(f, value, o)
}

func (l List) positions(f keydir.Collection, value []byte, o PositionOptions) ([]int64, error) {
	n := int64(f.Len())
	skip, backwards := o.Rank-1, false
	if o.Rank < 0 {
		// Not -o.Rank - 1, which overflows for the lowest rank.
		skip, backwards = -(o.Rank + 1), true
	}
	skip = max(skip, 0)
	most := n
	if o.MaxLen > 0 {
		most = min(most, o.MaxLen)
	}
	var found []int64
	err := l.eachPosition(f, backwards, int(most), func(position int64, elem []byte) bool {
		switch {
		case !bytes.Equal(elem, value):
		case skip > 0:
			skip--
		default:
			found = append(found, position)
			return int64(len(found)) != o.Count
		}
		return true
	})
	return found, err
}

// eachPosition calls visit for the first n elements, or the last n and the last first, until it returns
// false.
func (l List) eachPosition(f keydir.Collection, backwards bool, n int, visit func(position int64, elem []byte) bool) error {
	r := l.reader(f)
	defer r.release()
	position, step := 0, 1
	if backwards {
		position, step = f.Len()-1, -1
	}
	next := position
	err := r.each(position, n, step, func(elem []byte) bool {
		at := next
		next += step
		return visit(int64(at), elem) && l.Txn.Step(1) == nil
	})
	if err == nil {
		err = l.Txn.Step(0)
	}
	return err
}
