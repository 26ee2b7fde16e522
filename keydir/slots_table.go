package keydir

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// A slot is two words: the hash with the Type in its low three bits, and the
// location. A hash word of zero is an empty slot, for no slot has type None.
const (
	typeBits  = 3
	typeMask  = 1<<typeBits - 1
	slotWords = 2
	slotBytes = 8 * slotWords

	pageShift = 8
	pageSlots = 1 << pageShift
	pageMask  = pageSlots - 1
	pageWords = pageSlots * slotWords
	pageBytes = pageSlots * slotBytes
)

// table is a hash table in ordered linear probing: the entries stand sorted by
// hash, each at its home or, if that is taken, as soon after it as those with
// smaller hashes allow. The home is the hash scaled to the number of homes, so a
// bigger table has the same order, and walking a table is walking the hash space.
//
//	K1: position(i) = max(position(i-1)+1, home(i)) for the i-th entry in hash order.
//
// Benefits: a cursor into the hash space survives growth, a search stops at the first
// greater hash, and growing moves every entry to the right, shrinking to the left. So both
// happen in place, page by page, and leave no garbage: a store never holds a table twice
// while it loads.
//
// Slots lie in pages; only the last may be short, the others come from the pagePool. Entries
// that find no room at the homes overflow into the slots after the last home.
type table struct {
	slotArray
	n       int  // slots taken
	resized bool // the slotArray has changed since the stripe published it
	pool    *pagePool
}

// slotArray locates the slots of a table. A search needs nothing else, so lock-free readers
// use a copy of it: once published, the list of pages is never written in place, only
// appended to or replaced.
type slotArray struct {
	pages      [][]uint64
	homes      uint64
	slots      int   // in all pages
	prefixBits uint8 // leading hash bits that all entries share: stripe and depth
}

// maxEntries is how many entries a table of that many slots takes: nine tenths. At that
// load a search passes about five slots, one or two cache lines, and an insert moves about
// fifty adjacent ones.
func maxEntries(slots int) int { return slots - slots/10 }

// roundSlots rounds a number of slots up to a page size. Small tables grow in steps that
// match the size classes of Go's allocator.
func roundSlots(slots int) int {
	step := 4
	switch {
	case slots >= 16*pageSlots:
		step = pageSlots
	case slots >= 64:
		step = 64
	case slots >= 32:
		step = 8
	}
	return (slots + step - 1) / step * step
}

// overflowSlots is how many slots a table has after the last home. Few tables need more;
// extend adds them.
func overflowSlots(slots int) int { return min(slots/8+1, 32) }

func (a *slotArray) home(word uint64) int {
	hi, _ := bits.Mul64((word&^typeMask)<<a.prefixBits, a.homes)
	return int(hi)
}

// seek returns the position of the first entry whose hash is at least that of word, or of
// the empty slot (possibly after the last) where the search ends. It and at load words
// atomically because lock-free readers use them.
func (a *slotArray) seek(word uint64) int {
	pos := a.home(word)
	want := word >> 3
	for pos < a.slots {
		page := a.pages[pos>>pageShift]
		for i := pos & pageMask * slotWords; i < len(page); i += slotWords {
			if w := atomic.LoadUint64(&page[i]); w>>3 >= want || w == 0 {
				return pos
			}
			pos++
		}
	}
	return pos
}

// at returns the slot at pos; an empty one if pos lies after the last.
func (a *slotArray) at(pos int) (word, loc uint64) {
	if pos >= a.slots {
		return 0, 0
	}
	page := a.pages[pos>>pageShift]
	i := pos & pageMask * slotWords
	return atomic.LoadUint64(&page[i]), atomic.LoadUint64(&page[i+1])
}

// set writes the slot at pos, which is two words: within a change only, because a lock-free
// reader could see one of them new and one old.
func (a *slotArray) set(pos int, word, loc uint64) {
	page := a.pages[pos>>pageShift]
	i := pos & pageMask * slotWords
	page[i], page[i+1] = word, loc
}

// setLoc changes the location of the slot at pos. It is one word: a lock-free reader sees
// the old or the new one.
func (a *slotArray) setLoc(pos int, loc uint64) {
	atomic.StoreUint64(&a.pages[pos>>pageShift][pos&pageMask*slotWords+1], loc)
}

