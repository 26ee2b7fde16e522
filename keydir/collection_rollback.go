package keydir

import "slices"

// Place is what rolling back a change needs to know of the order of a hash or set. It is good when all changes since
// have been rolled back, last first.
type Place struct {
	index int             // of an element that was deleted: where it was, or one of the constants below
	lost  *insertionOrder // the order that a new element ended; nil: it has ended none
}

const (
	placeByValue = -1 // among integers
	placeByHash  = -2 // among elements without an order
)

// RollbackPut deletes an element that PutNoted has added.
func (c Collection) RollbackPut(elem string, place Place) {
	var pos elemPos
	c.seek(elem, &pos)
	if place.lost == nil {
		c.remove(elem, &pos)
		return
	}
	g := pos.big
	g.members.remove(pos.pos)
	g.setOrder(*place.lost)
	c.set.demote(c.id, g)
}

// RollbackDelete adds an element that DeleteNoted has deleted, where it was.
func (c Collection) RollbackDelete(elem string, loc Loc, place Place) {
	if place.index == placeByValue {
		c.Put(elem, loc)
		return
	}
	var pos elemPos
	c.seek(elem, &pos)
	if pos.big == nil {
		pos.pos.off = pos.entries.offsetOf(place.index, pos.hash)
	}
	if !c.addSmall(elem, &pos, loc, 0) {
		pos.big.keepOrderAt(place.index, pos.hash, elem)
		pos.big.insert(pos.pos, pos.hash, elem, loc, 0)
	}
}

// offsetOf returns the offset of a place in a small hash or set.
func (p *packed) offsetOf(index int, hash uint64) (off int) {
	if index != placeByHash {
		return p.at(index)
	}
	for off < len(p.data) {
		e := p.entryAt(off)
		if p.key(e) > hash {
			break
		}
		off = e.end
	}
	return off
}

// keepOrderAt is keepOrder at a place.
func (g *big) keepOrderAt(index int, hash uint64, name string) {
	o := &g.order
	switch {
	case !o.kept:
		return
	case g.outgrowsOrder(name):
		g.endOrder()
		return
	}
	g.listOrder()
	if index == placeByHash {
		if index = slices.IndexFunc(o.upper, func(u uint32) bool { return u > uint32(hash>>32) }); index < 0 {
			index = len(o.upper)
		}
	}
	g.insertOrder(index, hash, name)
}
