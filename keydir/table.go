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
// What that buys: a cursor into the hash space survives growth, a search
// stops at the first greater hash, and growing moves every entry to the right
// and shrinking to the left. So both happen in place, page by page, and leave no
// garbage: a store never holds a table twice while it loads.
//
// Slots lie in pages; only the last may be short, and the others are from slabs. Entries that the homes have no
// room for overflow into the slots behind the last home.
type table struct {
	extent
	n     int  // slots taken
	grown bool // the extent has changed since the region published it
	slabs *slabs
}

// extent is where the slots of a table are. A search needs nothing else, so a copy of
// it is what readers without a lock go by: once published the list of pages is never
// written in place, only appended to or replaced.
type extent struct {
	pages [][]uint64
	homes uint64
	slots int   // in all pages
	skip  uint8 // leading hash bits that all entries share: stripe and depth
}

// limit is how many entries a table of that many slots takes: nine tenths. There a
// search passes some five slots, that is one or two cache lines, and an insert moves
// some fifty, which lie in a row.
func limit(slots int) int { return slots - slots/10 }

// quantum rounds a number of slots up to what pages come in. Small tables grow in
// steps that waste nothing of the allocator's size classes.
func quantum(slots int) int {
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

// overflow is how many slots stay behind the last home. Few tables need more, and
// those are given more.
func overflow(slots int) int { return min(slots/8+1, 32) }

func (s *extent) home(word uint64) int {
	hi, _ := bits.Mul64((word&^typeMask)<<s.skip, s.homes)
	return int(hi)
}

// seek returns the position of the first entry whose hash is at least that of
// word, or of the empty slot (perhaps behind the last) where the search ends.
// Words are loaded atomically, here and in at, for the readers without a lock.
func (s *extent) seek(word uint64) int {
	pos := s.home(word)
	want := word >> 3
	for pos < s.slots {
		page := s.pages[pos>>pageShift]
		for i := pos & pageMask * slotWords; i < len(page); i += slotWords {
			if w := atomic.LoadUint64(&page[i]); w>>3 >= want || w == 0 {
				return pos
			}
			pos++
		}
	}
	return pos
}

// at returns the slot at pos; an empty one if pos lies behind the last.
func (s *extent) at(pos int) (word, loc uint64) {
	if pos >= s.slots {
		return 0, 0
	}
	page := s.pages[pos>>pageShift]
	i := pos & pageMask * slotWords
	return atomic.LoadUint64(&page[i]), atomic.LoadUint64(&page[i+1])
}

func (s *extent) set(pos int, word, loc uint64) {
	page := s.pages[pos>>pageShift]
	i := pos & pageMask * slotWords
	page[i], page[i+1] = word, loc
}

// relocate changes the location of the slot at pos, which is one word: a reader without
// a lock sees the old one or the new one.
func (s *extent) relocate(pos int, loc uint64) {
	atomic.StoreUint64(&s.pages[pos>>pageShift][pos&pageMask*slotWords+1], loc)
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

// full reports whether the table is to grow before it takes another entry. What hashes
// that crowd made it extend behind its homes does not count as room.
func (t *table) full() bool { return t.n >= limit(min(t.slots, int(t.homes)+overflow(t.slots))) }

// insert adds a slot behind those of equal hash.
func (t *table) insert(word, loc uint64) {
	if t.full() {
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
	end := t.empty(pos)
	if end == t.slots {
		t.extend(end + 1)
	}
	t.shiftRight(pos, end)
	t.set(pos, word, loc)
	t.n++
}

// empty returns the first empty slot from pos on; the one behind the last if there is none.
func (t *table) empty(pos int) int {
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

// settled returns the first slot from pos on that is empty or holds an entry at its home.
func (t *table) settled(pos int) int {
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
		if end > pos { // the last slot of the page before comes in at the front
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
		last := min(end, start+pageSlots) // behind the last slot of this page that moves
		copy(page[(pos-start)*slotWords:], page[(pos-start+1)*slotWords:(last-start)*slotWords])
		pos = last - 1
		if last < end { // the first slot of the next page comes in at the end
			word, loc := t.at(last)
			t.set(pos, word, loc)
			pos = last
		}
	}
	t.set(pos, 0, 0)
}

// delete empties the slot at pos and moves what it displaced back towards home.
func (t *table) delete(pos int) {
	t.shiftLeft(pos, t.settled(pos+1))
	t.n--
	t.fit()
}

// resize spreads the entries over that many slots or a few more.
func (t *table) resize(slots int) {
	t.grown = true
	if t.n == 0 && slots <= 4 && t.slots > 0 {
		t.truncate(0)
		t.homes = 0
		return
	}
	slots = quantum(max(slots, 4))
	t.rehome(uint64(slots-overflow(slots)), slots)
}

// rehome moves every entry to its place among that many homes and leaves the
// table with at least that many slots.
func (t *table) rehome(homes uint64, slots int) {
	if homes > t.homes {
		t.spread(homes, slots)
		return
	}
	old := t.extent
	t.homes, t.grown = homes, true
	next := 0
	for pos := range old.slots { // positions only sink, so what is overwritten has been read
		word, loc := old.at(pos)
		if word == 0 {
			continue
		}
		old.set(pos, 0, 0)
		next = max(next, t.home(word))
		t.set(next, word, loc)
		next++
	}
	t.truncate(quantum(max(slots, next)))
}

// spread is rehome to more homes. Positions only rise, so the pages are done from
// the last to the first; where a page's entries start follows from all entries before
// it, so a first pass over the table notes that for every page.
func (t *table) spread(homes uint64, slots int) {
	var few [80]int
	starts := few[:0]
	wide := extent{homes: homes, skip: t.skip}
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
	t.homes, t.grown = homes, true
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

// load appends the entries of x, all of whose hashes are above those in t.
// next is the position after the last entry of t; load returns it anew.
func (t *table) load(x *table, next int) int {
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
	t.grown = true
	slots = quantum(slots)
	for t.slots < slots {
		last := len(t.pages) - 1
		if last >= 0 && len(t.pages[last]) < pageWords { // a short page is replaced by a longer one
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
	t.slabs.bytes.Add(int64(t.slots-before) * slotBytes)
}

// newPage returns a page of so many empty slots, or a full one.
func (t *table) newPage(slots int) []uint64 {
	if slots >= pageSlots {
		return t.slabs.take()
	}
	return make([]uint64, slots*slotWords)
}

// truncate gives up the slots, all empty, behind that many.
func (t *table) truncate(slots int) {
	if slots >= t.slots {
		t.extend(slots)
		return
	}
	t.slabs.bytes.Add(int64(slots-t.slots) * slotBytes)
	t.grown = true
	full, rest := slots>>pageShift, slots&pageMask
	old := t.pages
	t.pages, t.slots = slices.Clone(old[:full]), slots // the longer list goes with its pages
	if rest > 0 {
		page := make([]uint64, rest*slotWords)
		copy(page, old[full])
		t.pages = append(t.pages, page)
	}
	for _, page := range old[full:] {
		if len(page) == pageWords {
			t.slabs.give(page)
		}
	}
	for i, page := range t.pages[:full] {
		t.pages[i] = t.slabs.lower(page)
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

// fit shrinks the table if it is sparse.
func (t *table) fit() {
	if t.n < t.slots*3/8 && (t.slots > 4 || t.n == 0) {
		t.resize(t.n + t.n/3 + 1)
	}
}
