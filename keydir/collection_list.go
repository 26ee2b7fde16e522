package keydir

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/google/btree"
)

const (
	listShift       = 9
	listSlots       = 1 << listShift // indexes of a list page
	listStep        = 32             // pages grow and shrink by that many
	listHeaderBytes = 6              // bytes: first index 2, indexes 2, elements 2
)

// list is the order of a big list: pages of locations, each for up to 512 indexes, found by
// index. A page holds only the part of its indexes that is in use, and there is no page for
// indexes without elements, so gaps cost nothing. Within a page, an index without an element
// has the location zero. Elements that were inserted between two indexes have an order of their own.
type list struct {
	arena      *arena
	pages      *btree.BTreeG[listPage]
	recent     listPage // the page that was last written to: pushes and pops come to the same one again and again
	head, tail int64
	n          int
	inserted   *orderedPages              // nil: there are none
	counts     atomic.Pointer[listCounts] // nil while nobody has asked for a position of a list that is not regular
}

// listPage is the B-tree entry of a page: the page holds the indexes from no<<listShift on.
type listPage struct {
	no   int64 // index >> listShift
	page uint32
}

func newList(a *arena) *list {
	return &list{arena: a, tail: -1, recent: listPage{no: noPage}, pages: btree.NewG(16, func(a, b listPage) bool { return a.no < b.no })}
}

// noPage is the number of no page: indexes have fewer bits.
const noPage = math.MinInt64

// pageOf returns the page of an index, if there is one.
func (x *list) pageOf(index int64) (listPage, bool) {
	if no := index >> listShift; no != x.recent.no {
		return x.pages.Get(listPage{no: no})
	}
	return x.recent, true
}

// locs is the block of a list page.
type locs []byte

func (l locs) first() int    { return int(binary.LittleEndian.Uint16(l)) }
func (l locs) span() int     { return int(binary.LittleEndian.Uint16(l[2:])) }
func (l locs) n() int        { return int(binary.LittleEndian.Uint16(l[4:])) }
func (l locs) slots() []byte { return l[listHeaderBytes : listHeaderBytes+8*l.span()] }

func (l locs) setHead(first, span, n int) {
	binary.LittleEndian.PutUint16(l, uint16(first))
	binary.LittleEndian.PutUint16(l[2:], uint16(span))
	binary.LittleEndian.PutUint16(l[4:], uint16(n))
}

// at returns the location at a slot of the page.
func (l locs) at(slot int) Loc {
	if i := slot - l.first(); i >= 0 && i < l.span() {
		return Loc(binary.LittleEndian.Uint64(l[listHeaderBytes+8*i:]))
	}
	return 0
}

func (l locs) set(slot int, loc Loc) {
	binary.LittleEndian.PutUint64(l[listHeaderBytes+8*(slot-l.first()):], uint64(loc))
}

// span is how many indexes there are from the first element to the last; of all that there are, one less.
func (x *list) span() uint64 {
	if n := uint64(x.tail-x.head) + 1; n > 0 || x.n == 0 {
		return n
	}
	return math.MaxUint64
}

// at returns the location at an index, zero if there is no element.
func (x *list) at(index int64) Loc {
	p, ok := x.pageOf(index)
	if !ok {
		return 0
	}
	return locs(x.arena.block(p.page)).at(int(index & (listSlots - 1)))
}

// locsFrom sets found to the locations at the indexes from index on, zero where there is no element.
func (x *list) locsFrom(index int64, found []Loc) {
	for len(found) > 0 {
		slot := int(index & (listSlots - 1))
		n := min(len(found), listSlots-slot)
		clear(found[:n])
		if p, ok := x.pageOf(index); ok {
			l := locs(x.arena.block(p.page))
			for i := max(l.first()-slot, 0); i < min(l.first()+l.span()-slot, n); i++ {
				found[i] = l.at(slot + i)
			}
		}
		found, index = found[n:], index+int64(n)
	}
}

// put sets the location at an index and returns the old one, zero if there was no element.
func (x *list) put(index int64, loc Loc) (old Loc) {
	slot := int(index & (listSlots - 1))
	l := x.widen(x.pageFor(index), slot)
	old = l.at(slot)
	l.set(slot, loc)
	if old == 0 {
		l.setHead(l.first(), l.span(), l.n()+1)
		if x.n == 0 {
			x.head, x.tail = index, index
		}
		x.head, x.tail = min(x.head, index), max(x.tail, index)
		x.count(index, 1)
	}
	return old
}

// pageFor returns the page of an index; it makes a missing one.
func (x *list) pageFor(index int64) uint32 {
	p, ok := x.pageOf(index)
	if !ok {
		p = listPage{no: index >> listShift, page: x.arena.newHandle()}
		l := locs(x.arena.alloc(p.page, listHeaderBytes))
		l.setHead(int(index&(listSlots-1))&^(listStep-1), 0, 0)
		x.pages.ReplaceOrInsert(p)
		x.arena.account(listPageBytes)
	}
	x.recent = p
	return p.page
}

