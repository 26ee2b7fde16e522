package structures

// Pop removes up to n elements from one end and returns them, the outermost
// first. It says false if the key does not exist. O(1) an element.
func (l List) Pop(end End, n int) ([][]byte, bool, error) {
	if n < 0 {
		return nil, false, ErrNegative
	}
	f, err := l.open()
	if err != nil || !f.Valid() {
		return nil, false, err
	}
	n = min(n, f.Len())
	head, tail := f.Bounds()
	index, step := head, int64(1)
	if end == Back {
		index, step = tail, -1
	}
	values := make([][]byte, n)
	r := l.reader(f)
	defer r.release()
	for i := range values {
		if values[i], err = r.append([]byte{}, index+int64(i)*step); err != nil {
			return nil, true, err
		}
	}
	event := end.event(EventLPop, EventRPop)
	if n == f.Len() {
		return values, true, dropAll(l.Txn, l.Key, event)
	}
	for i := range values {
		if _, err := l.Txn.DeleteIndex(f, index+int64(i)*step); err != nil {
			return nil, true, err
		}
	}
	if n > 0 {
		l.Txn.Notify(event, l.Key)
	}
	return values, true, nil
}

// PopOne is Pop of one element, which it appends to dst. It returns false if the key does not exist. O(1).
func (l List) PopOne(dst []byte, end End) (_ []byte, ok bool, err error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return dst, false, err
	}
	index, tail := f.Bounds()
	if end == Back {
		index = tail
	}
	r := l.reader(f)
	defer r.release()
	if dst, err = r.append(dst, index); err != nil {
		return dst, true, err
	}
	event := end.event(EventLPop, EventRPop)
	if f.Len() == 1 {
		return dst, true, dropAll(l.Txn, l.Key, event)
	}
	if _, err := l.Txn.DeleteIndex(f, index); err != nil {
		return dst, true, err
	}
	l.Txn.Notify(event, l.Key)
	return dst, true, nil
}
