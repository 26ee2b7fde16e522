package keydir

import (
	"bytes"
	"cmp"
	"slices"
)

// Score returns the score and the location of a sorted set's element.
func (f Collection) Score(elem string) (score uint64, loc Loc, ok bool) {
	var p place
	f.seek(elem, &p)
	must("Score", p.typ, p.typ.scored())
	if !p.found {
		return 0, 0, false
	}
	return p.run.score(p.e), p.run.loc(p.e), true
}

// PutScored sets the score and the location of a sorted set's element, and returns
// those it had.
func (f Collection) PutScored(elem string, score uint64, loc Loc) (oldScore uint64, old Loc, existed bool) {
	var p place
	f.seek(elem, &p)
	must("PutScored", p.typ, p.typ.scored())
	if !p.found {
		f.add(elem, &p, loc, score)
		return 0, 0, false
	}
	oldScore, old = p.run.score(p.e), p.run.loc(p.e)
	p.run.setScore(p.e, score)
	p.run.setLoc(p.e, loc)
	if p.big != nil && oldScore != score {
		scores := p.big.scores
		at, _ := scores.seek(oldScore, elem)
		scores.remove(at)
		at, _ = scores.seek(score, elem)
		scores.insert(at, score, elem, 0, 0)
	}
	return oldScore, old, true
}

// DeleteScored removes a sorted set's element and returns the score and the location it had.
func (f Collection) DeleteScored(elem string) (oldScore uint64, old Loc, existed bool) {
	var p place
	f.seek(elem, &p)
	must("DeleteScored", p.typ, p.typ.scored())
	return f.remove(elem, &p)
}

// First returns the element with the lowest score, of those the one whose name comes first, of a collection that has any.
func (f Collection) First() (elem []byte, score uint64) {
	if f.fs.big(f.id) != nil {
		f.AscendRank(0, func(e []byte, s uint64) bool {
			elem, score = e, s
			return false
		})
		return elem, score
	}
	s := f.fs.small(f.id)
	must("First", s.typ(), s.typ().scored())
	c := cursor{run: s.run(f.fs.hash)}
	for e, ok := c.next(); ok; e, ok = c.next() {
		have, name := c.run.score(e), c.run.nameOf(e)
		if elem == nil || have < score || have == score && bytes.Compare(name, elem) < 0 {
			elem, score = name, have
		}
	}
	return elem, score
}

// Rank returns the number of elements below (score, elem), be that an element or not.
func (f Collection) Rank(score uint64, elem string) int {
	if g := f.fs.big(f.id); g != nil {
		must("Rank", g.typ, g.typ.scored())
		at, _ := g.scores.seek(score, elem)
		return g.scores.rank(at)
	}
	s := f.fs.small(f.id)
	must("Rank", s.typ(), s.typ().scored())
	n := 0
	c := cursor{run: s.run(f.fs.hash)}
	for e, ok := c.next(); ok; e, ok = c.next() {
		if have := c.run.score(e); have < score || have == score && string(c.run.nameOf(e)) < elem {
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
func (r *run) byScore(all []scoredAt) []scoredAt {
	for off := 0; off < len(r.data); {
		e := r.entryAt(off)
		all = append(all, scoredAt{r.score(e), off})
		off = e.end
	}
	slices.SortFunc(all, func(a, b scoredAt) int {
		if a.score != b.score {
			return cmp.Compare(a.score, b.score)
		}
		return bytes.Compare(r.nameOf(r.entryAt(a.off)), r.nameOf(r.entryAt(b.off)))
	})
	return all
}

// AscendRank calls fn for the elements in order of score, then name, from the one of rank
// from on, until fn returns false. Ranks count from 0.
func (f Collection) AscendRank(from int, fn func(elem []byte, score uint64) bool) {
	from = max(from, 0)
	if g := f.fs.big(f.id); g != nil {
		must("AscendRank", g.typ, g.typ.scored())
		if from >= g.scores.n {
			return
		}
		c := g.scores.cursor(g.scores.at(from))
		for e, ok := c.next(); ok; e, ok = c.next() {
			if !fn(c.run.nameOf(e), c.run.key(e)) {
				return
			}
		}
		return
	}
	s := f.fs.small(f.id)
	must("AscendRank", s.typ(), s.typ().scored())
	var space [maxSmallScored]scoredAt
	r := s.run(f.fs.hash)
	all := r.byScore(space[:0])
	for ; from < len(all); from++ {
		if !fn(r.nameOf(r.entryAt(all[from].off)), all[from].score) {
			return
		}
	}
}

// DescendRank calls fn for the elements in descending order of score, then name, from the one
// of rank from down to rank 0, until fn returns false. Ranks count from 0 in ascending order.
func (f Collection) DescendRank(from int, fn func(elem []byte, score uint64) bool) {
	from = min(from, f.Len()-1)
	if from < 0 {
		return
	}
	if g := f.fs.big(f.id); g != nil {
		must("DescendRank", g.typ, g.typ.scored())
		g.scores.descend(g.scores.at(from), fn)
		return
	}
	s := f.fs.small(f.id)
	must("DescendRank", s.typ(), s.typ().scored())
	var space [maxSmallScored]scoredAt
	r := s.run(f.fs.hash)
	all := r.byScore(space[:0])
	for ; from >= 0; from-- {
		if !fn(r.nameOf(r.entryAt(all[from].off)), all[from].score) {
			return
		}
	}
}

// maxRanked is the most entries of a ranked page: one nameless entry and the
// shortest others.
const maxRanked = pageLimit/9 + 1

// descend calls fn for the ranked entries from a spot down. Entries can only be read
// upwards, so each page is read once for the offsets.
func (x *index) descend(at spot, fn func(elem []byte, score uint64) bool) {
	var space [maxRanked]uint16
	group, page, last := at.group, at.page, at.off
	for {
		r := x.run(x.groups[group].refs[page].page)
		offsets := space[:0]
		for off := 0; off < len(r.data) && (last < 0 || off <= last); off = r.entryAt(off).end {
			offsets = append(offsets, uint16(off))
		}
		for i := len(offsets) - 1; i >= 0; i-- {
			e := r.entryAt(int(offsets[i]))
			if !fn(r.nameOf(e), r.key(e)) {
				return
			}
		}
		last = -1
		if page--; page < 0 {
			if group--; group < 0 {
				return
			}
			page = len(x.groups[group].refs) - 1
		}
	}
}
