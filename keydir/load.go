package keydir

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"
)

// ErrDump means that bytes are no dump of the stripe.
var ErrDump = errors.New("keydir: not a dump of this stripe")

// Loader fills stripes from their dumps. It keeps nothing of what it loads and serves one goroutine; loaders of
// different stripes run beside each other.
type Loader struct {
	// See is told of every location. False refuses the dump.
	See func(Loc) bool

	slots       []uint64          // two words each, of the stripe
	collections []stated          // of the hash at hand
	counts      [Chunks + 1]int64 // of the slots; the directory, which other loaders fill meanwhile, is told at the end
	page        pageBuilder
	ranked      []rankedName
}

// stated is a collection as items state it.
type stated struct {
	typ   Type
	meta  Loc
	key   []byte
	n     int // elements
	size  int // bytes that they take in a run
	parts []part
}

type part struct {
	n    int
	body []byte
}

type rankedName struct {
	score uint64
	name  []byte
}

// Load makes the stripe of a directory, which must be empty, what the dump says. All of the dump is checked:
// nothing in it makes Load panic or take memory out of proportion to its length, and what it accepts
// keeps the invariants of the package. That a slot's hash is that of its collection's key is not checked. The caller holds the
// lock of the stripe. After an error the directory is good for nothing.
func (l *Loader) Load(d *Directory, stripe int, dump []byte) error {
	r := newRegion(d)
	l.slots, l.collections = l.slots[:0], l.collections[:0]
	clear(l.counts[:])
	items := itemContext{stripe: stripe}
	b, ok := items.open(dump)
	if !ok {
		return ErrDump
	}
	var last uint64
	for len(b) > 0 {
		h, t, loc, n := items.next(b)
		if n == 0 || h != last && !l.finish(r, last) {
			return ErrDump
		}
		b = b[n:]
		same := len(l.slots) > 0 && h == last
		last = h
		switch word, place := pack(h, Slot{t, loc}); {
		case t.hasCollection():
			if b, ok = l.state(t, loc, b); !ok {
				return ErrDump
			}
		case isChunks(word, place) || !l.See(loc):
			return ErrDump
		default:
			l.slots = append(l.slots, word, place)
			l.counts[t]++
			if same {
				l.sink()
			}
		}
	}
	if !l.finish(r, last) {
		return ErrDump
	}
	for t, n := range l.counts {
		d.count(Type(t), n)
	}
	r.fill(l.slots)
	r.publish()
	d.regions[stripe].Store(r)
	return nil
}

// sink moves the last slot before greater ones of the same hash: what is loaded does not depend on the order in
// which they came to be. Those of collections are behind them.
func (l *Loader) sink() {
	for i := len(l.slots) - slotWords; i > 0; i -= slotWords {
		a, b := l.slots[i-slotWords:i], l.slots[i:i+slotWords]
		if a[0]>>3 != b[0]>>3 || slices.Compare(a, b) <= 0 {
			return
		}
		a[0], a[1], b[0], b[1] = b[0], b[1], a[0], a[1]
	}
}

// state takes one item of a collection.
func (l *Loader) state(t Type, meta Loc, b []byte) (rest []byte, ok bool) {
	if len(b) < 6 {
		return nil, false
	}
	n, key := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint16(b[4:]))
	b = b[6:]
	if len(b) < key || meta != 0 && !l.See(meta) {
		return nil, false
	}
	name, b := b[:key], b[key:]
	i := slices.IndexFunc(l.collections, func(s stated) bool { return s.typ == t && bytes.Equal(s.key, name) })
	if i < 0 {
		i = len(l.collections)
		l.collections = append(l.collections, stated{typ: t, key: name})
	}
	s := &l.collections[i]
	s.meta = meta // of the last piece: the newest
	if n == 0 {
		return b, true
	}
	size, end, ok := l.measure(t, n, b)
	if !ok {
		return nil, false
	}
	s.n += n
	s.size += size
	s.parts = append(s.parts, part{n, b[:end]})
	return b[end:], true
}

// measure walks n elements and returns the bytes that they take in a run, and here.
func (l *Loader) measure(t Type, n int, b []byte) (size, end int, ok bool) {
	if t.Indexed() {
		if len(b) < 8 || n > (len(b)-8)/8 {
			return 0, 0, false
		}
		for i := range n {
			if loc := Loc(binary.LittleEndian.Uint64(b[8+8*i:])); loc != 0 && !l.See(loc) {
				return 0, 0, false
			}
		}
		return 8 * n, 8 + 8*n, true
	}
	shape := shapeOf(t)
	for range n {
		e, ok := readElement(b[end:], shape)
		if !ok || !l.See(e.loc) {
			return 0, 0, false
		}
		size += shape.entrySize(len(e.name))
		end += e.size
	}
	return size, end, true
}

// dumped is one element of a dump.
type dumped struct {
	name  []byte
	loc   Loc
	score uint64
	size  int
}

