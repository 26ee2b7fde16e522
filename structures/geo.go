package structures

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Geo is a sorted set of places: the score of a member is the geohash of its place, 52 bits, so that near places have
// near scores.
type Geo struct {
	Txn SortedSetTxn
	Key string
}

// GeoMember is a member with its place.
type GeoMember struct {
	Member string
	Point  GeoPoint
}

// GeoResult is a member that a search has found.
type GeoResult struct {
	GeoMember
	Distance float64 // from the centre, in metres
	Score    float64
}

// GeoOrder is the order of what a search has found.
type GeoOrder uint8

// The orders. Any is that in which the cells are looked through.
const (
	AnyOrder GeoOrder = iota
	NearestFirst
	FarthestFirst
)

// GeoSearch says what to search for.
type GeoSearch struct {
	Centre GeoPoint
	// Member is whose place is the centre, if FromMember is set.
	Member     string
	FromMember bool
	Shape      GeoShape
	Order      GeoOrder
	// Count bounds how many are found: the nearest, unless another order is asked for. Default: no bound.
	Count int
	// Any lets a search with a Count end as soon as it has found so many, whichever they are.
	Any bool
	// Event is the event of PutSearch. Default: EventGeoSearchStore.
	Event EventKind
}

// ErrGeoMember is returned by a search around a member that does not exist.
const ErrGeoMember Error = "ERR could not decode requested zset member"

func (g Geo) set() SortedSet { return SortedSet(g) }

// Add gives members their places if c, as in SortedSet.Add, allows. O(log n) a
// member.
func (g Geo) Add(members []GeoMember, c Condition) (AddResult, error) {
	scored := make([]Scored, len(members))
	for i, m := range members {
		if !m.Point.Valid() {
			return AddResult{}, ErrGeoPoint(m.Point)
		}
		scored[i] = Scored{Member: m.Member, Score: m.Point.Score()}
	}
	return g.set().Add(scored, c)
}

// ErrGeoPoint is the refusal of a point that is out of bounds.
func ErrGeoPoint(p GeoPoint) Error {
	text := func(f float64) string {
		switch {
		case math.IsInf(f, 1):
			return "inf"
		case math.IsInf(f, -1):
			return "-inf"
		}
		return fmt.Sprintf("%f", f)
	}
	return Error("ERR invalid longitude,latitude pair " + text(p.Longitude) + "," + text(p.Latitude))
}

// Position returns the place of a member, to the precision of its score, and false if it does not exist. O(log n).
func (g Geo) Position(member string) (GeoPoint, bool, error) {
	score, ok, err := g.set().Score(member)
	if err != nil || !ok {
		return GeoPoint{}, false, err
	}
	return geoPoint(score), true, nil
}

// Distance returns how far two members are from each other in metres, and false if one of them does not exist. O(log
// n).
func (g Geo) Distance(a, b string) (float64, bool, error) {
	p, okA, err := g.Position(a)
	if err != nil {
		return 0, false, err
	}
	q, okB, err := g.Position(b)
	if err != nil || !okA || !okB {
		return 0, false, err
	}
	return p.distance(q), true, nil
}

// Search returns the members within a shape. O(log n + m) in the number m of members in the nine cells that cover the
// shape.
func (g Geo) Search(q GeoSearch) ([]GeoResult, error) {
	f, err := g.set().open()
	if err != nil || !f.Valid() {
		return nil, err
	}
	if q.FromMember {
		var ok bool
		if q.Centre, ok, err = g.Position(q.Member); err != nil {
			return nil, err
		}
		if !ok {
			return nil, ErrGeoMember
		}
	}
	if q.Count > 0 && q.Order == AnyOrder && !q.Any {
		q.Order = NearestFirst
	}
	found := q.collect(f, steps(g.Txn, []keydir.Collection{f}))
	if err := g.Txn.Step(0); err != nil {
		return nil, err
	}
	switch q.Order {
	case NearestFirst:
		slices.SortStableFunc(found, func(a, b GeoResult) int { return cmp.Compare(a.Distance, b.Distance) })
	case FarthestFirst:
		slices.SortStableFunc(found, func(a, b GeoResult) int { return cmp.Compare(b.Distance, a.Distance) })
	}
	if q.Count > 0 {
		found = found[:min(q.Count, len(found))]
	}
	return found, nil
}

// collect finds the members of all cells. Around the whole earth, neighbours can be the same cell.
func (q GeoSearch) collect(f keydir.Collection, step func() bool) []GeoResult {
	var found []GeoResult
	full := func() bool { return q.Any && q.Count > 0 && len(found) >= q.Count }
	cells := q.Shape.cells(q.Centre)
	last := 0
	for i, cell := range cells {
		if cell.step == 0 || last > 0 && cell == cells[last] {
			continue
		}
		if full() {
			break
		}
		last = i
		low, high := cell.scores()
		s, err := spanOf(ScoreRange{Min: low, Max: high, MaxOpen: true}, f)
		if err != nil {
			panic("BUG: structures: a cell's score is not a number")
		}
		s.visit(f, func(member []byte, form uint64) bool {
			score := ordered.ToFloat(form)
			point := geoPoint(score)
			if d, within := q.Shape.distanceOf(point, q.Centre); within {
				found = append(found, GeoResult{GeoMember: GeoMember{string(member), point}, Distance: d, Score: score})
			}
			return !full() && step()
		})
	}
	return found
}

// PutSearch makes the key what a search in the sorted set at another key finds, whatever it held before, and returns
// how many members that are; none deletes the key. The scores are theirs, or the distances in units of unit metres if
// that is not 0.
func (g Geo) PutSearch(from string, q GeoSearch, unit float64) (int, error) {
	found, err := Geo{Txn: g.Txn, Key: from}.Search(q)
	if err != nil {
		return 0, err
	}
	each := func(put func(member string, score uint64) error) error {
		for _, r := range found {
			score := r.Score
			if unit != 0 {
				score = r.Distance / unit
			}
			if err := put(r.Member, ordered.Float(score)); err != nil {
				return err
			}
		}
		return nil
	}
	return g.set().replace(each, cmp.Or(q.Event, EventGeoSearchStore))
}