// widen extends a page until it has the slot.
func (x *list) widen(page uint32, slot int) locs {
	l := locs(x.arena.block(page))
	first, end := l.first(), l.first()+l.span()
	if slot >= first && slot < end {
		return l
	}
	newFirst := min(first, slot&^(listStep-1))
	newEnd := max(end, slot&^(listStep-1)+listStep)
	l = locs(x.arena.resize(page, listHeaderBytes+8*(newEnd-newFirst)))
	b := l[listHeaderBytes:]
	copy(b[8*(first-newFirst):], b[:8*(end-first)])
	clear(b[:8*(first-newFirst)])
	clear(b[8*(end-newFirst) : 8*(newEnd-newFirst)])
	l.setHead(newFirst, newEnd-newFirst, l.n())
	return l
}

// delete removes the element at an index and returns its location, zero if there was none. If it
// was the first or the last element, the bounds move to the next one.
func (x *list) delete(index int64) (old Loc) {
	p, ok := x.pageOf(index)
	if !ok {
		return 0
	}
	slot := int(index & (listSlots - 1))
	l := locs(x.arena.block(p.page))
	if old = l.at(slot); old == 0 {
		return 0
	}
	l.set(slot, 0)
	l.setHead(l.first(), l.span(), l.n()-1)
	x.count(index, -1)
	x.recent = p
	if l.n() == 0 {
		x.dropPage(p)
	} else {
		x.trim(p.page)
	}
	switch {
	case x.n == 0 || x.inserted != nil:
		x.shrink()
	case index == x.head:
		if x.head++; x.at(x.head) == 0 { // most lists have no holes
			x.head, _ = x.firstFrom(x.head)
		}
	case index == x.tail:
		if x.tail--; x.at(x.tail) == 0 {
			x.tail, _ = x.lastTo(x.tail)
		}
	}
	return old
}

// dropPage removes a page.
func (x *list) dropPage(p listPage) {
	x.recent.no = noPage
	x.pages.Delete(p)
	x.arena.release(p.page)
	x.arena.freeHandle(p.page)
	x.arena.account(-listPageBytes)
}

// trim releases steps without elements at the ends of a page that has some.
func (x *list) trim(page uint32) {
	l := locs(x.arena.block(page))
	b := l.slots()
	start, end := 0, len(b)
	for start < end && isZero(b[start:start+8*listStep]) {
		start += 8 * listStep
	}
	for end > start && isZero(b[end-8*listStep:end]) {
		end -= 8 * listStep
	}
	if end-start == len(b) {
		return
	}
	copy(b, b[start:end])
	l.setHead(l.first()+start/8, (end-start)/8, l.n())
	x.arena.resize(page, listHeaderBytes+end-start)
}

// isZero reports whether all words of b are zero.
func isZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}

// firstFrom returns the first index from index on that has an element of a page, if there is one.
func (x *list) firstFrom(index int64) (found int64, ok bool) {
	x.pages.AscendGreaterOrEqual(listPage{no: index >> listShift}, func(p listPage) bool {
		l := locs(x.arena.block(p.page))
		for slot := l.first(); slot < l.first()+l.span(); slot++ {
			found = p.no<<listShift + int64(slot)
			if ok = found >= index && l.at(slot) != 0; ok {
				return false
			}
		}
		return true
	})
	return found, ok
}

// lastTo returns the last index up to index that has an element of a page, if there is one.
func (x *list) lastTo(index int64) (found int64, ok bool) {
	x.pages.DescendLessOrEqual(listPage{no: index >> listShift}, func(p listPage) bool {
		l := locs(x.arena.block(p.page))
		for slot := l.first() + l.span() - 1; slot >= l.first(); slot-- {
			found = p.no<<listShift + int64(slot)
			if ok = found <= index && l.at(slot) != 0; ok {
				return false
			}
		}
		return true
	})
	return found, ok
}

func (x *list) each(fn func(elem []byte, loc Loc) bool) {
	more := true
	x.pages.Ascend(func(p listPage) bool {
		for b := locs(x.arena.block(p.page)).slots(); len(b) > 0 && more; b = b[8:] {
			if loc := Loc(binary.LittleEndian.Uint64(b)); loc != 0 {
				more = fn(nil, loc)
			}
		}
		return more
	})
	x.eachInserted(ListPlace{Index: math.MinInt64}, func(_ ListPlace, loc Loc) bool {
		more = more && fn(nil, loc)
		return more
	})
}

// The body of a small list is empty, or the first index and the locations from there on; the
// first and the last location are never zero.

func (s small) span() int { return max(s.used()-8, 0) / 8 }

// head returns the first index of a small list, zero if it is empty.
func (s small) head() int64 {
	if s.used() == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(s.body()))
}

func (s small) locAt(i int) Loc { return Loc(binary.LittleEndian.Uint64(s.body()[8+8*i:])) }

func (s small) setLocAt(i int, loc Loc) {
	binary.LittleEndian.PutUint64(s.body()[8+8*i:], uint64(loc))
}

func (s small) setListHead(head int64) { binary.LittleEndian.PutUint64(s.body(), uint64(head)) }

