package keydir

import (
	"slices"
	"unsafe"
)

// insert inserts an entry at the position that seek returned for it.
func (o *orderedPages) insert(at position, key uint64, name string, loc Loc, score uint64) {
	size := o.layout.entrySize(len(name))
	at, b := o.makeRoom(at, key, size)
	page := o.groups[at.group].refs[at.page].page
	used, n, even := pageSize(b)
	if room := pageHeaderBytes + used + size; room > len(b) {
		if o.pending { // more will follow
			room += min(4*size, pageLimit/8)
		}
		b = o.arena.resize(page, room)
	}
	openGap(b[pageHeaderBytes:], at.off, used, size)
	if n == 0 && size <= maxEven {
		even = size
	} else if even != size {
		even = 0
	}
	setPageSize(b, used+size, n+1, even)
	entries := o.entriesIn(b)
	entries.write(at.off, key, name, loc, score)
	if o.layout != ranked && !entries.tags.holds(key) && stray(b, n) {
		o.refit(page)
	}
	if at.off == 0 {
		o.setFirst(at.group, at.page, key, name)
	}
	o.count(at.group, at.page, 1)
	o.size += size
}

// makeRoom makes room for an entry of that size in a page and returns the entry's position and the page's block.
// A score at either end of the order begins a new page instead of splitting a full one, so
// that scores that only rise or fall fill their pages. So does an entry of more than
// half a page, which would cause split after split.
func (o *orderedPages) makeRoom(at position, key uint64, size int) (position, []byte) {
	if len(o.groups) == 0 {
		return o.newPage(0, 0, key, allHashes)
	}
	for {
		g := &o.groups[at.group]
		b := o.arena.block(g.refs[at.page].page)
		used, _, _ := pageSize(b)
		most := limitOf(g.refs[at.page].page)
		if used+size <= most {
			return at, b
		}
		entries := o.entriesIn(b)
		alone := size > most/2 || entries.n == 1
		first := o.layout == ranked && at.group == 0 && at.page == 0
		last := o.layout == ranked && at.group == len(o.groups)-1 && at.page == len(g.refs)-1
		if at.off == 0 && (alone || first) {
			return o.newPage(at.group, at.page, key, tagRange{key, entries.tags.shift})
		}
		if at.off == used && (alone || last) {
			return o.newPage(at.group, at.page+1, key, tagRange{key, entries.tags.shift})
		}
		cut := at
		if !alone {
			cut.off, cut.i = entries.middle()
		}
		at = o.split(cut, at.off-cut.off, at.i-cut.i)
	}
}

// limitOf returns how many bytes of entries a page takes, between half of pageLimit and all
// of it. Hashes spread names evenly, so pages with equal limits would all fill and split at
// about the same time, and the share of free memory would swing.
func limitOf(page uint32) int {
	return pageLimit - int(page*0x9e3779b1>>16)%(pageLimit/2)
}

// newPage inserts an empty page before the page-th of a group. The caller adds an entry with
// that key.
func (o *orderedPages) newPage(group, page int, key uint64, tags tagRange) (position, []byte) {
	r := ref{key: key, page: o.arena.newHandle()}
	b := o.arena.alloc(r.page, pageHeaderBytes)
	o.setPageHeader(b, tags, 0, 0)
	group, page = o.insertRef(group, page, r)
	return position{group: group, page: page}, b
}

// split moves the entries of a page from the cut on to a new page. It returns the position
// that is off bytes and i entries from the cut; at the cut itself, the end of the left page.
func (o *orderedPages) split(cut position, off, i int) position {
	left := &o.groups[cut.group].refs[cut.page]
	entries := o.entries(left.page)
	data := entries.data[cut.off:] // stays valid, wherever the page moves

	right := ref{page: o.arena.newHandle(), n: left.n - uint32(cut.i)}
	b := o.arena.alloc(right.page, pageHeaderBytes+len(data))
	copy(b[pageHeaderBytes:], data)
	o.setPageHeader(b, entries.tags, len(data), int(right.n))
	right.key, right.name = o.refit(right.page)

	o.setPageHeader(o.arena.block(left.page), entries.tags, cut.off, cut.i)
	o.arena.resize(left.page, pageHeaderBytes+cut.off)
	o.refit(left.page)
	left.n = uint32(cut.i)

	group, page := o.insertRef(cut.group, cut.page+1, right)
	if off > 0 {
		return position{group, page, off, i}
	}
	if page--; page < 0 { // the group was split between the two
		group--
		page = len(o.groups[group].refs) - 1
	}
	return position{group, page, cut.off + off, cut.i + i}
}

// refit fits a page's tag range to its entries and returns the first key and name, as its ref has them.
func (o *orderedPages) refit(page uint32) (key, name uint64) {
	b := o.arena.block(page)
	entries := o.entriesIn(b)
	first := entries.key(entries.entryAt(0))
	if o.layout != ranked {
		last := entries.key(entries.entryAt(entries.at(entries.n - 1)))
		entries.retag(tagRangeOf(first, last))
		o.setPageHeader(b, entries.tags, len(entries.data), entries.n)
	}
	return first, o.abbreviate(entries.first())
}

