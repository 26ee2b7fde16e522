package keydir

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

const (
	// pageLimit is how many bytes of entries a page takes at most; see limitOf. A search
	// walks half a page on average, so smaller pages are faster and cost more index.
	pageLimit = 2048

	pageHeaderBytes = 16 // bytes: tag base 8, bytes of entries 3, size of each 1, entries 2, tag shift 1, strays 1
	groupLimit      = 128
)

// orderedPages is an order of a big collection: pages of entries, found by (key, name), with
// counts, so that the i-th entry and the rank of an entry take O(log n).
//
// It has three levels. A page is up to pageLimit bytes of packed entries. A group holds
// up to groupLimit references to pages, each with the key of the page's first entry and its
// count of entries. The top is the list of groups: lowKeys holds the first key of each, for
// the search by key, and sums is a Fenwick tree over their counts, for the search by number.
// A search by key takes two binary searches and one walk of a page; a search by number a
// descent of the Fenwick tree, one pass over a group's counts and one walk. Ten million
// entries are about two thousand groups, so the top level is a flat list; it is rebuilt only
// when a group is split or removed, once in thousands of changes.
//
// A B-tree without counts would find keys as well, but not the i-th entry.
//
//	K6: no page and no group is empty; their order is the order of their entries.
//	K7: ref.key is the key of the page's first entry, and ref.name begins its name; lowKeys[g] is the key of the group's
//	    first page.
//	K8: ref.n, group.n, sums and n agree with the pages.
//	K9: if a page's header has a size of its entries, each of them has that size.
type orderedPages struct {
	arena   *arena
	hash    *hasher
	layout  layout
	pending bool // an order of what groups of streams have, most of which is pending entries: these come and go
	n       int  // entries
	size    int  // bytes of entries
	lowKeys []uint64
	groups  []group
	sums    fenwick
}

// group is a list of references to pages, in order, and the number of their entries.
type group struct {
	refs []ref
	n    int
}

// ref refers to a page: its handle, the key and the beginning of the name of its first entry, and its number of entries.
type ref struct {
	key  uint64
	name uint64 // see orderedPages.abbreviate
	page uint32 // handle
	n    uint32
}

// position is a position in the order: before the entry with number i at offset off of a
// page, or at the page's end.
type position struct {
	group, page, off, i int
}

// entries returns the entries of a page.
func (o *orderedPages) entries(page uint32) packed { return o.entriesIn(o.arena.block(page)) }

// entriesIn returns the entries of a page's block.
func (o *orderedPages) entriesIn(b []byte) packed {
	used, n, even := pageSize(b)
	return packed{
		data:   b[pageHeaderBytes : pageHeaderBytes+used],
		n:      n,
		even:   even,
		layout: o.layout,
		tags:   tagRange{binary.LittleEndian.Uint64(b), b[14]},
		hash:   o.hash,
	}
}

// What a page's header has in four bytes: the bytes of the entries, and the size of each entry if it is the same for all,
// and fits; otherwise zero.
const (
	usedBits = 24
	usedMask = 1<<usedBits - 1
	maxEven  = 1<<(32-usedBits) - 1
)

// setPageHeader writes the header of a page that has its entries already.
func (o *orderedPages) setPageHeader(b []byte, r tagRange, used, n int) {
	binary.LittleEndian.PutUint64(b, r.base)
	b[14], b[15] = r.shift, 0
	entries := packed{data: b[pageHeaderBytes : pageHeaderBytes+used], n: n, layout: o.layout}
	setPageSize(b, used, n, entries.evenSize())
}

// pageSize is what setPageSize has written.
func pageSize(b []byte) (used, n, even int) {
	sizes := binary.LittleEndian.Uint32(b[8:])
	return int(sizes & usedMask), int(binary.LittleEndian.Uint16(b[12:])), int(sizes >> usedBits)
}