// offset returns the number of an index among n locations from head on.
func offset(head, index int64, n int) (int, bool) {
	i := uint64(index - head)
	return int(i), i < uint64(n)
}

// copyList fills an empty small list, in a block with room for it, from a big one.
func (s small) copyList(x *list) {
	if x.n == 0 {
		return
	}
	s.setBody(x.n, 8+8*int(x.span()))
	s.setListHead(x.head)
	for i := range s.span() {
		s.setLocAt(i, x.at(x.head+int64(i)))
	}
}

// listOf returns the list, as a small one or as a big one. It panics for other types.
func (c Collection) listOf(method string) (small, *list) {
	if g := c.set.big(c.id); g != nil {
		mustBe(method, g.typ, g.typ.Indexed())
		return nil, g.list
	}
	s := c.set.small(c.id)
	mustBe(method, s.typ(), s.typ().Indexed())
	return s, nil
}

// Bounds returns the indexes of the first and the last element of a list; tail < head if it is empty.
func (c Collection) Bounds() (head, tail int64) {
	s, x := c.listOf("Bounds")
	if x != nil {
		return x.head, x.tail
	}
	head = s.head()
	return head, head + int64(s.span()) - 1
}

// LocAt returns the location of a list's element.
func (c Collection) LocAt(index int64) (Loc, bool) {
	s, x := c.listOf("LocAt")
	if x != nil {
		loc := x.at(index)
		return loc, loc != 0
	}
	if i, ok := offset(s.head(), index, s.span()); ok {
		loc := s.locAt(i)
		return loc, loc != 0
	}
	return 0, false
}

// LocsAt sets list to the locations of the elements from an index on, zero where there is none.
func (c Collection) LocsAt(index int64, list []Loc) {
	s, x := c.listOf("LocsAt")
	if x != nil {
		x.locsFrom(index, list)
		return
	}
	head, span := s.head(), s.span()
	for i := range list {
		list[i] = 0
		if at, ok := offset(head, index+int64(i), span); ok {
			list[i] = s.locAt(at)
		}
	}
}

// PutAt sets the location, which must not be zero, of the element of a list or of a string's
// chunk at any index, and returns its old location.
func (c Collection) PutAt(index int64, loc Loc) (old Loc, existed bool) {
	if loc == 0 {
		panic("BUG: keydir: PutAt of no location")
	}
	s, x := c.listOf("PutAt")
	if x == nil {
		if old, ok := c.putSmall(s, index, loc); ok {
			return old, old != 0
		}
		x = c.set.promote(c.id).list
	}
	old = x.put(index, loc)
	return old, old != 0
}

// putSmall is PutAt in a small list. It reports false if the list would outgrow its limit, by
// elements or by a gap.
func (c Collection) putSmall(s small, index int64, loc Loc) (old Loc, ok bool) {
	head, span := s.head(), s.span()
	if i, ok := offset(head, index, span); ok {
		old = s.locAt(i)
		s.setLocAt(i, loc)
		if old == 0 {
			s.setBody(s.n()+1, s.used())
		}
		return old, true
	}
	at, size := 8+8*span, 0 // offset and size of the gap to make in the body
	switch {
	case span == 0:
		at, size, head = 0, 16, index
	case index < head:
		at, size = 8, gap(head, index)
		head = index
	default:
		size = gap(index, head+int64(span)-1)
	}
	if size < 0 {
		return 0, false
	}
	s, ok = c.set.insertAt(c.id, at, size)
	if !ok {
		return 0, false
	}
	clear(s.body()[at : at+size])
	s.setListHead(head)
	i, _ := offset(head, index, s.span())
	s.setLocAt(i, loc)
	s.setBody(s.n()+1, s.used())
	return 0, true
}

// gap returns the bytes of the locations from below to above, which is greater, or -1 if
// they exceed every small list.
func gap(above, below int64) int {
	if d := uint64(above - below); d <= smallLimit/8 {
		return int(d) * 8
	}
	return -1
}

// DeleteAt removes a list's element and returns its location. The others keep their index.
func (c Collection) DeleteAt(index int64) (old Loc, existed bool) {
	s, x := c.listOf("DeleteAt")
	if x != nil {
		if old = x.delete(index); old == 0 {
			return 0, false
		}
		c.set.demote(c.id, c.set.big(c.id))
		return old, true
	}
	i, ok := offset(s.head(), index, s.span())
	if !ok || s.locAt(i) == 0 {
		return 0, false
	}
	old = s.locAt(i)
	s.setLocAt(i, 0)
	s.setBody(s.n()-1, s.used())
	c.trimSmall(s)
	return old, true
}

// trimSmall removes the holes at the ends of a small list.
func (c Collection) trimSmall(s small) {
	if s.n() == 0 {
		c.set.removeAt(c.id, 0, s.used())
		return
	}
	holes := 0
	for s.locAt(s.span()-1-holes) == 0 {
		holes++
	}
	s.setBody(s.n(), s.used()-8*holes)
	holes = 0
	for s.locAt(holes) == 0 {
		holes++
	}
	s.setListHead(s.head() + int64(holes))
	c.set.removeAt(c.id, 8, 8*holes)
}
