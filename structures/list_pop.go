package structures

import "github.com/stavedb/stave/keydir"

// Pop removes up to n elements from one end and returns them, the outermost
// first. It says false if the key does not exist. O(1) an element, O(log n) in a list that was
// changed in the middle.
func (l List) Pop(end End, n int) ([][]byte, bool, error) {
	if n < 0 {
		return nil, false, ErrNegative
	}
	f, err := l.open()
	if err != nil || !f.Valid() {
		return nil, false, err
	}
	values := make([][]byte, min(n, f.Len()))
	r := l.reader(f)
	defer r.release()
	for i := range values {
		if values[i], err = r.append([]byte{}, outermost(f, end, i)); err != nil {
			return nil, true, err
		}
	}
	return values, true, l.remove(f, end, len(values))
}

// PopOne is Pop of one element, which it appends to dst. It returns false if the key does not exist. As fast
// as Pop.
func (l List) PopOne(dst []byte, end End) (_ []byte, ok bool, err error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return dst, false, err
	}
	r := l.reader(f)
	defer r.release()
	if dst, err = r.append(dst, outermost(f, end, 0)); err != nil {
		return dst, true, err
	}
	return dst, true, l.remove(f, end, 1)
}

// outermost returns the position of the i-th element from an end.
func outermost(f keydir.Collection, end End, i int) int {
	if end == Back {
		return f.Len() - 1 - i
	}
	return i
}

// remove removes n elements from one end, and the list with its last one.
func (l List) remove(f keydir.Collection, end End, n int) error {
	event := end.event(EventLPop, EventRPop)
	if n == f.Len() {
		return dropAll(l.Txn, l.Key, event)
	}
	if err := l.deleteEnd(f, end, n); err != nil {
		return err
	}
	if n > 0 {
		l.Txn.Notify(event, l.Key)
	}
	return nil
}
