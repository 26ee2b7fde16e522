package keydir

import "sync/atomic"

const (
	stripeBits = 8

	// maxTableSlots bounds the work of one growth: a table of that many slots is
	// spread in some fifty microseconds; a bigger one is cut in two instead.
	maxTableSlots = 64 * pageSlots

	// maxDepth bounds the pointers of a region whose hashes are not random.
	maxDepth = 16
)

// region is one stripe of a directory: the slots of its keys, in tables found by
// the next bits of the hash (extendible hashing), and its collections.
//
// The tables array has one entry for each value of those depth bits. A table that
// shares fewer bits with its hashes stands there several times in a row, so the
// array in order, without the repetitions, is the stripe in hash order.
type region struct {
	version     atomic.Uint64          // odd while slots come, go or move (slots_lockfree.go)
	seen        atomic.Pointer[layout] // depth and tables for readers without a lock
	depth       uint8
	tables      []*table
	collections collectionSet
	dir         *Directory
}

func newRegion(d *Directory) *region {
	r := &region{dir: d}
	r.tables = []*table{{extent: extent{skip: stripeBits}, slabs: &d.slabs}}
	r.collections.init(d)
	r.publish()
	return r
}

// index returns where in tables the table of a hash is.
func (r *region) index(h uint64) int { return int(h << stripeBits >> (64 - r.depth)) }

func (r *region) table(h uint64) *table { return r.tables[r.index(h)] }

// span returns the first index of the table at index i, and the index behind its last.
func (r *region) span(i int) (int, int) {
	width := 1 << (r.depth + stripeBits - r.tables[i].skip)
	first := i &^ (width - 1)
	return first, first + width
}

func (r *region) insert(word, loc uint64) {
	t := r.table(word)
	if t.full() && t.slots >= maxTableSlots && t.skip < stripeBits+maxDepth {
		r.split(r.index(word))
		t = r.table(word)
	}
	t.insert(word, loc)
	r.show(r.index(word))
}

// delete removes the slot at pos of the table of word and joins tables that became
// sparse.
func (r *region) delete(word uint64, pos int) {
	t := r.table(word)
	before := t.slots
	t.delete(pos)
	if t.slots < before && t.slots < maxTableSlots/4 && r.depth > 0 {
		r.join(r.index(word))
	}
	r.show(r.index(word))
}

// split cuts the table at index i in two by its next hash bit. With the homes an even
// number of pages, either half keeps its homes: home(2x, H/2) = home(x, H). So the
// pages are handed over as they are, and only the run of entries across the middle
// is moved.
func (r *region) split(i int) {
	t := r.tables[i]
	slots := t.n + t.n/4
	slots = (slots + 2*pageSlots - 1) &^ (2*pageSlots - 1)
	t.rehome(uint64(slots), slots)

	half := extent{skip: t.skip + 1, homes: t.homes / 2}
	right := &table{extent: half, slabs: t.slabs}
	left := &table{extent: half, slabs: t.slabs}
	mid := slots / 2
	left.pages = t.pages[: mid>>pageShift : mid>>pageShift]
	left.slots = mid
	right.pages = append([][]uint64(nil), t.pages[mid>>pageShift:]...)
	right.slots = t.slots - mid

	// The left half's overflow stands at the start of the right's pages.
	middle := uint64(1) << (63 - t.skip)
	for pos := 0; ; pos++ {
		word, loc := right.at(pos)
		if word == 0 || word&middle != 0 {
			break
		}
		left.extend(left.slots + 1)
		left.set(mid+pos, word, loc)
		right.set(pos, 0, 0)
	}
	right.rehome(right.homes, right.slots) // what that overflow had displaced sinks back
	left.n = left.count()
	right.n = t.n - left.n

	if t.skip == stripeBits+r.depth {
		r.double()
		i *= 2
	}
	first, end := r.span(i)
	for k := first; k < end; k++ {
		if k < (first+end)/2 {
			r.tables[k] = left
		} else {
			r.tables[k] = right
		}
	}
	left.fit()
	right.fit()
	r.publish()
}

// double gives the tables array one more bit.
func (r *region) double() {
	tables := make([]*table, 2*len(r.tables))
	for i, t := range r.tables {
		tables[2*i], tables[2*i+1] = t, t
	}
	r.tables = tables
	r.depth++
}

// join makes one table of the table at index i and its sibling, if both are sparse,
// and goes on as long as that is so.
func (r *region) join(i int) {
	for r.tables[i].skip > stripeBits {
		first, end := r.span(i)
		width := end - first
		low := first &^ (2*width - 1)
		left, right := r.tables[low], r.tables[low+width]
		if left.skip != right.skip || left.n+right.n > maxTableSlots/2 {
			break
		}
		both := &table{extent: extent{skip: left.skip - 1}, slabs: left.slabs}
		both.resize((left.n+right.n)*4/3 + 1)
		both.load(right, both.load(left, 0))
		left.truncate(0)
		right.truncate(0)
		for k := low; k < low+2*width; k++ {
			r.tables[k] = both
		}
		i = low
	}
	r.halve()
	r.publish()
}

// halve takes bits from the tables array that no table needs.
func (r *region) halve() {
	for r.depth > 0 {
		for _, t := range r.tables {
			if t.skip == stripeBits+r.depth {
				return
			}
		}
		tables := make([]*table, len(r.tables)/2)
		for i := range tables {
			tables[i] = r.tables[2*i]
		}
		r.tables = tables
		r.depth--
	}
}

// scan calls fn for the slots from the hash of word on, in hash order.
func (r *region) scan(word uint64, fn func(word, loc uint64) bool) bool {
	i := r.index(word)
	for pos := r.tables[i].seek(word); ; pos = 0 {
		t := r.tables[i]
		for ; pos < t.slots; pos++ {
			if w, loc := t.at(pos); w != 0 && !fn(w, loc) {
				return false
			}
		}
		if _, i = r.span(i); i == len(r.tables) {
			return true
		}
	}
}

// near returns a slot picked by the random number x: the slot at a random position,
// or, after a few empty ones, the next that there is.
func (r *region) near(x uint64) (word, loc uint64) {
	const tries = 32
	for range tries {
		x = mix(x)
		t := r.tables[r.index(x)]
		if t.slots == 0 {
			continue
		}
		if word, loc = t.at(int(mix(x+1) % uint64(t.slots))); word != 0 {
			return word, loc
		}
	}
	take := func(w, l uint64) bool {
		word, loc = w, l
		return false
	}
	if r.scan(mix(x)>>stripeBits, take) {
		r.scan(0, take)
	}
	return word, loc
}

// mix is the finalizer of SplitMix64: it turns any number into one that looks random.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (r *region) slots() int {
	n := 0
	for i := 0; i < len(r.tables); _, i = r.span(i) {
		n += r.tables[i].n
	}
	return n
}