func readElement(b []byte, shape shape) (e dumped, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > MaxName || len(b) < n+int(length)+shape.tail() {
		return e, false
	}
	end := n + int(length)
	e.name = b[n:end:end]
	e.loc = Loc(binary.LittleEndian.Uint64(b[end:]))
	if shape == scored {
		e.score = binary.LittleEndian.Uint64(b[end+8:])
	}
	e.size = end + shape.tail()
	return e, true
}

// finish makes the collections of one hash, in an order that does not depend on the one in which they came to be.
func (l *Loader) finish(r *region, word uint64) bool {
	if len(l.collections) == 0 {
		return true
	}
	slices.SortFunc(l.collections, func(a, b stated) int { return cmp.Or(cmp.Compare(a.typ, b.typ), bytes.Compare(a.key, b.key)) })
	for i := range l.collections {
		s := &l.collections[i]
		id, ok := l.collection(&r.collections, s)
		if !ok {
			return false
		}
		slot, place := pack(word, Slot{s.typ, Loc(id)})
		l.slots = append(l.slots, slot, place)
		l.counts[s.typ]++
	}
	clear(l.collections)
	l.collections = l.collections[:0]
	return true
}

func (l *Loader) collection(fs *collectionSet, s *stated) (id uint32, ok bool) {
	fs.makeArena()
	id = fs.arena.newHandle()
	if s.typ.Indexed() {
		return id, s.loadList(fs, id)
	}
	if smallHead+len(s.key)+s.size <= sizeLimit(s.typ) {
		return id, s.loadSmall(fs, id)
	}
	g := fs.newBig(s.typ, string(s.key))
	g.meta = s.meta
	fs.setBig(id, g)
	if !l.loadMembers(&g.members, s) {
		return id, false
	}
	if g.scores != nil {
		l.loadScores(g.scores, s)
	}
	return id, true
}

// elements calls fn for the elements with their hashes, which must ascend.
func (s *stated) elements(h *hasher, fn func(hash uint64, e dumped)) (ascending bool) {
	var lastHash uint64
	var lastName []byte
	first := true
	for _, p := range s.parts {
		for b := p.body; len(b) > 0; {
			e, _ := readElement(b, shapeOf(s.typ))
			b = b[e.size:]
			hash := h.sumBytes(e.name)
			if !first && (hash < lastHash || hash == lastHash && bytes.Compare(e.name, lastName) <= 0) {
				return false
			}
			lastHash, lastName, first = hash, e.name, false
			fn(hash, e)
		}
	}
	return true
}

func (s *stated) loadSmall(fs *collectionSet, id uint32) bool {
	f := fs.writeHead(id, s.typ, view(s.key), s.size, s.meta)
	f.setBody(s.n, s.size)
	r := f.run(fs.hash)
	off := 0
	return s.elements(fs.hash, func(hash uint64, e dumped) {
		r.write(off, hash, view(e.name), e.loc, e.score)
		off += r.shape.entrySize(len(e.name))
	})
}

func (l *Loader) loadMembers(x *index, s *stated) bool {
	l.page.begin(x)
	if !s.elements(x.hash, func(hash uint64, e dumped) { l.page.add(hash, e.name, e.loc, e.score) }) {
		return false
	}
	l.page.end()
	return true
}

// loadScores makes the second order of a sorted set: it is sorted anew, which takes less than inserting into it.
func (l *Loader) loadScores(x *index, s *stated) {
	l.ranked = l.ranked[:0]
	for _, p := range s.parts {
		for b := p.body; len(b) > 0; {
			e, _ := readElement(b, scored)
			b = b[e.size:]
			l.ranked = append(l.ranked, rankedName{e.score, e.name})
		}
	}
	slices.SortFunc(l.ranked, func(a, b rankedName) int {
		if a.score != b.score {
			return cmp.Compare(a.score, b.score)
		}
		return bytes.Compare(a.name, b.name)
	})
	l.page.begin(x)
	for _, r := range l.ranked {
		l.page.add(r.score, r.name, 0, 0)
	}
	l.page.end()
	clear(l.ranked)
}

// loadList makes a list of runs of locations, which must ascend.
func (s *stated) loadList(fs *collectionSet, id uint32) bool {
	var tail int64
	for i, p := range s.parts {
		first, _ := p.run()
		last := first + int64(p.n) - 1
		if last < first || i > 0 && first <= tail {
			return false
		}
		tail = last
	}
	if len(s.parts) <= 1 && smallHead+len(s.key)+8+s.size <= sizeLimit(s.typ) {
		s.loadSmallList(fs, id)
		return true
	}
	g := fs.newBig(s.typ, string(s.key))
	g.meta = s.meta
	fs.setBig(id, g)
	for _, p := range s.parts {
		g.list.putRun(p.run())
	}
	return true
}

func (s *stated) loadSmallList(fs *collectionSet, id uint32) {
	var head int64
	var run []byte
	if len(s.parts) > 0 {
		head, run = trimRun(s.parts[0].run())
	}
	if len(run) == 0 {
		fs.writeHead(id, s.typ, view(s.key), 0, s.meta)
		return
	}
	f := fs.writeHead(id, s.typ, view(s.key), 8+len(run), s.meta)
	f.setBody(countRun(run), 8+len(run))
	f.setListHead(head)
	copy(f.body()[8:], run)
}

