package keydir

import "sync/atomic"

const (
	stripeBits = 8

	// maxTableSlots bounds the work of one growth: spreading a table of that many slots
	// takes about fifty microseconds; a bigger one is split in two instead.
	maxTableSlots = 64 * pageSlots

	// maxDepth bounds the pointers of a stripe whose hashes are not random.
	maxDepth = 16
)

// stripe is one stripe of a directory: the slots of its keys, in tables found by
// the next bits of the hash (extendible hashing), and its collections.
//
// The tables array has one entry for each value of those depth bits. A table whose
// hashes share fewer bits occurs several times in a row, so the array in order, without
// the repetitions, is the stripe in hash order.
type stripe struct {
	version     atomic.Uint64             // odd while slots are inserted, removed or moved (slots_lockfree.go)
	published   atomic.Pointer[tableView] // depth and tables, for lock-free readers
	depth       uint8
	tables      []*table
	collections collectionSet
	dir         *Directory
	promised    *Counts // of a stripe that is still to be loaded; nil: it is not
}

// newPromise returns a stripe that stands for one still to be loaded. Its version is odd for
// good, so a lock-free reader, which looks at that anyway, always retries; it has no tables,
// so a caller that forgets to load it panics instead of missing keys.
func newPromise(c Counts) *stripe {
	st := &stripe{promised: &c}
	st.version.Store(1)
	return st
}

// newStripe returns an empty stripe with one table.
func newStripe(d *Directory) *stripe {
	st := &stripe{dir: d}
	st.tables = []*table{{slotArray: slotArray{prefixBits: stripeBits}, pool: &d.pages}}
	st.collections.init(d)
	st.publish()
	return st
}

// tableIndex returns the index in tables of a hash's table.
func (st *stripe) tableIndex(h uint64) int { return int(h << stripeBits >> (64 - st.depth)) }

func (st *stripe) table(h uint64) *table { return st.tables[st.tableIndex(h)] }

// span returns the first index of the table at index i, and the index after its last.
func (st *stripe) span(i int) (int, int) {
	width := 1 << (st.depth + stripeBits - st.tables[i].prefixBits)
	first := i &^ (width - 1)
	return first, first + width
}

// insert adds a slot. A table that is full at its greatest size is split first.
func (st *stripe) insert(word, loc uint64) {
	t := st.table(word)
	if t.mustGrow() && t.slots >= maxTableSlots && t.prefixBits < stripeBits+maxDepth {
		st.split(st.tableIndex(word))
		t = st.table(word)
	}
	t.insert(word, loc)
	st.publishTable(st.tableIndex(word))
}

// delete removes the slot at pos of the table of word and joins tables that have become
// sparse.
func (st *stripe) delete(word uint64, pos int) {
	t := st.table(word)
	before := t.slots
	t.delete(pos)
	if t.slots < before && t.slots < maxTableSlots/4 && st.depth > 0 {
		st.join(st.tableIndex(word))
	}
	st.publishTable(st.tableIndex(word))
}

// split divides the table at index i in two by its next hash bit. If the homes fill an even
// number of pages, both halves keep their homes: home(2x, H/2) = home(x, H). So the pages
// change owner as they are, and only the entries across the middle move.
func (st *stripe) split(i int) {
	t := st.tables[i]
	slots := t.n + t.n/4
	slots = (slots + 2*pageSlots - 1) &^ (2*pageSlots - 1)
	t.rehome(uint64(slots), slots)

	half := slotArray{prefixBits: t.prefixBits + 1, homes: t.homes / 2}
	right := &table{slotArray: half, pool: t.pool}
	left := &table{slotArray: half, pool: t.pool}
	mid := slots / 2
	left.pages = t.pages[: mid>>pageShift : mid>>pageShift]
	left.slots = mid
	right.pages = append([][]uint64(nil), t.pages[mid>>pageShift:]...)
	right.slots = t.slots - mid

	// The left half's overflow is at the start of the right half's pages.
	middle := uint64(1) << (63 - t.prefixBits)
	for pos := 0; ; pos++ {
		word, loc := right.at(pos)
		if word == 0 || word&middle != 0 {
			break
		}
		left.extend(left.slots + 1)
		left.set(mid+pos, word, loc)
		right.set(pos, 0, 0)
	}
	right.rehome(right.homes, right.slots) // moves back what that overflow had displaced
	left.n = left.count()
	right.n = t.n - left.n

	if t.prefixBits == stripeBits+st.depth {
		st.double()
		i *= 2
	}
	first, end := st.span(i)
	for k := first; k < end; k++ {
		if k < (first+end)/2 {
			st.tables[k] = left
		} else {
			st.tables[k] = right
		}
	}
	left.shrink()
	right.shrink()
	st.publish()
}

