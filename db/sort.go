package db

import "github.com/stavedb/stave/structures"

// SortOptions say how Key.Sort orders elements, and what it returns of them.
//
//	By string
//	Unsorted bool
//	Alpha bool
//	Descending bool
//	Limited bool
//	Offset, Count int64
//	Get []string
type SortOptions = structures.SortOptions

// Sort returns the elements of a list, a set or a sorted set in sorted order, or what the Get patterns find for them;
// nil stands for a missing value. A key that does not exist has no elements. It fails with ErrWrongType for other
// types, and with structures.ErrSortScore if numbers are compared and an element is none. O(n log n), and a lookup for
// each pattern and element. Patterns name keys only while it runs, so that on a store it locks all of them for writers.
func (k Key) Sort(o SortOptions) (values [][]byte, err error) {
	if k.tx == nil && o.ReadsOthers() {
		err = k.store.View(func(t *Tx) error {
			values, err = k.on(t).Sort(o)
			return err
		})
		return values, err
	}
	return call(k.handle, reading, func(t *Tx) ([][]byte, error) { return k.on(t).Sort(o) })
}

// VisitSorted calls start, unless it is nil, with the number of values that Sort returns, then visit with each until it
// returns false; nil stands for a missing value. It is the form of Sort that does not hold all values in memory. The
// slice is valid during the call only, and visit may not use the store or change the transaction.
func (k Key) VisitSorted(o SortOptions, start func(n int), visit func(value []byte) bool) error {
	sorted := func(t *Tx) error { return k.on(t).VisitSorted(o, start, visit) }
	if k.tx == nil && o.ReadsOthers() {
		return k.store.View(func(t *Tx) error { return k.calling(t, sorted) })
	}
	return k.visit(sorted)
}

// SortInto makes another key a list of the results of Sort, with empty strings for missing values, and returns its
// length. The list replaces the old content of that key; it has no deadline, and there is none if the length is 0.
func (k Key) SortInto(dest string, o SortOptions) (n int, err error) {
	if k.tx == nil && o.ReadsOthers() {
		err = k.store.Update(func(t *Tx) error {
			n, err = k.on(t).SortInto(dest, o)
			return err
		})
		return n, err
	}
	return callKeys(k.handle, writing, []string{k.key, dest}, func(t *Tx) (int, error) { return k.on(t).SortInto(dest, o) })
}
