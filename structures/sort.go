package structures

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/keydir"
)

// SortOptions say how Sort orders the elements, and what it returns of them. The zero value returns
// all elements, ordered as numbers.
//
// A pattern names another key: its first * stands for the element, and "key->f"
// for the field f of a hash. The pattern # is the element itself.
type SortOptions struct {
	// By is the pattern of the weights that are compared instead of the elements;
	// an element without one weighs 0, or less than any text. Default: the
	// elements themselves.
	By string
	// Unsorted leaves elements in the order that they have.
	Unsorted bool
	// Alpha compares bytes. Default: numbers.
	Alpha bool
	// Descending turns the order around.
	Descending bool
	// Offset and Count select a part of the result, if Limited is set. A negative
	// Count means all.
	Limited       bool
	Offset, Count int64
	// Get is the patterns of the values returned for each element. Default: the element.
	Get []string
}

// ReadsOthers says whether Sort reads keys that the elements name.
func (o SortOptions) ReadsOthers() bool {
	return o.By != "" && !o.Unsorted || slices.ContainsFunc(o.Get, func(pattern string) bool { return pattern != "#" })
}

// sortItem is an element with its sort key.
type sortItem struct {
	element []byte
	score   float64
	weight  []byte // with Alpha and By; nil if there is none
}

// Sort returns the elements of a list, a set or a sorted set in sorted order; nil stands for a
// value that a Get pattern did not find. A key that does not exist has no elements. O(n log n), and
// a lookup for each pattern and element.
func (k Key) Sort(o SortOptions) (values [][]byte, err error) {
	values = [][]byte{}
	start := func(n int) { values = make([][]byte, 0, n) }
	err = k.VisitSorted(o, start, func(value []byte) bool {
		values = append(values, value)
		return true
	})
	return values, err
}

// VisitSorted calls start, unless it is nil, with the number of values that Sort returns, then visit with each of them
// until it returns false. Only the elements are in memory, and not all that the Get patterns find.
func (k Key) VisitSorted(o SortOptions, start func(n int), visit func(value []byte) bool) error {
	items, err := k.sortItems(o)
	if err != nil {
		return err
	}
	if !o.Unsorted {
		if err := k.weigh(items, o); err != nil {
			return err
		}
		by := slices.SortFunc[[]sortItem]
		if o.Alpha && o.By != "" { // different elements may be equal
			by = slices.SortStableFunc[[]sortItem]
		}
		err := sortApart(k.Txn, items, by, o.compare)
		if err != nil {
			return err
		}
	}
	items = items[:o.cut(items)]
	if start != nil {
		start(len(items) * max(1, len(o.Get)))
	}
	return k.fetch(items, o, visit)
}

// sortApart sorts while others may work. Where the atomic unit is to end, all that is left to compare is equal, so that
// the sort is soon over.
func sortApart[E any](t Steps, list []E, by func([]E, func(a, b E) int), compare func(a, b E) int) (err error) {
	t.Apart(func() {
		by(list, func(a, b E) int {
			if err == nil {
				err = t.Step(1)
			}
			if err != nil {
				return 0
			}
			return compare(a, b)
		})
	})
	return err
}

// SortInto makes dest a list of what Sort returns, with empty strings for what
// was not found, and returns its length; dest has no deadline then, and does not
// exist if the length is 0.
func (k Key) SortInto(dest string, o SortOptions) (int, error) {
	if typ, err := k.Type(); err != nil {
		return 0, err
	} else if typ == keydir.Set && o.Unsorted {
		// The order of a set is undefined, but what is stored should not depend on it.
		o.Unsorted, o.Alpha, o.By = false, true, ""
	}
	values, err := k.Sort(o)
	if err != nil {
		return 0, err
	}
	existed, err := k.Txn.Drop(dest)
	if err != nil {
		return 0, err
	}
	n, err := List{Txn: Quiet{k.Txn}, Key: dest}.Push(Back, values, 0)
	return n, notifyReplaced(k.Txn, EventSortStore, dest, existed, n, err)
}

