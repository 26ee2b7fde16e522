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

	pageHead   = 16 // bytes: window base 8, bytes of entries 4, entries 2, window shift 1, strays 1
	groupLimit = 128
)

// index is the order of a big collection: pages of entries, found by (key, name), with
// counts, so that the i-th entry and the rank of an entry take O(log n).
//
// It has three levels. A page is a run of up to pageLimit bytes. A group holds
// up to groupLimit references to pages, each with the key of the page's first entry and its
// count of entries. The top is the list of groups: low holds the first key of each, for the
// search from above, and sums is a Fenwick tree over their counts, for the search by number.
// A search takes two binary searches and one walk of a page; a search by number a descent of
// the Fenwick tree, one pass over a group's counts and the walk. Ten million entries are
// some two thousand groups, so what would be a third level of a tree is a flat list here, and
// the list is remade only when a group is split or goes, once in thousands of changes.
//
// An ordered tree without counts, one of pages, would find keys as well but no numbers.
//
//	K6: no page and no group is empty; their order is the order of their entries.
//	K7: ref.key is the key of the page's first entry; low[g] that of the group's first page.
//	K8: ref.n, group.n, sums and n agree with the pages.
type index struct {
	arena  *arena
	hash   *hasher
	shape  shape
	n      int // entries
	size   int // bytes of entries
	low    []uint64
	groups []group
	sums   []int
}

type group struct {
	refs []ref
	n    int
}

type ref struct {
	key  uint64
	page uint32 // handle
	n    uint32
}

// spot is a place in the index: before the entry with number i at offset off of a page, or
// at the page's end.
type spot struct {
	group, page, off, i int
}

// view is b as a string, without a copy: it lives as long as b stays as it is.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// run returns the entries of a page.
func (x *index) run(page uint32) run { return x.runOf(x.arena.block(page)) }

func (x *index) runOf(b []byte) run {
	used := binary.LittleEndian.Uint32(b[8:])
	return run{
		data:   b[pageHead : pageHead+used],
		n:      int(binary.LittleEndian.Uint16(b[12:])),
		shape:  x.shape,
		window: window{binary.LittleEndian.Uint64(b), b[14]},
		hash:   x.hash,
	}
}

// setHead writes a page's header.
func setHead(b []byte, w window, used, n int) {
	binary.LittleEndian.PutUint64(b, w.base)
	b[14], b[15] = w.shift, 0
	setSize(b, used, n)
}

func setSize(b []byte, used, n int) {
	binary.LittleEndian.PutUint32(b[8:], uint32(used))
	binary.LittleEndian.PutUint16(b[12:], uint16(n))
}

// stray counts a key outside the page's window, and reports whether there have been so
// many that the page needs another.
func stray(b []byte, n int) bool {
	b[15]++
	return b[15] > 8 || int(b[15]) > n/4
}

// firstAbove reports whether a page's first entry, whose key equals the one sought, has a
// greater name.
func (x *index) firstAbove(r ref, name string) bool {
	run := x.run(r.page)
	return string(run.nameOf(run.entryAt(0))) > name
}

// seek returns the spot of the first entry that is not below (key, name), and whether it
// is that very entry.
func (x *index) seek(key uint64, name string) (at spot, found bool) {
	if len(x.groups) == 0 {
		return spot{}, false
	}
	lo, hi := 1, len(x.low)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if low := x.low[mid]; low > key || low == key && x.firstAbove(x.groups[mid].refs[0], name) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	at.group = lo - 1
	refs := x.groups[at.group].refs
	lo, hi = 1, len(refs)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if low := refs[mid].key; low > key || low == key && x.firstAbove(refs[mid], name) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	at.page = lo - 1
	run := x.run(refs[at.page].page)
	at.off, at.i, found = run.seek(key, name)
	return at, found
}

// at returns the spot of the i-th entry.
func (x *index) at(i int) spot {
	var at spot
	at.group, i = find(x.sums, i)
	if at.group == len(x.groups) { // i = n: behind the last entry
		return at
	}
	for refs := x.groups[at.group].refs; i >= int(refs[at.page].n); at.page++ {
		i -= int(refs[at.page].n)
	}
	run := x.run(x.groups[at.group].refs[at.page].page)
	at.off, at.i = run.at(i), i
	return at
}

