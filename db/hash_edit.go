package db

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