func setPageSize(b []byte, used, n, even int) {
	binary.LittleEndian.PutUint32(b[8:], uint32(used)|uint32(even)<<usedBits)
	binary.LittleEndian.PutUint16(b[12:], uint16(n))
}

// stray counts a key outside the page's tag range, and reports whether there have been so
// many that the page needs a new range.
func stray(b []byte, n int) bool {
	b[15]++
	return b[15] > 8 || int(b[15]) > n/4
}

// abbreviate makes a number of a name, which is not less than that of any name before it: where many entries have the
// same score, such as all that is pending for a consumer, it tells most pages apart without a look into them. Of a
// pending entry it is the id: its time up to the year 2527, and its number up to a million.
func (o *orderedPages) abbreviate(name string) uint64 {
	if o.layout != ranked {
		return 0 // two names hardly ever have the same hash
	}
	if o.pending && len(name) == pendingLength && name[0] == 'p' {
		const numberBits = 20
		id := PendingID([]byte(name))
		if id.Ms >= 1<<(64-numberBits) {
			return 1<<64 - 1
		}
		return id.Ms<<numberBits | min(id.Seq, 1<<numberBits-1)
	}
	var b [8]byte
	copy(b[:], name)
	return binary.BigEndian.Uint64(b[:])
}

// firstAbove reports whether a page's first entry, whose key equals the one sought, has a greater name. short
// abbreviates name.
func (o *orderedPages) firstAbove(r *ref, short uint64, name string) bool {
	if r.name != short {
		return r.name > short
	}
	entries := o.entries(r.page)
	return string(entries.nameOf(entries.entryAt(0))) > name
}

// seek returns the position of the first entry that is not below (key, name), and whether
// it is that very entry.
func (o *orderedPages) seek(key uint64, name string) (at position, found bool) {
	var page packed
	return o.seekPage(key, name, &page)
}

// seekPage is seek that also sets page to the entries of the page that it has found.
func (o *orderedPages) seekPage(key uint64, name string, page *packed) (at position, found bool) {
	if len(o.groups) == 0 {
		return position{}, false
	}
	short := o.abbreviate(name)
	lo, hi := 1, len(o.lowKeys)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if low := o.lowKeys[mid]; low > key || low == key && o.firstAbove(&o.groups[mid].refs[0], short, name) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	at.group = lo - 1
	refs := o.groups[at.group].refs
	lo, hi = 1, len(refs)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if low := refs[mid].key; low > key || low == key && o.firstAbove(&refs[mid], short, name) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	at.page = lo - 1
	*page = o.entries(refs[at.page].page)
	at.off, at.i, found = page.seek(key, name)
	return at, found
}

// at returns the position of the i-th entry.
func (o *orderedPages) at(i int) position {
	var at position
	at.group, i = o.sums.find(i)
	if at.group == len(o.groups) { // i = n: after the last entry
		return at
	}
	for refs := o.groups[at.group].refs; i >= int(refs[at.page].n); at.page++ {
		i -= int(refs[at.page].n)
	}
	entries := o.entries(o.groups[at.group].refs[at.page].page)
	at.off, at.i = entries.at(i), i
	return at
}

// rank returns the number of entries before a position.
func (o *orderedPages) rank(at position) int {
	if len(o.groups) == 0 {
		return 0
	}
	n := o.sums.sum(at.group) + at.i
	for _, r := range o.groups[at.group].refs[:at.page] {
		n += int(r.n)
	}
	return n
}

// count adds to the count of a page and to all sums that include it.
func (o *orderedPages) count(group, page, delta int) {
	g := &o.groups[group]
	g.refs[page].n += uint32(delta)
	g.n += delta
	o.n += delta
	o.sums.add(group, delta)
}

// setFirst records the key and the name of the first entry of a page.
func (o *orderedPages) setFirst(group, page int, key uint64, name string) {
	r := &o.groups[group].refs[page]
	r.key, r.name = key, o.abbreviate(name)
	if page == 0 {
		o.lowKeys[group] = key
	}
}

