package db

// ValueLen returns the length of a field's value in bytes, 0 if the key or the field does not exist. O(log n).
func (h Hash) ValueLen(field string) (int, error) {
	t, err := h.read()
	if err != nil {
		return 0, err
	}
	n, err := h.on(t).ValueLen(field)
	return n, h.done(t, err)
}

// GetAndDelete returns the values of several fields, in their order, and deletes them; nil stands for a field that does
// not exist. O(log n) a field.
func (h Hash) GetAndDelete(fields ...string) ([][]byte, error) {
	t, err := h.write()
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(fields))
	err = h.on(t).GetAndDelete(fields, func(i int, value []byte) {
		if value != nil {
			values[i] = append([]byte{}, value...)
		}
	})
	if err = h.done(t, err); err != nil {
		return nil, err
	}
	return values, nil
}

// Random returns fields chosen at random with their values: up to n different ones, or exactly -n that may repeat if n is
// negative. It returns none if the key does not exist. O(log n) a field.
func (h Hash) Random(n int) ([]Field, error) {
	var fields []Field
	err := h.VisitRandom(n, nil, func(name, value []byte) bool {
		fields = append(fields, Field{Name: string(name), Value: append([]byte{}, value...)})
		return true
	})
	return fields, err
}

// VisitRandom calls start once with the number of fields that Random would return, then visit for each of them until it
// returns false, all at one moment. start may be nil. The slices are valid during the call only, and neither function may
// use the store or change the transaction: it is the form that builds nothing. O(log n) a field.
func (h Hash) VisitRandom(n int, start func(n int), visit func(name, value []byte) bool) error {
	t, err := h.read()
	if err != nil {
		return err
	}
	return h.done(t, h.on(t).VisitRandom(n, t.rand, start, visit))
}

// VisitRandomFields is VisitRandom without the values, which are not read.
func (h Hash) VisitRandomFields(n int, start func(n int), visit func(name []byte) bool) error {
	t, err := h.read()
	if err != nil {
		return err
	}
	return h.done(t, h.on(t).VisitRandomFields(n, t.rand, start, visit))
}