// find returns the position of the exact slot, or -1.
func (t *table) find(word, loc uint64) int {
	if t.n == 0 {
		return -1
	}
	for pos := t.seek(word); ; pos++ {
		w, l := t.at(pos)
		if w == 0 || w>>3 != word>>3 {
			return -1
		}
		if w == word && l == loc {
			return pos
		}
	}
}

// mustGrow reports whether the table must grow before it takes another entry. Slots that
// crowded hashes added after the homes do not count as room.
func (t *table) mustGrow() bool {
	return t.n >= maxEntries(min(t.slots, int(t.homes)+overflowSlots(t.slots)))
}

// insert adds a slot after those of equal hash.
func (t *table) insert(word, loc uint64) {
	if t.mustGrow() {
		t.resize(t.slots + max(t.slots/10, 1))
	}
	pos := t.seek(word)
	for {
		w, _ := t.at(pos)
		if w == 0 || w>>3 != word>>3 {
			break
		}
		pos++
	}
	end := t.nextEmpty(pos)
	if end == t.slots {
		t.extend(end + 1)
	}
	t.shiftRight(pos, end)
	t.set(pos, word, loc)
	t.n++
}

// nextEmpty returns the first empty slot from pos on; the one after the last if there is none.
func (t *table) nextEmpty(pos int) int {
	for pos < t.slots {
		page := t.pages[pos>>pageShift]
		for i := pos & pageMask * slotWords; i < len(page); i += slotWords {
			if page[i] == 0 {
				return pos
			}
			pos++
		}
	}
	return pos
}

// nextAtHome returns the first slot from pos on that is empty or holds an entry at its home.
func (t *table) nextAtHome(pos int) int {
	for pos < t.slots {
		page := t.pages[pos>>pageShift]
		for i := pos & pageMask * slotWords; i < len(page); i += slotWords {
			if page[i] == 0 || t.home(page[i]) == pos {
				return pos
			}
			pos++
		}
	}
	return pos
}

// shiftRight moves the slots pos..end-1 one to the right, over the empty slot end.
func (t *table) shiftRight(pos, end int) {
	for end > pos {
		page := t.pages[end>>pageShift]
		start := end &^ pageMask
		first := max(pos, start) // first slot of this page that moves, or the page's start
		copy(page[(first-start+1)*slotWords:], page[(first-start)*slotWords:(end-start)*slotWords])
		end = first
		if end > pos { // the last slot of the previous page becomes the first
			word, loc := t.at(end - 1)
			page[0], page[1] = word, loc
			end--
		}
	}
}

// shiftLeft moves the slots pos+1..end-1 one to the left, over the slot pos.
func (t *table) shiftLeft(pos, end int) {
	for pos+1 < end {
		page := t.pages[pos>>pageShift]
		start := pos &^ pageMask
		last := min(end, start+pageSlots) // after the last slot of this page that moves
		copy(page[(pos-start)*slotWords:], page[(pos-start+1)*slotWords:(last-start)*slotWords])
		pos = last - 1
		if last < end { // the first slot of the next page becomes the last
			word, loc := t.at(last)
			t.set(pos, word, loc)
			pos = last
		}
	}
	t.set(pos, 0, 0)
}

// delete empties the slot at pos and moves the entries that it displaced back towards home.
func (t *table) delete(pos int) {
	t.shiftLeft(pos, t.nextAtHome(pos+1))
	t.n--
	t.shrink()
}

// resize spreads the entries over at least that many slots.
func (t *table) resize(slots int) {
	t.resized = true
	if t.n == 0 && slots <= 4 && t.slots > 0 {
		t.truncate(0)
		t.homes = 0
		return
	}
	slots = roundSlots(max(slots, 4))
	t.rehome(uint64(slots-overflowSlots(slots)), slots)
}

// rehome moves every entry to its place among that many homes and leaves the
// table with at least that many slots.
func (t *table) rehome(homes uint64, slots int) {
	if homes > t.homes {
		t.spread(homes, slots)
		return
	}
	old := t.slotArray
	t.homes, t.resized = homes, true
	next := 0
	for pos := range old.slots { // positions only fall, so every entry is read before its slot is overwritten
		word, loc := old.at(pos)
		if word == 0 {
			continue
		}
		old.set(pos, 0, 0)
		next = max(next, t.home(word))
		t.set(next, word, loc)
		next++
	}
	t.truncate(roundSlots(max(slots, next)))
}