// remove removes the entry at a position.
func (o *orderedPages) remove(at position) {
	page := o.groups[at.group].refs[at.page].page
	b := o.arena.block(page)
	entries := o.entriesIn(b)
	e, used := entries.entryAt(at.off), len(entries.data)
	size := e.end - e.off
	o.size -= size
	o.count(at.group, at.page, -1)
	if entries.n == 1 {
		o.dropPage(at.group, at.page)
		return
	}
	closeGap(b[pageHeaderBytes:], at.off, used, size)
	used -= size
	setPageSize(b, used, entries.n-1, entries.even)
	spare := len(b) / 8 // with less resize leaves it as it is
	if o.pending {
		spare = len(b) / 4
	}
	if len(b)-pageHeaderBytes-used >= spare {
		o.arena.resize(page, pageHeaderBytes+used)
	}
	if at.off == 0 {
		entries = o.entries(page)
		o.setFirst(at.group, at.page, entries.key(entries.entryAt(0)), entries.first())
	}
	if used < pageLimit/4 {
		o.merge(at.group, at.page)
	}
}

// dropPage releases a page and removes its reference.
func (o *orderedPages) dropPage(group, page int) {
	handle := o.groups[group].refs[page].page
	o.arena.release(handle)
	o.arena.freeHandle(handle)
	o.removeRef(group, page)
}

// merge joins a sparse page with a neighbour in its group, if the result has enough room not
// to be split again soon.
func (o *orderedPages) merge(group, page int) {
	refs := o.groups[group].refs
	for _, p := range [...]int{page, page - 1} {
		if p < 0 || p+1 == len(refs) {
			continue
		}
		left, right := o.entries(refs[p].page), o.entries(refs[p+1].page)
		used := len(left.data) + len(right.data)
		if used > limitOf(refs[p].page)*3/4 {
			continue
		}
		b := o.arena.resize(refs[p].page, pageHeaderBytes+used)
		copy(b[pageHeaderBytes+len(left.data):], right.data)
		o.setPageHeader(b, left.tags, used, left.n+right.n)
		o.refit(refs[p].page)
		refs[p].n += refs[p+1].n
		o.dropPage(group, p+1)
		return
	}
}

// pageBuilder fills empty orderedPages with sorted entries, page after page. It leaves an
// eighth of each page free, so that the first insertions do not split them all.
type pageBuilder struct {
	x       *orderedPages
	page    uint32 // handle
	limit   int
	data    []byte
	keys    []uint64
	offsets []int
	refs    []ref
}

func (p *pageBuilder) begin(o *orderedPages) {
	p.x = o
	p.data, p.keys, p.offsets, p.refs = p.data[:0], p.keys[:0], p.offsets[:0], p.refs[:0]
}

// add appends an entry, to a new page if the current one is full.
func (p *pageBuilder) add(key uint64, name []byte, loc Loc, score uint64) {
	size := p.x.layout.entrySize(len(name))
	if len(p.keys) > 0 && len(p.data)+size > p.limit {
		p.flush()
	}
	if len(p.keys) == 0 {
		p.page = p.x.arena.newHandle()
		p.limit = limitOf(p.page) * 7 / 8
	}
	off := len(p.data)
	p.data = slices.Grow(p.data, size)[:off+size]
	entries := packed{data: p.data, layout: p.x.layout, tags: allHashes}
	entries.write(off, key, asString(name), loc, score)
	p.keys, p.offsets = append(p.keys, key), append(p.offsets, off)
}

// flush makes a page of the gathered entries.
func (p *pageBuilder) flush() {
	o, n := p.x, len(p.keys)
	b := o.arena.alloc(p.page, pageHeaderBytes+len(p.data))
	copy(b[pageHeaderBytes:], p.data)
	r := allHashes
	if o.layout != ranked {
		r = tagRangeOf(p.keys[0], p.keys[n-1])
		for i, off := range p.offsets {
			b[pageHeaderBytes+off] = r.tag(p.keys[i])
		}
	}
	o.setPageHeader(b, r, len(p.data), n)
	first := o.entriesIn(b).first()
	p.refs = append(p.refs, ref{key: p.keys[0], name: o.abbreviate(first), page: p.page, n: uint32(n)})
	if len(p.refs) == groupLimit*3/4 {
		p.group()
	}
	o.n += n
	o.size += len(p.data)
	p.data, p.keys, p.offsets = p.data[:0], p.keys[:0], p.offsets[:0]
}

// group makes a group of the gathered references.
func (p *pageBuilder) group() {
	p.x.groups = append(p.x.groups, newGroup(p.refs...))
	p.x.arena.account(len(p.refs) * int(unsafe.Sizeof(ref{})))
	p.refs = p.refs[:0]
}

// end flushes the last page and group.
func (p *pageBuilder) end() {
	if len(p.keys) > 0 {
		p.flush()
	}
	if len(p.refs) > 0 {
		p.group()
	}
	p.x.rebuild()
}