// rebuild recomputes lowKeys and sums after the list of groups has changed.
func (o *orderedPages) rebuild() {
	o.lowKeys, o.sums = o.lowKeys[:0], o.sums[:0]
	for i := range o.groups {
		o.lowKeys = append(o.lowKeys, o.groups[i].refs[0].key)
		o.sums = append(o.sums, o.groups[i].n)
	}
	o.sums.build()
}

// cursor walks packed entries: those of orderedPages from a position on, or those of one
// small collection.
type cursor struct {
	entries packed
	off     int
	x       *orderedPages
	group   int
	page    int
}

// cursor returns a cursor that begins at a position.
func (o *orderedPages) cursor(at position) cursor {
	cur := cursor{x: o, group: at.group, page: at.page, off: at.off}
	if at.group < len(o.groups) {
		cur.entries = o.entries(o.groups[at.group].refs[at.page].page)
	}
	return cur
}

// next returns the next entry, which is in the cursor's entries.
func (cur *cursor) next() (entry, bool) {
	for cur.off >= len(cur.entries.data) {
		if cur.x == nil || cur.group >= len(cur.x.groups) {
			return entry{}, false
		}
		if cur.page++; cur.page == len(cur.x.groups[cur.group].refs) {
			cur.group, cur.page = cur.group+1, 0
			if cur.group == len(cur.x.groups) {
				return entry{}, false
			}
		}
		cur.entries, cur.off = cur.x.entries(cur.x.groups[cur.group].refs[cur.page].page), 0
	}
	e := cur.entries.entryAt(cur.off)
	cur.off = e.end
	return e, true
}

// insertRef inserts a reference before the page-th of a group and returns its place: groups
// that grow too long are split in two.
func (o *orderedPages) insertRef(group, page int, r ref) (int, int) {
	if len(o.groups) == 0 {
		o.groups = append(o.groups, newGroup(r))
		o.arena.account(int(unsafe.Sizeof(r)))
		o.rebuild()
		return 0, 0
	}
	g := &o.groups[group]
	g.refs = slices.Insert(g.refs, page, r)
	o.arena.account(int(unsafe.Sizeof(r)))
	if len(g.refs) <= groupLimit {
		o.lowKeys[group] = g.refs[0].key
		return group, page
	}
	half := len(g.refs) / 2
	right := newGroup(g.refs[half:]...)
	g.refs = slices.Clone(g.refs[:half])
	g.n -= right.n
	o.groups = slices.Insert(o.groups, group+1, right)
	o.rebuild()
	if page >= half {
		return group + 1, page - half
	}
	return group, page
}

// newGroup returns a group of the references.
func newGroup(refs ...ref) group {
	g := group{refs: slices.Clone(refs)}
	for _, r := range refs {
		g.n += int(r.n)
	}
	return g
}

// removeRef removes a reference, whose count is no longer part of the sums, from its group.
func (o *orderedPages) removeRef(group, page int) {
	g := &o.groups[group]
	o.arena.account(-int(unsafe.Sizeof(g.refs[page])))
	g.refs = slices.Delete(g.refs, page, page+1)
	if len(g.refs) == 0 {
		o.groups = slices.Delete(o.groups, group, group+1)
		o.rebuild()
		return
	}
	if page == 0 {
		o.lowKeys[group] = g.refs[0].key
	}
	if len(g.refs) > groupLimit/8 || len(o.groups) == 1 {
		return
	}
	left := max(group-1, 0)
	l, r := &o.groups[left], &o.groups[left+1]
	if len(l.refs)+len(r.refs) > groupLimit*3/4 {
		return
	}
	l.refs = append(slices.Clip(l.refs), r.refs...)
	l.n += r.n
	o.groups = slices.Delete(o.groups, left+1, left+2)
	o.rebuild()
}
