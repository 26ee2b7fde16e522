package keydir

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"github.com/google/btree"
)

// StreamID names an entry of a stream: a time in Unix milliseconds, and a number among the
// entries of that millisecond.
type StreamID struct{ Ms, Seq uint64 }

// MaxStreamID is the greatest of all ids.
var MaxStreamID = StreamID{1<<64 - 1, 1<<64 - 1}

// Compare orders ids by time, then number.
func (id StreamID) Compare(other StreamID) int {
	return cmp.Or(cmp.Compare(id.Ms, other.Ms), cmp.Compare(id.Seq, other.Seq))
}

// Less reports whether id is before other.
func (id StreamID) Less(other StreamID) bool {
	return id.Ms < other.Ms || id.Ms == other.Ms && id.Seq < other.Seq
}

// String returns the id as "time-number".
func (id StreamID) String() string {
	var longest [20 + 1 + 20]byte
	return string(id.Append(longest[:0]))
}

// Append appends the id as "time-number".
func (id StreamID) Append(dst []byte) []byte {
	return strconv.AppendUint(append(strconv.AppendUint(dst, id.Ms, 10), '-'), id.Seq, 10)
}

// Next returns the id after id; that of MaxStreamID is the zero id.
func (id StreamID) Next() StreamID {
	if id.Seq++; id.Seq == 0 {
		id.Ms++
	}
	return id
}

// Previous returns the id before id; that of the zero id is MaxStreamID.
func (id StreamID) Previous() StreamID {
	if id.Seq == 0 {
		id.Ms--
	}
	id.Seq--
	return id
}

// StreamMeta is what is known of a stream besides its entries, at the moment of its last change other
// than an append. What has been appended since has ids after Last and counts on from Added and Len.
type StreamMeta struct {
	First   StreamID // entries before it are gone
	Last    StreamID // the id of the last entry that was ever added, or what it has been set to
	Deleted StreamID // the greatest id of a deleted entry
	Added   uint64   // how many entries were ever added
	Len     int      // how many are there
}

// streamRun is a sequence of entries in order of id, the body of a small stream and the
// content of a page of a big one:
//
//	| first id 16 | last id 16 | location 8 | step | location 8 | step | location 8 ...
//
// A step is a uvarint, whose low two bits say what the rest is: the distance of the numbers
// within one millisecond; that of the times, of an entry with the number 0; that of the times,
// and the number follows as a uvarint; or nothing, and the id follows in full. So most
// entries take nine or ten bytes.
type streamRun []byte

const (
	runHeaderBytes = 32
	stepNumber     = 0
	stepTime       = 1
	stepBoth       = 2
	stepFull       = 3
	maxStepBytes   = 2 * binary.MaxVarintLen64
	maxStepDelta   = 1 << 62 // exclusive
)

