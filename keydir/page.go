package keydir

// insert puts an entry at the spot where seek said it belongs.
func (x *index) insert(at spot, key uint64, name string, loc Loc, score uint64) {
	size := x.shape.entrySize(len(name))
	at = x.makeRoom(at, key, size)
	r := x.groups[at.group].refs[at.page]
	old := x.run(r.page)
	used := len(old.data)
	b := x.arena.resize(r.page, pageHead+used+size)
	openGap(b[pageHead:], at.off, used, size)
	setSize(b, used+size, old.n+1)
	run := x.runOf(b)
	run.write(at.off, key, name, loc, score)
	if x.shape != ranked && !old.window.holds(key) && stray(b, old.n) {
		x.refit(r.page)
	}
	if at.off == 0 {
		x.setKey(at.group, at.page, key)
	}
	x.count(at.group, at.page, 1)
	x.size += size
}

// makeRoom returns the spot for an entry of that size once its page has room for it.
// A score at either end of the order begins a new page instead of splitting a full one, so
// that scores that only rise or fall fill their pages. So does an entry of more than
// half a page, with which a split would go on and on.
func (x *index) makeRoom(at spot, key uint64, size int) spot {
	if len(x.groups) == 0 {
		return x.newPage(0, 0, key, whole)
	}
	for {
		g := &x.groups[at.group]
		run := x.run(g.refs[at.page].page)
		used := len(run.data)
		most := limitOf(g.refs[at.page].page)
		if used+size <= most {
			return at
		}
		alone := size > most/2 || run.n == 1
		first := x.shape == ranked && at.group == 0 && at.page == 0
		last := x.shape == ranked && at.group == len(x.groups)-1 && at.page == len(g.refs)-1
		if at.off == 0 && (alone || first) {
			return x.newPage(at.group, at.page, key, window{key, run.window.shift})
		}
		if at.off == used && (alone || last) {
			return x.newPage(at.group, at.page+1, key, window{key, run.window.shift})
		}
		cut := at
		if !alone {
			cut.off, cut.i = run.middle()
		}
		at = x.split(cut, at.off-cut.off, at.i-cut.i)
	}
}

// limitOf returns how many bytes of entries a page takes: from half of pageLimit up. Names
// are spread evenly by their hash, so pages with equal limits would all fill and split at
// about the same time, and the memory would swing between much too much free and none.
func limitOf(page uint32) int {
	return pageLimit - int(page*0x9e3779b1>>16)%(pageLimit/2)
}

// newPage puts an empty page before the page-th of a group. It is about to
// get an entry with that key.
func (x *index) newPage(group, page int, key uint64, w window) spot {
	r := ref{key: key, page: x.arena.newHandle()}
	setHead(x.arena.alloc(r.page, pageHead), w, 0, 0)
	group, page = x.insertRef(group, page, r)
	return spot{group: group, page: page}
}

// split moves the entries of a page from the cut on to a new page. It returns the spot
// that is off bytes and i entries from the cut; at the cut itself, it is the end of the
// left page.
func (x *index) split(cut spot, off, i int) spot {
	left := &x.groups[cut.group].refs[cut.page]
	run := x.run(left.page)
	data := run.data[cut.off:] // stays as it is, wherever the page moves

	right := ref{page: x.arena.newHandle(), n: left.n - uint32(cut.i)}
	b := x.arena.alloc(right.page, pageHead+len(data))
	copy(b[pageHead:], data)
	setHead(b, run.window, len(data), int(right.n))
	right.key = x.refit(right.page)

	setHead(x.arena.block(left.page), run.window, cut.off, cut.i)
	x.arena.resize(left.page, pageHead+cut.off)
	x.refit(left.page)
	left.n = uint32(cut.i)

	group, page := x.insertRef(cut.group, cut.page+1, right)
	if off > 0 {
		return spot{group, page, off, i}
	}
	if page--; page < 0 { // the group was cut between the two
		group--
		page = len(x.groups[group].refs) - 1
	}
	return spot{group, page, cut.off + off, cut.i + i}
}

// refit fits a page's window to its entries and returns the first key.
func (x *index) refit(page uint32) uint64 {
	b := x.arena.block(page)
	run := x.runOf(b)
	first := run.key(run.entryAt(0))
	if x.shape != ranked {
		last := run.key(run.entryAt(run.at(run.n - 1)))
		run.retag(windowOf(first, last))
		setHead(b, run.window, len(run.data), run.n)
	}
	return first
}

// remove takes out the entry at a spot.
func (x *index) remove(at spot) {
	page := x.groups[at.group].refs[at.page].page
	b := x.arena.block(page)
	run := x.runOf(b)
	e, used := run.entryAt(at.off), len(run.data)
	size := e.end - e.off
	x.size -= size
	x.count(at.group, at.page, -1)
	if run.n == 1 {
		x.dropPage(at.group, at.page)
		return
	}
	closeGap(b[pageHead:], at.off, used, size)
	used -= size
	setSize(b, used, run.n-1)
	x.arena.resize(page, pageHead+used)
	if at.off == 0 {
		run = x.run(page)
		x.setKey(at.group, at.page, run.key(run.entryAt(0)))
	}
	if used < pageLimit/4 {
		x.merge(at.group, at.page)
	}
}

func (x *index) dropPage(group, page int) {
	handle := x.groups[group].refs[page].page
	x.arena.release(handle)
	x.arena.freeHandle(handle)
	x.removeRef(group, page)
}

// merge joins a sparse page with a neighbour in its group, if that leaves room enough for
// the page not to be split again soon.
func (x *index) merge(group, page int) {
	refs := x.groups[group].refs
	for _, p := range [...]int{page, page - 1} {
		if p < 0 || p+1 == len(refs) {
			continue
		}
		left, right := x.run(refs[p].page), x.run(refs[p+1].page)
		used := len(left.data) + len(right.data)
		if used > limitOf(refs[p].page)*3/4 {
			continue
		}
		b := x.arena.resize(refs[p].page, pageHead+used)
		copy(b[pageHead+len(left.data):], right.data)
		setHead(b, left.window, used, left.n+right.n)
		x.refit(refs[p].page)
		refs[p].n += refs[p+1].n
		x.dropPage(group, p+1)
		return
	}
}
