package keydir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/stavedb/stave/internal/number"
)

func (d *Directory) check() error {
	var counts [StreamGroups + 1]int // slots by type
	bytes := 0
	pages := map[uintptr]bool{} // those of slabs that tables have
	for s := range d.stripes {
		st := d.stripes[s].Load()
		if st == nil {
			continue
		}
		if err := st.checkPublished(); err != nil {
			return fmt.Errorf("stripe %d: %w", s, err)
		}
		for i := 0; i < len(st.tables); _, i = st.span(i) {
			t := st.tables[i]
			first, end := st.span(i)
			for k := first; k < end; k++ {
				if st.tables[k] != t {
					return fmt.Errorf("stripe %d: table %d is not at %d", s, i, k)
				}
			}
			if err := t.check(uint64(s)<<56|uint64(first)<<(56-st.depth), &counts); err != nil {
				return fmt.Errorf("stripe %d table %d: %w", s, i, err)
			}
			bytes += t.slots * slotBytes
			for _, page := range t.pages {
				if address := addressOf(page); len(page) == pageWords {
					if pages[address] { // K9
						return fmt.Errorf("stripe %d table %d: a page is in two tables", s, i)
					}
					pages[address] = true
				}
			}
		}
		if a := st.collections.arena; a != nil {
			if err := a.check(); err != nil {
				return fmt.Errorf("stripe %d arena: %w", s, err)
			}
			bytes += a.held
		}
		for i, g := range st.collections.bigs {
			if g == nil {
				continue
			}
			if err := g.check(); err != nil {
				return fmt.Errorf("stripe %d big collection %d: %w", s, i, err)
			}
			bytes += g.arena.held
		}
	}
	if err := d.pages.check(pages); err != nil {
		return err
	}
	bytes += d.pages.free * pageBytes
	deadlines, expiring, groups := counts[Deadline], counts[FieldDeadlines], counts[StreamGroups]
	keys := -deadlines - expiring - groups
	for _, n := range counts {
		keys += n
	}
	if keys != d.Len() || deadlines != d.LenDeadlines() || expiring+groups != d.LenFieldDeadlines() {
		return fmt.Errorf("%d keys, %d deadlines, and deadlines in %d hashes counted as %d, %d and %d",
			keys, deadlines, expiring, d.Len(), d.LenDeadlines(), d.LenFieldDeadlines())
	}
	if int64(bytes) != d.Bytes() {
		return fmt.Errorf("%d bytes counted as %d", bytes, d.Bytes())
	}
	return nil
}

func (p *pagePool) check(taken map[uintptr]bool) error {
	pages, free := 0, 0
	for i, x := range p.all {
		if i > 0 && addressOf(p.all[i-1].mem) >= addressOf(x.mem) {
			return fmt.Errorf("slab %d is out of order", i)
		}
		if i < p.first && x.unused != 0 {
			return fmt.Errorf("slab %d has room, the first is said to be %d", i, p.first)
		}
		for at := range x.pages() {
			page := x.mem[at*pageWords:]
			if unused := x.unused>>at&1 == 1; unused == taken[addressOf(page)] { // K9
				return fmt.Errorf("slab %d page %d: unused %v, in a table %v", i, at, unused, !unused)
			}
		}
		pages += x.pages()
		free += x.free()
	}
	if pages != p.pages || free != p.free || pages-free != len(taken) {
		return fmt.Errorf("%d pages, %d free and %d in tables, counted as %d and %d", pages, free, len(taken), p.pages, p.free)
	}
	return nil
}

// checkPublished compares what readers without a lock see with what there is.
func (st *stripe) checkPublished() error {
	view := st.published.Load()
	if st.version.Load()&1 != 0 {
		return fmt.Errorf("version %d between changes", st.version.Load())
	}
	if view.depth != st.depth || len(view.arrays) != len(st.tables) {
		return fmt.Errorf("depth %d seen as %d", st.depth, view.depth)
	}
	for i, t := range st.tables {
		a := view.arrays[i].Load()
		if t.resized || a.homes != t.homes || a.slots != t.slots || a.prefixBits != t.prefixBits || len(a.pages) != len(t.pages) {
			return fmt.Errorf("table %d is not published", i)
		}
		for p := range t.pages {
			if &a.pages[p][0] != &t.pages[p][0] {
				return fmt.Errorf("table %d: page %d is not published", i, p)
			}
		}
	}
	return nil
}