func readID(b []byte) StreamID {
	return StreamID{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func writeID(b []byte, id StreamID) {
	binary.LittleEndian.PutUint64(b, id.Ms)
	binary.LittleEndian.PutUint64(b[8:], id.Seq)
}

func (r streamRun) first() StreamID { return readID(r) }
func (r streamRun) last() StreamID  { return readID(r[16:]) }

// appendStep appends the step from one id to a greater one.
func appendStep(b []byte, from, to StreamID) []byte {
	ms, seq := to.Ms-from.Ms, to.Seq-from.Seq
	switch {
	case ms == 0 && seq < maxStepDelta:
		return binary.AppendUvarint(b, seq<<2|stepNumber)
	case ms == 0 || ms >= maxStepDelta:
		b = binary.LittleEndian.AppendUint64(append(b, stepFull), to.Ms)
		return binary.LittleEndian.AppendUint64(b, to.Seq)
	case to.Seq == 0:
		return binary.AppendUvarint(b, ms<<2|stepTime)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, ms<<2|stepBoth), to.Seq)
}

// readStep is the inverse of appendStep: the id after from, and the length of the step; 0 if
// there is none.
func readStep(b []byte, from StreamID) (StreamID, int) {
	word, n := binary.Uvarint(b)
	if n <= 0 {
		return from, 0
	}
	to := from
	switch d := word >> 2; word & 3 {
	case stepNumber:
		to.Seq += d
	case stepTime:
		to = StreamID{from.Ms + d, 0}
	case stepBoth:
		seq, k := binary.Uvarint(b[n:])
		if k <= 0 {
			return from, 0
		}
		to = StreamID{from.Ms + d, seq}
		n += k
	default:
		if len(b) < n+16 {
			return from, 0
		}
		to = readID(b[n:])
		n += 16
	}
	if !from.Less(to) {
		return from, 0
	}
	return to, n
}

// runCursor walks a run.
type runCursor struct {
	run streamRun
	id  StreamID
	off int // of the location of the entry
	end int // of the entry; 0 before the first
}

// next moves to the next entry.
func (c *runCursor) next() bool {
	if c.end == 0 {
		if len(c.run) == 0 {
			return false
		}
		c.id, c.off = c.run.first(), runHeaderBytes
	} else {
		if c.end >= len(c.run) {
			return false
		}
		id, n := readStep(c.run[c.end:], c.id)
		c.id, c.off = id, c.end+n
	}
	c.end = c.off + 8
	return true
}

func (c *runCursor) loc() Loc { return Loc(binary.LittleEndian.Uint64(c.run[c.off:])) }

// seek moves to the first entry that is not before id.
func (c *runCursor) seek(id StreamID) bool {
	for c.next() {
		c.skip(id)
		if !c.id.Less(id) {
			return true
		}
	}
	return false
}

// skip moves over entries that take a step of one byte, as most do, until one is not before id.
func (c *runCursor) skip(id StreamID) {
	run, at, end := c.run, c.id, c.end
	for at.Less(id) && end < len(run) && run[end] < 1<<7 {
		switch d := uint64(run[end] >> 2); run[end] & 3 {
		case stepNumber:
			at.Seq += d
		case stepTime:
			at = StreamID{at.Ms + d, 0}
		default:
			c.id, c.off, c.end = at, end-8, end
			return
		}
		end += 1 + 8
	}
	c.id, c.off, c.end = at, end-8, end
}

// find returns the offset of the location of an entry, 0 if there is none.
func (r streamRun) find(id StreamID) int {
	if len(r) == 0 {
		return 0
	}
	if id == r.last() { // as when a commit places what it has appended
		return len(r) - 8
	}
	cur := runCursor{run: r}
	if cur.seek(id) && cur.id == id {
		return cur.off
	}
	return 0
}

// streamEntry is an entry of a run that is being changed.
type streamEntry struct {
	id  StreamID
	loc Loc
}

func (r streamRun) appendEntries(list []streamEntry) []streamEntry {
	for cur := (runCursor{run: r}); cur.next(); {
		list = append(list, streamEntry{cur.id, cur.loc()})
	}
	return list
}

// appendRun appends the run of a list of entries.
func appendRun(b []byte, list []streamEntry) []byte {
	if len(list) == 0 {
		return b
	}
	start := len(b)
	b = append(b, make([]byte, runHeaderBytes)...)
	last := list[0].id
	writeID(b[start:], last)
	for i, e := range list {
		if i > 0 {
			b = appendStep(b, last, e.id)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(e.loc))
		last = e.id
	}
	writeID(b[start+16:], last)
	return b
}

// stream is the order of a big stream: pages of entries, found by their first id. Entries are
// added at the end, so pages are filled in full; only a rollback puts one in between.
type stream struct {
	arena *arena
	pages *btree.BTreeG[streamPage]
	n     int
	moved streamPlace // the entry that was moved last
}

// streamPage is the B-tree entry of a page.
type streamPage struct {
	first StreamID
	page  uint32
}

const (
	streamPageHead  = 4 // bytes: entries 2, bytes of the run 2
	streamPageLimit = 1024 - headerBytes
)

func newStream(a *arena) *stream {
	return &stream{arena: a, pages: btree.NewG(16, func(a, b streamPage) bool { return a.first.Less(b.first) })}
}

// streamBlock is the block of a page.
type streamBlock []byte

func (b streamBlock) n() int { return int(binary.LittleEndian.Uint16(b)) }
func (b streamBlock) run() streamRun {
	end := streamPageHead + int(binary.LittleEndian.Uint16(b[2:]))
	return streamRun(b[streamPageHead:end:end])
}

func (b streamBlock) setHead(n, used int) {
	binary.LittleEndian.PutUint16(b, uint16(n))
	binary.LittleEndian.PutUint16(b[2:], uint16(used))
}

// size returns the bytes of the run of all entries, or more than any small stream has.
func (x *stream) size() int {
	p, ok := x.pages.Min()
	switch {
	case x.pages.Len() > 1:
		return smallLimit
	case !ok:
		return 0
	}
	return len(x.block(p).run())
}

func (x *stream) block(p streamPage) streamBlock { return streamBlock(x.arena.block(p.page)) }

// pageOf returns the page that an id belongs to: the last one that begins before it, or the first.
func (x *stream) pageOf(id StreamID) (p streamPage, ok bool) {
	x.pages.DescendLessOrEqual(streamPage{first: id}, func(have streamPage) bool {
		p, ok = have, true
		return false
	})
	if !ok {
		return x.pages.Min()
	}
	return p, ok
}

// newPage adds a page with a run of n entries.
func (x *stream) newPage(n int, run streamRun) {
	p := streamPage{first: run.first(), page: x.arena.newHandle()}
	b := streamBlock(x.arena.alloc(p.page, streamPageHead+len(run)))
	b.setHead(n, len(run))
	copy(b.run(), run)
	x.pages.ReplaceOrInsert(p)
	x.arena.account(streamPageBytes)
	x.n += n
}

func (x *stream) removePage(p streamPage) {
	x.n -= x.block(p).n()
	x.pages.Delete(p)
	x.arena.release(p.page)
	x.arena.freeHandle(p.page)
	x.arena.account(-streamPageBytes)
	if x.moved.page == p.page {
		x.moved.valid = false
	}
}

// append adds an entry after the last one.
func (x *stream) append(id StreamID, loc Loc) {
	var space [runHeaderBytes + 8]byte
	if p, ok := x.pages.Max(); ok {
		b := x.block(p)
		n, run := b.n(), b.run()
		step := appendStep(space[:0], run.last(), id)
		if used := len(run) + len(step) + 8; streamPageHead+used <= streamPageLimit {
			b = streamBlock(x.arena.resize(p.page, streamPageHead+used))
			b.setHead(n+1, used)
			b.run().finish(used-len(step)-8, step, id, loc)
			x.n++
			return
		}
	}
	one := [1]streamEntry{{id, loc}}
	x.newPage(1, appendRun(space[:0], one[:]))
}

// finish writes an entry after used bytes of a run that has room for it.
func (r streamRun) finish(used int, step []byte, id StreamID, loc Loc) {
	used += copy(r[used:], step)
	binary.LittleEndian.PutUint64(r[used:], uint64(loc))
	writeID(r[16:], id)
}

// replacePage puts a list of entries in the place of a page; in two if it has become too long.
func (x *stream) replacePage(p streamPage, list []streamEntry) {
	x.removePage(p)
	run := appendRun(nil, list)
	if streamPageHead+len(run) > streamPageLimit {
		half := len(list) / 2
		x.newPage(half, appendRun(nil, list[:half]))
		list = list[half:]
		run = appendRun(nil, list)
	}
	if len(list) > 0 {
		x.newPage(len(list), run)
	}
}

func (x *stream) last() (id StreamID, ok bool) {
	p, ok := x.pages.Max()
	if !ok {
		return id, false
	}
	return x.block(p).run().last(), true
}

// put sets the location of an entry and returns the one it had.
func (x *stream) put(id StreamID, loc Loc) (old Loc, existed bool) {
	if last, ok := x.last(); !ok || last.Less(id) {
		x.append(id, loc)
		return 0, false
	}
	p, _ := x.pageOf(id)
	run := x.block(p).run()
	if off := run.find(id); off > 0 {
		return run.swapLoc(off, loc), true
	}
	x.replacePage(p, insertEntry(run.appendEntries(nil), streamEntry{id, loc}))
	return 0, false
}

func (r streamRun) swapLoc(off int, loc Loc) (old Loc) {
	old = Loc(binary.LittleEndian.Uint64(r[off:]))
	binary.LittleEndian.PutUint64(r[off:], uint64(loc))
	return old
}

// insertEntry inserts an entry at its place.
func insertEntry(list []streamEntry, e streamEntry) []streamEntry {
	list = append(list, e)
	for i := len(list) - 1; i > 0 && list[i].id.Less(list[i-1].id); i-- {
		list[i], list[i-1] = list[i-1], list[i]
	}
	return list
}

// withoutEntry removes an entry that is there, and returns its location.
func withoutEntry(list []streamEntry, id StreamID) ([]streamEntry, Loc) {
	for i, e := range list {
		if e.id == id {
			return append(list[:i], list[i+1:]...), e.loc
		}
	}
	return list, 0
}

// delete removes an entry and returns its location.
func (x *stream) delete(id StreamID) (old Loc, existed bool) {
	p, ok := x.pageOf(id)
	if !ok {
		return 0, false
	}
	run := x.block(p).run()
	if run.find(id) == 0 {
		return 0, false
	}
	list, old := withoutEntry(run.appendEntries(nil), id)
	x.replacePage(p, list)
	return old, true
}

func (x *stream) each(fn func(elem []byte, loc Loc) bool) {
	x.pages.Ascend(func(p streamPage) bool { return x.block(p).run().each(fn) })
}

// each calls fn for the locations; it reports false if fn did.
func (r streamRun) each(fn func(elem []byte, loc Loc) bool) bool {
	for cur := (runCursor{run: r}); cur.next(); {
		if !fn(nil, cur.loc()) {
			return false
		}
	}
	return true
}
