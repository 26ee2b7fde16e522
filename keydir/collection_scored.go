package keydir

import (
	"bytes"
	"cmp"
	"slices"
)

// Score returns the score and the location of a sorted set's element.
func (c Collection) Score(elem string) (score uint64, loc Loc, ok bool) {
	var pos elemPos
	c.seek(elem, &pos)
	mustBe("Score", pos.typ, pos.typ.scored())
	if !pos.found {
		return 0, 0, false
	}
	return pos.entries.score(pos.entry), pos.entries.loc(pos.entry), true
}

// PutScored sets the score and the location of a sorted set's element, and returns the old
// ones.
func (c Collection) PutScored(elem string, score uint64, loc Loc) (oldScore uint64, old Loc, existed bool) {
	var pos elemPos
	c.seek(elem, &pos)
	mustBe("PutScored", pos.typ, pos.typ.scored())
	if !pos.found {
		c.add(elem, &pos, loc, score)
		return 0, 0, false
	}
	oldScore, old = pos.entries.score(pos.entry), pos.entries.loc(pos.entry)
	pos.entries.setScore(pos.entry, score)
	pos.entries.setLoc(pos.entry, loc)
	if pos.big != nil && oldScore != score {
		scores := pos.big.scores
		at, _ := scores.seek(oldScore, elem)
		scores.remove(at)
		at, _ = scores.seek(score, elem)
		scores.insert(at, score, elem, 0, 0)
	}
	return oldScore, old, true
}

// DeleteScored removes a sorted set's element and returns its score and location.
func (c Collection) DeleteScored(elem string) (oldScore uint64, old Loc, existed bool) {
	var pos elemPos
	c.seek(elem, &pos)
	mustBe("DeleteScored", pos.typ, pos.typ.scored())
	return c.remove(elem, &pos)
}

// First returns the element with the lowest score; of several, the one with the first name.
// The collection must not be empty.
func (c Collection) First() (elem []byte, score uint64) {
	if c.set.big(c.id) != nil {
		c.AscendRank(0, func(e []byte, s uint64) bool {
			elem, score = e, s
			return false
		})
		return elem, score
	}
	s := c.set.small(c.id)
	mustBe("First", s.typ(), s.typ().scored())
	cur := cursor{entries: s.entries(c.set.hash)}
	for e, ok := cur.next(); ok; e, ok = cur.next() {
		have, name := cur.entries.score(e), cur.entries.nameOf(e)
		if elem == nil || have < score || have == score && bytes.Compare(name, elem) < 0 {
			elem, score = name, have
		}
	}
	return elem, score
}

// Rank returns the number of elements below (score, elem), whether that is an element or not.
func (c Collection) Rank(score uint64, elem string) int {
	if g := c.set.big(c.id); g != nil {
		mustBe("Rank", g.typ, g.typ.scored())
		at, _ := g.scores.seek(score, elem)
		return g.scores.rank(at)
	}
	s := c.set.small(c.id)
	mustBe("Rank", s.typ(), s.typ().scored())
	n := 0
	cur := cursor{entries: s.entries(c.set.hash)}
	for e, ok := cur.next(); ok; e, ok = cur.next() {
		if have := cur.entries.score(e); have < score || have == score && string(cur.entries.nameOf(e)) < elem {
			n++
		}
	}
	return n
}

// maxSmallScored is the most entries that a small sorted set can have.
const maxSmallScored = zsetLimit / 18

// scoredAt is an entry of a small sorted set.
type scoredAt struct {
	score uint64
	off   int
}

// byScore appends the entries of a small sorted set in order of score, then name.
func (p *packed) byScore(all []scoredAt) []scoredAt {
	for off := 0; off < len(p.data); {
		e := p.entryAt(off)
		all = append(all, scoredAt{p.score(e), off})
		off = e.end
	}
	slices.SortFunc(all, func(a, b scoredAt) int {
		if a.score != b.score {
			return cmp.Compare(a.score, b.score)
		}
		return bytes.Compare(p.nameOf(p.entryAt(a.off)), p.nameOf(p.entryAt(b.off)))
	})
	return all
}

// AscendRank calls fn for the elements in order of score, then name, from the one of rank
// from on, until fn returns false. Ranks count from 0.
func (c Collection) AscendRank(from int, fn func(elem []byte, score uint64) bool) {
	from = max(from, 0)
	if g := c.set.big(c.id); g != nil {
		mustBe("AscendRank", g.typ, g.typ.scored())
		if from >= g.scores.n {
			return
		}
		cur := g.scores.cursor(g.scores.at(from))
		for e, ok := cur.next(); ok; e, ok = cur.next() {
			if !fn(cur.entries.nameOf(e), cur.entries.key(e)) {
				return
			}
		}
		return
	}
	c.eachRank("AscendRank", from, 1, fn)
}

// eachRank calls fn for the elements of a small collection from the one of a rank on, each time step further.
func (c Collection) eachRank(method string, from, step int, fn func(elem []byte, score uint64) bool) {
	s := c.set.small(c.id)
	mustBe(method, s.typ(), s.typ().scored())
	var space [maxSmallScored]scoredAt
	entries := s.entries(c.set.hash)
	all := entries.byScore(space[:0])
	for ; from >= 0 && from < len(all); from += step {
		if !fn(entries.nameOf(entries.entryAt(all[from].off)), all[from].score) {
			return
		}
	}
}

// DescendRank calls fn for the elements in descending order of score, then name, from the one
// of rank from down to rank 0, until fn returns false. Ranks count from 0 in ascending order.
func (c Collection) DescendRank(from int, fn func(elem []byte, score uint64) bool) {
	from = min(from, c.Len()-1)
	if from < 0 {
		return
	}
	if g := c.set.big(c.id); g != nil {
		mustBe("DescendRank", g.typ, g.typ.scored())
		g.scores.descend(g.scores.at(from), fn)
		return
	}
	c.eachRank("DescendRank", from, -1, fn)
}

// maxRanked is the greatest number of entries of a ranked page: one without a name and the
// shortest others.
const maxRanked = pageLimit/9 + 1

// descend calls fn for the ranked entries from a position down. Entries can only be read
// upwards, so descend first reads the offsets of each page.
func (o *orderedPages) descend(at position, fn func(elem []byte, score uint64) bool) {
	var space [maxRanked]uint16
	group, page, last := at.group, at.page, at.off
	for {
		entries := o.entries(o.groups[group].refs[page].page)
		offsets := space[:0]
		for off := 0; off < len(entries.data) && (last < 0 || off <= last); off = entries.entryAt(off).end {
			offsets = append(offsets, uint16(off))
		}
		for i := len(offsets) - 1; i >= 0; i-- {
			e := entries.entryAt(int(offsets[i]))
			if !fn(entries.nameOf(e), entries.key(e)) {
				return
			}
		}
		last = -1
		if page--; page < 0 {
			if group--; group < 0 {
				return
			}
			page = len(o.groups[group].refs) - 1
		}
	}
}
