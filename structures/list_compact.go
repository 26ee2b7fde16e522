package structures

import "github.com/stavedb/stave/keydir"

// A short list is compacted where little has to be written again for that: its elements get consecutive indexes, so that
// it needs little memory.

const (
	// maxShort is how long a list may become by an insertion that moves other elements, and maxShifted how many bytes
	// their records may have together.
	maxShort   = 32
	maxShifted = 4 << 10

	// maxClosed is how long a list may be whose holes are closed, and maxMoved how many bytes the records may have
	// together that are written again for that. freeHoles is how many holes it may have besides one for each element.
	maxClosed = 128
	maxMoved  = 64 << 10
	freeHoles = 8
)

// insertShort inserts an element at a position of a short list, and compacts the list. It reports false if it has done
// nothing, because too much would have to be moved.
func (l List) insertShort(f keydir.Collection, position int, value []byte) (bool, error) {
	if f.Len() >= maxShort {
		return false, nil
	}
	c := planCompaction(f, position)
	if !c.possible(maxShifted) {
		return false, nil
	}
	if err := l.shift(f, c); err != nil {
		return true, err
	}
	if err := l.Txn.PutIndex(l.Key, f, c.first+int64(position), value); err != nil {
		return true, err
	}
	return true, l.vacate(f, c)
}

// closeHoles compacts a list that is mostly holes, or short but not in the form of a small one.
func (l List) closeHoles(f keydir.Collection) error {
	n := f.Len()
	head, tail := f.Bounds()
	most := maxMoved
	if n > maxClosed || uint64(tail-head) < uint64(2*n+freeHoles) {
		if n > maxShort || !f.Private() {
			return nil
		}
		most = maxShifted
	}
	c := planCompaction(f, nowhere)
	if !c.possible(most) {
		return nil
	}
	if err := l.shift(f, c); err != nil {
		return err
	}
	return l.vacate(f, c)
}

// compaction is how the elements of a list get consecutive indexes, and a new one a place among them.
type compaction struct {
	places      []keydir.ListPlace // where the elements are
	locs        []keydir.Loc
	position    int   // of the new element, or nowhere
	first, last int64 // index afterwards
	bytes       int   // of the records that are written again
}

// nowhere is the position of no new element.
const nowhere = -1

// planCompaction leaves as many bytes as possible where they are.
func planCompaction(f keydir.Collection, position int) *compaction {
	n := f.Len()
	c := &compaction{places: make([]keydir.ListPlace, n), locs: make([]keydir.Loc, n), position: position}
	f.Elements(0, c.places, c.locs)
	stay := map[int64]int{} // bytes that stay, by the first index
	c.first = c.places[0].Index
	for i, at := range c.places {
		size := int(c.locs[i].Size())
		c.bytes += size
		if at.Sub > 0 {
			continue
		}
		first := at.Index - c.after(i)
		if stay[first] += size; stay[first] > stay[c.first] {
			c.first = first
		}
	}
	c.bytes -= stay[c.first]
	c.last = c.first + c.after(n-1)
	if position == n {
		c.last++
	}
	return c
}

// after returns how many elements there will be before the i-th one of those that are there.
func (c *compaction) after(i int) int64 {
	if c.position != nowhere && i >= c.position {
		i++
	}
	return int64(i)
}

// to returns the place that the i-th element gets.
func (c *compaction) to(i int) keydir.ListPlace {
	return keydir.ListPlace{Index: c.first + c.after(i)}
}

// possible reports whether at most so many bytes are written again, and there are as many indexes.
func (c *compaction) possible(most int) bool { return c.bytes <= most && c.first <= c.last }

// shift writes the elements to their places, in any order: they are read where their records are.
func (l List) shift(f keydir.Collection, c *compaction) error {
	r := l.reader(f)
	defer r.release()
	for i, from := range c.places {
		if to := c.to(i); to != from {
			if err := r.move(from, c.locs[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// vacate deletes what was moved from places that no element has now.
func (l List) vacate(f keydir.Collection, c *compaction) error {
	for i := 0; i < len(c.places); {
		from := c.places[i]
		if from.Sub == 0 && c.first <= from.Index && from.Index <= c.last {
			i++
			continue
		}
		to := from
		for i++; i < len(c.places) && !c.between(from, c.places[i]); i++ {
			to = c.places[i]
		}
		if _, err := l.Txn.DeleteRange(l.Key, f, from, to); err != nil {
			return err
		}
	}
	return nil
}

// between reports whether there is an index of an element after one place and up to another.
func (c *compaction) between(from, to keydir.ListPlace) bool {
	return max(from.Index+1, c.first) <= min(to.Index, c.last)
}
