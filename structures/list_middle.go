package structures

import (
	"bytes"
	"math"
	"slices"

	"github.com/stavedb/stave/keydir"
)

// What happens in the middle of a list writes as many records as it adds or removes. Elements are moved in three cases: those
// on one side of what is inserted into a short list, which so stays small in memory; those of a short list that is mostly
// holes, after as many have been removed (both in list_compact.go); and elements that were inserted at one index, where
// their sub-indexes leave no room for another one between them.

// Insert puts value before or after the first element that equals pivot. It
// returns the new length, -1 if no element does, and 0 if the key does not
// exist. O(n) to find pivot, and one record, in a list of up to 32 one for each element on the shorter side too.
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
	position := int(found[0]) // of the new element
	if !before {
		position++
	}
	done, err := l.insertShort(f, position, value)
	if err == nil && !done {
		var at keydir.ListPlace
		if at, err = l.placeFor(f, position); err == nil {
			err = l.Txn.PutPlace(l.Key, f, at, value)
		}
	}
	if err != nil {
		return 0, err
	}
	l.Txn.Notify(EventLInsert, l.Key)
	return f.Len(), nil
}

// placeFor returns a free place for an element at a position.
func (l List) placeFor(f keydir.Collection, position int) (keydir.ListPlace, error) {
	head, tail := f.Bounds()
	switch position {
	case 0:
		return keydir.ListPlace{Index: head - 1}, nil
	case f.Len():
		return keydir.ListPlace{Index: tail + 1}, nil
	}
	var near [2]keydir.ListPlace
	var locs [len(near)]keydir.Loc
	f.Elements(position-1, near[:], locs[:])
	if at, ok := freeIndex(near[0], near[1]); ok {
		return at, nil
	}
	if at, ok := subBetween(near[0], near[1]); ok {
		return at, nil
	}
	if err := l.renumber(f, position); err != nil {
		return keydir.ListPlace{}, err
	}
	f.Elements(position-1, near[:], locs[:])
	at, _ := subBetween(near[0], near[1])
	return at, nil
}

// freeIndex returns an index without an element between two neighbours, if there is one.
func freeIndex(prev, next keydir.ListPlace) (at keydir.ListPlace, ok bool) {
	at.Index = prev.Index + 1
	return at, prev.Index < next.Index && at.Less(next)
}

// subStep is how far apart sub-indexes are at first: where elements are inserted after each other, or before, 2^31 find
// room so.
const subStep = 1 << 32

// subBetween returns a place with a sub-index between two neighbours with no free index between them. It reports false
// if there is none.
func subBetween(prev, next keydir.ListPlace) (at keydir.ListPlace, ok bool) {
	low, high, last := prev.Sub, uint64(math.MaxUint64), true
	if next.Index == prev.Index {
		high, last = next.Sub, false
	}
	room := high - low
	at = keydir.ListPlace{Index: prev.Index, Sub: low + room/2}
	switch {
	case room/2 <= subStep || low == 0 && last:
	case last:
		at.Sub = low + subStep
	case low == 0:
		at.Sub = high - subStep
	}
	return at, room >= 2
}

// renumber spreads the sub-indexes of elements around a position, so that there is room before it. The more it takes, the
// further apart they must come, so that few are taken for each that was inserted: five, if each is put next to the last
// one, before it and after it in turns. At once it may take all that were inserted at the index, whatever bytes they have.
// It must not stop at some number of bytes: where there is just room for one more, the next insertion takes as many again.
func (l List) renumber(f keydir.Collection, position int) error {
	index := placeOf(f, position-1).Index
	ofIndex := func(at int) bool {
		if at < 0 || at >= f.Len() {
			return false
		}
		p := placeOf(f, at)
		return p.Index == index && p.Sub > 0
	}
	for reach := 16; ; reach *= 2 {
		first, end := position, position
		for first > max(position-reach, 0) && ofIndex(first-1) {
			first--
		}
		for end < position+reach && ofIndex(end) {
			end++
		}
		low, high := uint64(0), uint64(math.MaxUint64)
		if ofIndex(first - 1) {
			low = placeOf(f, first-1).Sub
		}
		if ofIndex(end) {
			high = placeOf(f, end).Sub
		}
		n := uint64(end - first)
		apart := (high - low) / (n + 1)
		if apart < n<<10 && (ofIndex(first-1) || ofIndex(end)) {
			continue
		}
		places := make([]keydir.ListPlace, n)
		for i := range places {
			places[i] = keydir.ListPlace{Index: index, Sub: low + uint64(i+1)*apart}
		}
		return l.rewrite(f, first, places)
	}
}

// rewrite moves elements from a position on to other places, between the same neighbours.
func (l List) rewrite(f keydir.Collection, position int, to []keydir.ListPlace) error {
	places, locs := make([]keydir.ListPlace, len(to)), make([]keydir.Loc, len(to))
	f.Elements(position, places, locs)
	r := l.reader(f)
	defer r.release()
	if _, err := l.Txn.DeleteRange(l.Key, f, places[0], places[len(places)-1]); err != nil {
		return err
	}
	for i, at := range places {
		if err := r.move(at, locs[i], to[i]); err != nil {
			return err
		}
		l.Txn.Yield()
	}
	return nil
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
// count of them, the last -count if count is negative, or all if it is 0. O(n) to find them, and
// a record for each, or for several that are neighbours.
func (l List) Remove(count int64, value []byte) (int, error) {
	f, err := l.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	found, err := l.search(f, value, count)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	if len(found) == f.Len() {
		return len(found), dropAll(l.Txn, l.Key, EventLRem)
	}
	type run struct{ from, to keydir.ListPlace }
	var runs []run
	for i := 0; i < len(found); {
		n := 1
		for i+n < len(found) && found[i+n] == found[i]+int64(n) {
			n++
		}
		runs = append(runs, run{placeOf(f, int(found[i])), placeOf(f, int(found[i+n-1]))})
		i += n
	}
	for _, r := range runs {
		if _, err := l.Txn.DeleteRange(l.Key, f, r.from, r.to); err != nil {
			return 0, err
		}
		l.Txn.Yield()
	}
	return len(found), notifyUnless(l.Txn, EventLRem, l.Key, l.closeHoles(f))
}
