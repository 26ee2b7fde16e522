package keydir

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/stavedb/stave/internal/number"
)

// Small hashes and sets have their elements in the order in which they were added, and sets of integers by value, as
// the listpacks and intsets of Redis have them. A small collection has its entries in that order. A big one has them by
// hash, and its order beside them while it has few elements; once it has more, the order is gone, and with it the
// memory that it took, until the collection becomes small again.

const (
	orderedLimit = 512      // most elements of a big collection that has an order
	orderedBytes = 40 << 10 // most bytes of their entries: those of 512 names of 64 bytes, and a little
)

// insertionOrder is the order of the elements of a big collection. Its memory is in the arena's account.
type insertionOrder struct {
	kept     bool
	integers bool     // all elements are integers of a set, and ordered by value: upper is empty
	others   int32    // elements of a set that are no integers
	upper    []uint32 // of each element the upper half of its hash; of equal ones, the k-th is the k-th entry by hash
}

// hasOrder reports whether collections of a type have their elements in the order in which they were added.
func (t Type) hasOrder() bool { return t == Hash || t == Set }

// orderedElems is room for the elements of a big collection whose order is kept. It is valid until the next change of
// the collection.
type orderedElems struct {
	byHash [orderedLimit]orderedElem
	places [orderedLimit]uint16 // in byHash, of the elements in order
}

type orderedElem struct {
	entry []byte // name, location
	name  uint16 // its length
	taken bool   // its place has been found
	upper uint32 // half of its hash
}

// at returns the i-th element in order.
func (o *orderedElems) at(i int) (name []byte, loc Loc) {
	e := &o.byHash[o.places[i]]
	return e.entry[:e.name:e.name], Loc(binary.LittleEndian.Uint64(e.entry[e.name:]))
}

// inOrder fills o with the elements of a big collection whose order is kept.
func (g *big) inOrder(o *orderedElems) {
	var first [257]uint16 // element whose hash has that highest byte, or a greater one
	n, next := 0, 0
	cur := g.members.cursor(position{})
	for e, ok := cur.next(); ok; e, ok = cur.next() {
		upper := uint32(cur.entries.key(e) >> 32)
		for ; next <= int(upper>>24); next++ {
			first[next] = uint16(n)
		}
		o.byHash[n] = orderedElem{entry: cur.entries.data[e.name:e.end], name: uint16(e.tail - e.name), upper: upper}
		n++
	}
	if g.order.integers {
		o.byValue(n)
		return
	}
	for k, upper := range g.order.upper {
		i := first[upper>>24]
		for o.byHash[i].upper != upper || o.byHash[i].taken {
			i++
		}
		o.byHash[i].taken = true
		o.places[k] = i
	}
}

// byValue puts n integers in order.
func (o *orderedElems) byValue(n int) {
	var values [orderedLimit]int64
	for i := range n {
		e := &o.byHash[i]
		values[i], _ = number.ParseInt(e.entry[:e.name])
		o.places[i] = uint16(i)
	}
	slices.SortFunc(o.places[:n], func(a, b uint16) int { return cmp.Compare(values[a], values[b]) })
}

// keepOrder gives an element that is about to be inserted its place, by value or at the end. It returns the order that
// ends, if one does, because the collection grows beyond the limits.
func (g *big) keepOrder(hash uint64, name string) (lost *insertionOrder) {
	o := &g.order
	if !o.kept {
		return nil
	}
	if g.outgrowsOrder(name) {
		return g.endOrder()
	}
	if g.typ == Set && (o.integers || o.others == 0 && g.ascends()) {
		if _, ok := number.ParseInt(name); ok {
			g.setOrder(insertionOrder{kept: true, integers: true})
			return nil
		}
	}
	g.listOrder()
	g.insertOrder(len(o.upper), hash, name)
	return nil
}

// insertOrder gives an element that is about to be inserted a place in a list of them.
func (g *big) insertOrder(index int, hash uint64, name string) {
	if g.typ == Set {
		if _, ok := number.ParseInt(name); !ok {
			g.order.others++
		}
	}
	g.setUpper(slices.Insert(g.order.upper, index, uint32(hash>>32)))
}

// outgrowsOrder reports whether a collection with one more element is too large for an order.
func (g *big) outgrowsOrder(name string) bool {
	return g.members.n == orderedLimit || g.members.size+plain.entrySize(len(name)) > orderedBytes
}

func (g *big) endOrder() *insertionOrder {
	lost := g.order
	g.setOrder(insertionOrder{})
	return &lost
}

// ascends reports whether the elements, all of them integers, are in order of their values.
func (g *big) ascends() bool {
	var room orderedElems
	g.inOrder(&room)
	last := int64(math.MinInt64)
	for i := range g.members.n {
		name, _ := room.at(i)
		value, _ := number.ParseInt(name)
		if value < last {
			return false
		}
		last = value
	}
	return true
}

// listOrder lists elements that are ordered by value.
func (g *big) listOrder() {
	o := &g.order
	if !o.integers {
		return
	}
	var sorted orderedElems
	g.inOrder(&sorted)
	upper := make([]uint32, 0, g.members.n+1)
	for _, place := range sorted.places[:g.members.n] {
		upper = append(upper, sorted.byHash[place].upper)
	}
	o.integers = false
	g.setUpper(upper)
}

// setOrder replaces the order and accounts for its memory.
func (g *big) setOrder(o insertionOrder) {
	g.setUpper(o.upper)
	g.order = o
}

func (g *big) setUpper(upper []uint32) {
	g.arena.account((cap(upper) - cap(g.order.upper)) * int(unsafe.Sizeof(upper[0])))
	g.order.upper = upper
}

// leaveOrder takes an element that is about to be removed out of the order, and returns where it was.
func (g *big) leaveOrder(hash uint64, name string) (index int) {
	o := &g.order
	switch {
	case !o.kept:
		return placeByHash
	case o.integers:
		return placeByValue
	}
	if g.typ == Set {
		if _, ok := number.ParseInt(name); !ok {
			o.others--
		}
	}
	i := slices.Index(o.upper, uint32(hash>>32))
	o.upper = slices.Delete(o.upper, i, i+1)
	return i
}

// find is seek for entries that are not sorted: of one that is not there it returns the end.
func (p *packed) find(key uint64, name string) (off, i int, found bool) {
	tag, tail, data := p.tags.tag(key), p.layout.tail(), p.data
	for ; off < len(data); i++ {
		if data[off] == tag {
			if e := p.entryAt(off); string(p.nameOf(e)) == name {
				return off, i, true
			}
		}
		off = skipEntry(data, off, tail)
	}
	return off, i, false
}

// place returns the offset at which an integer belongs among the members of a small set, and whether these are integers
// in ascending order.
func (p *packed) place(value int64) (place int, ascend bool) {
	place = len(p.data)
	last := int64(math.MinInt64)
	for off := 0; off < len(p.data); {
		e := p.entryAt(off)
		have, ok := number.ParseInt(p.nameOf(e))
		if !ok || have < last {
			return 0, false
		}
		if have > value && place == len(p.data) {
			place = off
		}
		off, last = e.end, have
	}
	return place, true
}

// smallEntries is room for the entries of a small collection.
type smallEntries [smallLimit / 10]entry

// byHash returns the entries of a small collection in ascending order of hash, then name.
func (p *packed) byHash(room *smallEntries) []entry {
	list := room[:0]
	for off := 0; off < len(p.data); {
		e := p.entryAt(off)
		list = append(list, e)
		off = e.end
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(p.key(a), p.key(b)), cmp.Compare(asString(p.nameOf(a)), asString(p.nameOf(b))))
	})
	return list
}