// double adds one bit to depth.
func (st *stripe) double() {
	tables := make([]*table, 2*len(st.tables))
	for i, t := range st.tables {
		tables[2*i], tables[2*i+1] = t, t
	}
	st.tables = tables
	st.depth++
}

// join merges the table at index i with its sibling while both are sparse.
func (st *stripe) join(i int) {
	for st.tables[i].prefixBits > stripeBits {
		first, end := st.span(i)
		width := end - first
		low := first &^ (2*width - 1)
		left, right := st.tables[low], st.tables[low+width]
		if left.prefixBits != right.prefixBits || left.n+right.n > maxTableSlots/2 {
			break
		}
		both := &table{slotArray: slotArray{prefixBits: left.prefixBits - 1}, pool: left.pool}
		both.resize((left.n+right.n)*4/3 + 1)
		both.appendAll(right, both.appendAll(left, 0))
		left.truncate(0)
		right.truncate(0)
		for k := low; k < low+2*width; k++ {
			st.tables[k] = both
		}
		i = low
	}
	st.halve()
	st.publish()
}

// halve removes the bits of depth that no table needs.
func (st *stripe) halve() {
	for st.depth > 0 {
		for _, t := range st.tables {
			if t.prefixBits == stripeBits+st.depth {
				return
			}
		}
		tables := make([]*table, len(st.tables)/2)
		for i := range tables {
			tables[i] = st.tables[2*i]
		}
		st.tables = tables
		st.depth--
	}
}

// scan calls fn for the slots from the hash of word on, in hash order.
func (st *stripe) scan(word uint64, fn func(word, loc uint64) bool) bool {
	i := st.tableIndex(word)
	for pos := st.tables[i].seek(word); ; pos = 0 {
		t := st.tables[i]
		for ; pos < t.slots; pos++ {
			if w, loc := t.at(pos); w != 0 && !fn(w, loc) {
				return false
			}
		}
		if _, i = st.span(i); i == len(st.tables) {
			return true
		}
	}
}

// randomSlot returns a slot picked by the random number x, each with the same chance: a table by the number of its slots, and the
// slot at a random position of it or, after many empty ones, the next one in hash order. word is 0 if there is none.
func (st *stripe) randomSlot(x uint64) (word, loc uint64) {
	const tries = 32
	n := st.slots()
	if n == 0 {
		return 0, 0
	}
	rank, i := int(mix(x)%uint64(n)), 0
	for ; rank >= st.tables[i].n; _, i = st.span(i) {
		rank -= st.tables[i].n
	}
	t := st.tables[i]
	pos := 0
	for range tries {
		x = mix(x + 1)
		pos = int(x % uint64(t.slots))
		if word, loc = t.at(pos); word != 0 {
			return word, loc
		}
	}
	for ; word == 0; word, loc = t.at(pos) {
		pos = (pos + 1) % t.slots
	}
	return word, loc
}

// mix is the finalizer of SplitMix64: it turns any number into a pseudo-random one.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// slots returns the number of slots in all tables.
func (st *stripe) slots() int {
	n := 0
	for i := 0; i < len(st.tables); _, i = st.span(i) {
		n += st.tables[i].n
	}
	return n
}

// fill makes the tables of an empty stripe from slots in order of hash.
func (st *stripe) fill(slots []uint64) {
	for len(slots)/slotWords>>st.depth > maxTableSlots/2 && st.depth < maxDepth {
		st.depth++
	}
	st.tables = make([]*table, 1<<st.depth)
	for i := range st.tables {
		t := &table{slotArray: slotArray{prefixBits: stripeBits + st.depth}, pool: &st.dir.pages}
		st.tables[i] = t
		end := 0
		for end < len(slots) && st.tableIndex(slots[end]) == i {
			end += slotWords
		}
		t.fill(slots[:end])
		slots = slots[end:]
	}
}