// run returns the first index and the locations of a part of a list. A location of zero means that there is no element.
func (p part) run() (first int64, locs []byte) {
	return int64(binary.LittleEndian.Uint64(p.body)), p.body[8:]
}

// trimRun takes the zeros from both ends.
func trimRun(index int64, b []byte) (int64, []byte) {
	for len(b) > 0 && empty(b[:8]) {
		index++
		b = b[8:]
	}
	for len(b) > 0 && empty(b[len(b)-8:]) {
		b = b[:len(b)-8]
	}
	return index, b
}

// countRun counts the elements.
func countRun(b []byte) (n int) {
	for ; len(b) > 0; b = b[8:] {
		if !empty(b[:8]) {
			n++
		}
	}
	return n
}

// putRun puts locations, zeros meaning none, at indexes behind all that there are.
func (x *list) putRun(index int64, b []byte) {
	for len(b) > 0 {
		k := min(len(b)/8, listSlots-int(index&(listSlots-1)))
		x.putPage(index, b[:8*k])
		index += int64(k) // wraps around only behind the last
		b = b[8*k:]
	}
}

// putPage is putRun for indexes of one page.
func (x *list) putPage(index int64, b []byte) {
	if index, b = trimRun(index, b); len(b) == 0 {
		return
	}
	first, n := int(index&(listSlots-1)), len(b)/8
	page := x.pageFor(index)
	x.cover(page, first)
	l := x.cover(page, first+n-1)
	copy(l[listHead+8*(first-l.first()):], b)
	elements := countRun(b)
	l.setHead(l.first(), l.span(), l.n()+elements)
	if x.n == 0 {
		x.head = index
	}
	x.tail = index + int64(n-1)
	x.n += elements
}

// pageBuilder fills an empty index with entries in their order, page after page. Pages are left
// a little room, so that the first insertions do not split them all.
type pageBuilder struct {
	x       *index
	page    uint32 // handle
	limit   int
	data    []byte
	keys    []uint64
	offsets []int
	refs    []ref
}

func (p *pageBuilder) begin(x *index) {
	p.x = x
	p.data, p.keys, p.offsets, p.refs = p.data[:0], p.keys[:0], p.offsets[:0], p.refs[:0]
}

func (p *pageBuilder) add(key uint64, name []byte, loc Loc, score uint64) {
	size := p.x.shape.entrySize(len(name))
	if len(p.keys) > 0 && len(p.data)+size > p.limit {
		p.flush()
	}
	if len(p.keys) == 0 {
		p.page = p.x.arena.newHandle()
		p.limit = limitOf(p.page) * 7 / 8
	}
	off := len(p.data)
	p.data = slices.Grow(p.data, size)[:off+size]
	r := run{data: p.data, shape: p.x.shape, window: whole}
	r.write(off, key, view(name), loc, score)
	p.keys, p.offsets = append(p.keys, key), append(p.offsets, off)
}

// flush makes a page of what has gathered.
func (p *pageBuilder) flush() {
	x, n := p.x, len(p.keys)
	b := x.arena.alloc(p.page, pageHead+len(p.data))
	copy(b[pageHead:], p.data)
	w := whole
	if x.shape != ranked {
		w = windowOf(p.keys[0], p.keys[n-1])
		for i, off := range p.offsets {
			b[pageHead+off] = w.tag(p.keys[i])
		}
	}
	setHead(b, w, len(p.data), n)
	p.refs = append(p.refs, ref{key: p.keys[0], page: p.page, n: uint32(n)})
	if len(p.refs) == groupLimit*3/4 {
		p.group()
	}
	x.n += n
	x.size += len(p.data)
	p.data, p.keys, p.offsets = p.data[:0], p.keys[:0], p.offsets[:0]
}

func (p *pageBuilder) group() {
	p.x.groups = append(p.x.groups, group1(p.refs...))
	p.x.arena.account(len(p.refs) * int(unsafe.Sizeof(ref{})))
	p.refs = p.refs[:0]
}

func (p *pageBuilder) end() {
	if len(p.keys) > 0 {
		p.flush()
	}
	if len(p.refs) > 0 {
		p.group()
	}
	p.x.remake()
}

// fill makes the tables of an empty region of slots in order of hash.
func (r *region) fill(slots []uint64) {
	for len(slots)/slotWords>>r.depth > maxTableSlots/2 && r.depth < maxDepth {
		r.depth++
	}
	r.tables = make([]*table, 1<<r.depth)
	for i := range r.tables {
		t := &table{extent: extent{skip: stripeBits + r.depth}, slabs: &r.dir.slabs}
		r.tables[i] = t
		end := 0
		for end < len(slots) && r.index(slots[end]) == i {
			end += slotWords
		}
		t.fill(slots[:end])
		slots = slots[end:]
	}
}

// fill makes an empty table one of slots in order of hash.
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