// sortItems lists the elements, in the order that they have.
func (k Key) sortItems(o SortOptions) (items []sortItem, err error) {
	typ, err := k.Type()
	if err != nil {
		return nil, err
	}
	start := func(n int) { items = make([]sortItem, 0, n) }
	add := func(element []byte) bool {
		items = append(items, sortItem{element: append([]byte{}, element...)}) // never nil
		return true
	}
	switch typ {
	case keydir.None:
	case keydir.List:
		err = List{Txn: k.Txn, Key: k.Key}.Visit(0, -1, start, add)
		if o.Unsorted && o.Descending {
			slices.Reverse(items)
		}
	case keydir.Set:
		err = Set{Txn: k.Txn, Key: k.Key}.Visit(start, add)
	case keydir.ZSet:
		all := RankRange{Start: 0, Stop: -1, Reverse: o.Unsorted && o.Descending}
		err = SortedSet{Txn: k.Txn, Key: k.Key}.Visit(all, start, func(member []byte, _ float64) bool { return add(member) })
	default:
		err = ErrWrongType
	}
	return items, err
}

// cut moves the part that is selected to the front and returns its length.
func (o SortOptions) cut(items []sortItem) int {
	if !o.Limited {
		return len(items)
	}
	n := int64(len(items))
	from := min(max(o.Offset, 0), n)
	count := n - from
	if o.Count >= 0 {
		count = min(o.Count, count)
	}
	return copy(items, items[from:from+count])
}

// weigh looks up what the items are compared by.
func (k Key) weigh(items []sortItem, o SortOptions) error {
	for i := range items {
		weight := items[i].element
		if o.By != "" {
			var ok bool
			var err error
			if weight, ok, err = k.lookUp(o.By, items[i].element); err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		items[i].weight = weight
		if !o.Alpha {
			var ok bool
			if items[i].score, ok = number.ParseWeight(weight); !ok {
				return ErrSortScore
			}
		}
	}
	return nil
}

// compare orders two items. Equal numbers are ordered by the elements, so that a
// result does not depend on chance.
func (o SortOptions) compare(a, b sortItem) int {
	order := 0
	switch {
	case !o.Alpha:
		if order = cmp.Compare(a.score, b.score); order == 0 {
			order = bytes.Compare(a.element, b.element)
		}
	case a.weight == nil || b.weight == nil:
		switch {
		case b.weight != nil:
			order = -1
		case a.weight != nil:
			order = 1
		}
	default:
		order = bytes.Compare(a.weight, b.weight)
	}
	if o.Descending {
		return -order
	}
	return order
}

// fetch visits the wanted values of each item.
func (k Key) fetch(items []sortItem, o SortOptions, visit func(value []byte) bool) error {
	for _, item := range items {
		if len(o.Get) == 0 && !visit(item.element) {
			return nil
		}
		for _, pattern := range o.Get {
			value, _, err := k.lookUp(pattern, item.element)
			if err == nil {
				err = k.Txn.Step(1)
			}
			if err != nil || !visit(value) {
				return err
			}
		}
	}
	return nil
}

// lookUp returns what a pattern and an element name, not nil if it is there. Like
// C, Redis searches for the marks of a pattern up to its first NUL.
func (k Key) lookUp(pattern string, element []byte) (value []byte, ok bool, err error) {
	if pattern == "#" {
		return element, true, nil
	}
	marks, _, _ := strings.Cut(pattern, "\x00")
	star := strings.IndexByte(marks, '*')
	if star < 0 {
		return nil, false, nil
	}
	rest, field := pattern[star+1:], ""
	if arrow := strings.Index(marks[star+1:], "->"); arrow >= 0 && arrow+2 < len(marks[star+1:]) {
		rest, field = rest[:arrow], rest[arrow+2:]
	}
	key := pattern[:star] + string(element) + rest
	if field != "" {
		value, ok, err = Hash{Txn: k.Txn, Key: key}.Get([]byte{}, field)
	} else {
		value, ok, err = String{Txn: k.Txn, Key: key}.Get([]byte{})
	}
	switch {
	case err == ErrWrongType:
		return nil, false, nil
	case err != nil || !ok:
		return nil, false, err
	}
	return value, true, nil
}