func (t *table) check(prefix uint64, counts *[StreamGroups + 1]int) error {
	next, n, slots := 0, 0, 0
	last := uint64(0)
	for p, page := range t.pages {
		if p < len(t.pages)-1 && len(page) != pageWords {
			return fmt.Errorf("page %d of %d is short", p, len(t.pages))
		}
		slots += len(page) / slotWords
	}
	if slots != t.slots {
		return fmt.Errorf("%d slots counted as %d", slots, t.slots)
	}
	for pos := range t.slots {
		word, loc := t.at(pos)
		if word == 0 {
			if loc != 0 {
				return fmt.Errorf("empty slot %d has a location", pos)
			}
			continue
		}
		if shift := 64 - t.prefixBits; word>>shift != prefix>>shift {
			return fmt.Errorf("slot %d: hash %x in a table for %x", pos, word, prefix)
		}
		if word>>3 < last {
			return fmt.Errorf("slot %d: out of order", pos)
		}
		last = word >> 3
		if want := max(next, t.home(word)); pos != want { // K1
			return fmt.Errorf("slot at %d should be at %d", pos, want)
		}
		next = pos + 1
		n++
		counts[unpack(word, loc).Type]++
	}
	if n != t.n {
		return fmt.Errorf("%d entries counted as %d", n, t.n)
	}
	return nil
}

func (a *arena) check() error {
	free, total := 0, 0
	blocks := 0
	for n := range a.chunks.n {
		c := a.chunks.at(n)
		if !c.private {
			total += len(c.mem)
		}
		live := 0
		for off := 0; off < int(c.top); {
			b := c.mem[off:]
			size := int(binary.LittleEndian.Uint16(b[4:])) * wordBytes
			if size == 0 {
				return fmt.Errorf("chunk %d: block of no size at %d", n, off)
			}
			address := uint32(n)<<offsetBits | uint32(off/wordBytes)
			if h := handleOf(b); h == 0 {
				free += size
			} else if live += size; a.address(h) != address { // K3
				return fmt.Errorf("block %d is at %x, not at %x", h, address, a.address(h))
			} else {
				blocks++
			}
			if off += size; off > int(c.top) {
				return fmt.Errorf("chunk %d: block beyond the top", n)
			}
		}
		if live != int(c.live) { // K4
			return fmt.Errorf("chunk %d: %d live bytes counted as %d", n, live, c.live)
		}
	}
	if free != a.free || total != a.total {
		return fmt.Errorf("%d free of %d counted as %d of %d", free, total, a.free, a.total)
	}
	listed := 0
	for i, address := range a.bins { // K5
		if (address != noAddress) != (a.filled>>i&1 == 1) {
			return fmt.Errorf("bin %d is not as filled says", i)
		}
		prev := noAddress
		for address != noAddress {
			b := a.blockAt(address)
			if handleOf(b) != 0 || bin(len(b)/wordBytes) != i {
				return fmt.Errorf("block of %d bytes in bin %d", len(b), i)
			}
			next, back := links(b)
			if back != prev {
				return fmt.Errorf("bin %d: broken links", i)
			}
			listed += len(b)
			prev, address = address, next
		}
	}
	if free-listed > a.total/16 || listed > free {
		return fmt.Errorf("%d of %d free bytes listed", listed, free)
	}
	return nil
}

func (g *big) check() error {
	if err := g.arena.check(); err != nil {
		return err
	}
	if g.typ.Indexed() {
		return g.list.check()
	}
	if g.typ == Stream {
		return g.stream.check()
	}
	if err := g.members.check(); err != nil {
		return fmt.Errorf("members: %w", err)
	}
	if err := g.checkOrder(); err != nil {
		return err
	}
	if g.scores == nil {
		return nil
	}
	if g.scores.n != g.members.n {
		return fmt.Errorf("%d scores of %d members", g.scores.n, g.members.n)
	}
	return g.scores.check()
}

// checkOrder checks that the order has each element once.
func (g *big) checkOrder() error {
	o := &g.order
	var upper []uint32
	integers, others := true, int32(0)
	for cur := g.members.cursor(position{}); ; {
		e, ok := cur.next()
		if !ok {
			break
		}
		upper = append(upper, uint32(cur.entries.key(e)>>32))
		if _, ok = number.ParseInt(cur.entries.nameOf(e)); !ok {
			integers = false
			others++
		}
	}
	have := slices.Sorted(slices.Values(o.upper))
	if !o.kept || g.typ != Set {
		others = 0
	}
	switch {
	case o.others != others:
		return fmt.Errorf("%d are no integers, counted %d", others, o.others)
	case !o.kept:
		if o.upper != nil {
			return fmt.Errorf("memory of an order that is not kept")
		}
	case g.members.n > orderedLimit || g.members.size > orderedBytes:
		return fmt.Errorf("order of %d elements in %d bytes", g.members.n, g.members.size)
	case o.integers:
		if !integers || g.typ != Set || len(have) > 0 {
			return fmt.Errorf("integers %v of a %v, order of %d", integers, g.typ, len(have))
		}
	case !slices.Equal(have, upper):
		return fmt.Errorf("order of %d elements, members are %d", len(have), len(upper))
	}
	return nil
}