// spread is rehome to more homes. Positions only rise, so it works from the last page to
// the first. Where a page's entries start depends on all entries before it; a first pass
// over the table computes that for every page.
func (t *table) spread(homes uint64, slots int) {
	var few [80]int
	starts := few[:0]
	wide := slotArray{homes: homes, prefixBits: t.prefixBits}
	next := 0
	for _, page := range t.pages {
		starts = append(starts, next)
		for i := 0; i < len(page); i += slotWords {
			if page[i] != 0 {
				next = max(next, wide.home(page[i])) + 1
			}
		}
	}
	old := len(t.pages)
	t.homes, t.resized = homes, true
	t.extend(max(slots, next))
	var scratch [pageWords]uint64
	for p := old - 1; p >= 0; p-- {
		page := scratch[:copy(scratch[:], t.pages[p])]
		clear(t.pages[p])
		next := starts[p]
		for i := 0; i < len(page); i += slotWords {
			if page[i] == 0 {
				continue
			}
			next = max(next, t.home(page[i]))
			t.set(next, page[i], page[i+1])
			next++
		}
	}
}

// appendAll appends the entries of x, all of whose hashes are above those in t.
// next is the position after the last entry of t; appendAll returns its new value.
func (t *table) appendAll(x *table, next int) int {
	for _, page := range x.pages {
		for i := 0; i < len(page); i += slotWords {
			if page[i] == 0 {
				continue
			}
			next = max(next, t.home(page[i]))
			t.extend(next + 1)
			t.set(next, page[i], page[i+1])
			next++
			t.n++
		}
	}
	return next
}

// extend adds slots, without moving an entry, until there are at least that many.
func (t *table) extend(slots int) {
	if slots <= t.slots {
		return
	}
	before := t.slots
	t.resized = true
	slots = roundSlots(slots)
	for t.slots < slots {
		last := len(t.pages) - 1
		if last >= 0 && len(t.pages[last]) < pageWords { // replace a short page by a longer one
			start := last * pageSlots
			page := t.newPage(slots - start)
			copy(page, t.pages[last])
			t.pages = append(slices.Clone(t.pages[:last]), page)
			t.slots = start + len(page)/slotWords
			continue
		}
		page := t.newPage(slots - t.slots)
		t.pages = append(t.pages, page)
		t.slots += len(page) / slotWords
	}
	t.pool.bytes.Add(int64(t.slots-before) * slotBytes)
}

// newPage returns a page of that many empty slots, at most pageSlots.
func (t *table) newPage(slots int) []uint64 {
	if slots >= pageSlots {
		return t.pool.get()
	}
	return make([]uint64, slots*slotWords)
}

// truncate releases the slots, all empty, after that many.
func (t *table) truncate(slots int) {
	if slots >= t.slots {
		t.extend(slots)
		return
	}
	t.pool.bytes.Add(int64(slots-t.slots) * slotBytes)
	t.resized = true
	full, rest := slots>>pageShift, slots&pageMask
	old := t.pages
	t.pages, t.slots = slices.Clone(old[:full]), slots // a copy: lock-free readers may hold the longer list
	if rest > 0 {
		page := make([]uint64, rest*slotWords)
		copy(page, old[full])
		t.pages = append(t.pages, page)
	}
	for _, page := range old[full:] {
		if len(page) == pageWords {
			t.pool.put(page)
		}
	}
	for i, page := range t.pages[:full] {
		t.pages[i] = t.pool.moveDown(page)
	}
}

// count counts the entries.
func (t *table) count() int {
	n := 0
	for _, page := range t.pages {
		for i := 0; i < len(page); i += slotWords {
			if page[i] != 0 {
				n++
			}
		}
	}
	return n
}

// shrink resizes the table if it is sparse.
func (t *table) shrink() {
	if t.n < t.slots*3/8 && (t.slots > 4 || t.n == 0) {
		t.resize(t.n + t.n/3 + 1)
	}
}

// fill fills an empty table with slots in order of hash.
func (t *table) fill(slots []uint64) {
	n := len(slots) / slotWords
	if n == 0 {
		return
	}
	t.resize(n + n/6 + 1)
	next := 0
	for i := 0; i < len(slots); i += slotWords {
		next = max(next, t.home(slots[i]))
		t.extend(next + 1)
		t.set(next, slots[i], slots[i+1])
		next++
	}
	t.n = n
}