// rank returns the number of entries before a spot.
func (x *index) rank(at spot) int {
	if len(x.groups) == 0 {
		return 0
	}
	n := sum(x.sums, at.group) + at.i
	for _, r := range x.groups[at.group].refs[:at.page] {
		n += int(r.n)
	}
	return n
}

// count adds to the count of a page, and to all sums it is part of.
func (x *index) count(group, page, delta int) {
	g := &x.groups[group]
	g.refs[page].n += uint32(delta)
	g.n += delta
	x.n += delta
	add(x.sums, group, delta)
}

// setKey notes the first key of a page.
func (x *index) setKey(group, page int, key uint64) {
	x.groups[group].refs[page].key = key
	if page == 0 {
		x.low[group] = key
	}
}

// remake makes low and sums anew after the list of groups has changed.
func (x *index) remake() {
	x.low, x.sums = x.low[:0], x.sums[:0]
	for i := range x.groups {
		x.low = append(x.low, x.groups[i].refs[0].key)
		x.sums = append(x.sums, x.groups[i].n)
	}
	build(x.sums)
}

// cursor walks runs: those of an index from a spot on, or a single one.
type cursor struct {
	run   run
	off   int
	x     *index
	group int
	page  int
}

func (x *index) cursor(at spot) cursor {
	c := cursor{x: x, group: at.group, page: at.page, off: at.off}
	if at.group < len(x.groups) {
		c.run = x.run(x.groups[at.group].refs[at.page].page)
	}
	return c
}

// next returns the next entry of the cursor's run.
func (c *cursor) next() (entry, bool) {
	for c.off >= len(c.run.data) {
		if c.x == nil || c.group >= len(c.x.groups) {
			return entry{}, false
		}
		if c.page++; c.page == len(c.x.groups[c.group].refs) {
			c.group, c.page = c.group+1, 0
			if c.group == len(c.x.groups) {
				return entry{}, false
			}
		}
		c.run, c.off = c.x.run(c.x.groups[c.group].refs[c.page].page), 0
	}
	e := c.run.entryAt(c.off)
	c.off = e.end
	return e, true
}

// insertRef puts a reference before the page-th of a group and returns where it
// is then: groups that grow too long are cut in two.
func (x *index) insertRef(group, page int, r ref) (int, int) {
	if len(x.groups) == 0 {
		x.groups = append(x.groups, group1(r))
		x.remake()
		return 0, 0
	}
	g := &x.groups[group]
	g.refs = slices.Insert(g.refs, page, r)
	x.arena.account(int(unsafe.Sizeof(r)))
	if len(g.refs) <= groupLimit {
		x.low[group] = g.refs[0].key
		return group, page
	}
	half := len(g.refs) / 2
	right := group1(g.refs[half:]...)
	g.refs = slices.Clone(g.refs[:half])
	g.n -= right.n
	x.groups = slices.Insert(x.groups, group+1, right)
	x.remake()
	if page >= half {
		return group + 1, page - half
	}
	return group, page
}

// group1 returns a group of its own for the references.
func group1(refs ...ref) group {
	g := group{refs: slices.Clone(refs)}
	for _, r := range refs {
		g.n += int(r.n)
	}
	return g
}

// removeRef takes a reference, whose count is no longer part of the sums, out of its group.
func (x *index) removeRef(group, page int) {
	g := &x.groups[group]
	x.arena.account(-int(unsafe.Sizeof(g.refs[page])))
	g.refs = slices.Delete(g.refs, page, page+1)
	if len(g.refs) == 0 {
		x.groups = slices.Delete(x.groups, group, group+1)
		x.remake()
		return
	}
	if page == 0 {
		x.low[group] = g.refs[0].key
	}
	if len(g.refs) > groupLimit/8 || len(x.groups) == 1 {
		return
	}
	left := max(group-1, 0)
	l, r := &x.groups[left], &x.groups[left+1]
	if len(l.refs)+len(r.refs) > groupLimit*3/4 {
		return
	}
	l.refs = append(slices.Clip(l.refs), r.refs...)
	l.n += r.n
	x.groups = slices.Delete(x.groups, left+1, left+2)
	x.remake()
}