func (x *stream) check() (err error) {
	n := 0
	var last StreamID
	x.pages.Ascend(func(p streamPage) bool {
		b, count := x.block(p), 0
		if streamPageHead+len(b.run()) > streamPageLimit || len(b.run()) == 0 || b.run().first() != p.first {
			err = fmt.Errorf("page of %d bytes, first id %v", len(b.run()), p.first)
			return false
		}
		for cur := (runCursor{run: b.run()}); cur.next(); count++ {
			if n+count > 0 && !last.Less(cur.id) || cur.off+8 > len(b.run()) {
				err = fmt.Errorf("entry %v after %v", cur.id, last)
				return false
			}
			last = cur.id
		}
		if count != b.n() || last != b.run().last() {
			err = fmt.Errorf("page of %d entries up to %v, counted %d up to %v", b.n(), b.run().last(), count, last)
		}
		n += count
		return err == nil
	})
	if err == nil && n != x.n {
		err = fmt.Errorf("%d entries counted as %d", n, x.n)
	}
	return err
}

func (o *orderedPages) check() error {
	n, size := 0, 0
	var lastKey uint64
	var lastName string
	if len(o.lowKeys) != len(o.groups) || len(o.sums) != len(o.groups) {
		return fmt.Errorf("%d groups, %d lows, %d sums", len(o.groups), len(o.lowKeys), len(o.sums))
	}
	for gi, g := range o.groups {
		if len(g.refs) == 0 || len(g.refs) > groupLimit {
			return fmt.Errorf("group of %d pages", len(g.refs))
		}
		if o.lowKeys[gi] != g.refs[0].key { // K7
			return fmt.Errorf("low %x of group %x", o.lowKeys[gi], g.refs[0].key)
		}
		groupN := 0
		for _, r := range g.refs {
			entries := o.entries(r.page)
			if entries.n == 0 || entries.n != int(r.n) {
				return fmt.Errorf("page of %d counted as %d", entries.n, r.n)
			}
			if len(entries.data) > pageLimit && entries.n > 1 {
				return fmt.Errorf("page of %d bytes", len(entries.data))
			}
			count := 0
			for off := 0; off < len(entries.data); {
				e := entries.entryAt(off)
				key, name := entries.key(e), string(entries.nameOf(e))
				if off == 0 && (key != r.key || o.abbreviate(name) != r.name) {
					return fmt.Errorf("page key %x, %x is %x of %q", r.key, r.name, key, name)
				}
				if n > 0 && (key < lastKey || key == lastKey && name <= lastName) {
					return fmt.Errorf("entry out of order")
				}
				if o.layout != ranked && entries.data[off] != entries.tags.tag(key) {
					return fmt.Errorf("wrong tag")
				}
				if entries.even > 0 && e.end-off != entries.even { // K9
					return fmt.Errorf("entry of %d bytes in a page of %d each", e.end-off, entries.even)
				}
				lastKey, lastName = key, name
				count++
				n++
				off = e.end
			}
			if count != entries.n {
				return fmt.Errorf("%d entries counted as %d", count, entries.n)
			}
			size += len(entries.data)
			groupN += count
		}
		if groupN != g.n || o.sums.sum(gi+1)-o.sums.sum(gi) != g.n { // K8
			return fmt.Errorf("group of %d counted as %d", groupN, g.n)
		}
	}
	if n != o.n || size != o.size {
		return fmt.Errorf("%d entries of %d bytes counted as %d of %d", n, size, o.n, o.size)
	}
	return nil
}

func (x *list) check() error {
	n := 0
	var head, tail int64 = 0, -1
	byNo := map[int64]int{}
	var err error
	x.pages.Ascend(func(p listPage) bool {
		l := locs(x.arena.block(p.page))
		live := 0
		for slot := range listSlots {
			if l.at(slot) == 0 {
				continue
			}
			index := p.no<<listShift + int64(slot)
			if n == 0 {
				head = index
			}
			tail = index
			live++
			n++
		}
		if byNo[p.no] = live; live == 0 || live != l.n() {
			err = fmt.Errorf("list page of %d counted as %d", live, l.n())
		}
		return err == nil
	})
	if err == nil && x.inserted != nil {
		err = x.inserted.check()
		if x.inserted.n == 0 {
			err = fmt.Errorf("an order of no inserted elements")
		}
		x.eachInserted(ListPlace{Index: math.MinInt64}, func(at ListPlace, loc Loc) bool {
			if at.Sub == 0 || loc == 0 {
				err = fmt.Errorf("inserted at %v: %v", at, loc)
			}
			if n == 0 {
				head, tail = at.Index, at.Index
			}
			head, tail = min(head, at.Index), max(tail, at.Index)
			byNo[at.Index>>listShift]++
			n++
			return true
		})
	}
	if err == nil && (n != x.n || head != x.head || tail != x.tail) {
		err = fmt.Errorf("list of %d in [%d,%d] counted as %d in [%d,%d]", n, head, tail, x.n, x.head, x.tail)
	}
	if k := x.counts.Load(); err == nil && k != nil {
		for i, no := range k.nos {
			if i > 0 && k.nos[i-1] >= no || k.n[i] != byNo[no] || k.sums.sum(i+1)-k.sums.sum(i) != k.n[i] {
				err = fmt.Errorf("page %d of %d counted as %d", no, byNo[no], k.n[i])
			}
			delete(byNo, no)
		}
		if len(byNo) > 0 {
			err = fmt.Errorf("%d pages are not counted", len(byNo))
		}
	}
	return err
}
