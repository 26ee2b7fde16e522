package db

import "github.com/stavedb/stave/structures"

// Geo is a handle on a key that holds members with places on earth. It is a sorted set, and can be used as one: the
// score of a member is the geohash of its place. Its methods return ErrWrongType if the key holds anything else.
type Geo struct{ handle }

// Geo returns a handle on the places at key. It reads nothing.
func (s *Store) Geo(key string) Geo { return Geo{s.handle(key)} }

// Geo returns a handle on the places at key, inside the transaction. It reads nothing.
func (t *Tx) Geo(key string) Geo { return Geo{t.handle(key)} }

// GeoPoint is a place on earth: longitude and latitude in degrees.
//
//	Longitude, Latitude float64
type GeoPoint = structures.GeoPoint

// GeoMember is a member with its place.
//
//	Member string
//	Point GeoPoint
type GeoMember = structures.GeoMember

// GeoResult is a member that a search has found, with its distance from the centre in metres.
//
//	GeoMember
//	Distance float64
//	Score float64
type GeoResult = structures.GeoResult

// GeoSearch says what to search for.
//
//	Centre GeoPoint
//	Member string
//	FromMember bool
//	Shape GeoShape
//	Order GeoOrder
//	Count int
//	Any bool
//	Event EventKind
type GeoSearch = structures.GeoSearch

// GeoShape is what a search covers: a circle or a box, in metres.
//
//	Radius float64
//	Width, Height float64
//	Box bool
type GeoShape = structures.GeoShape

// The orders of GeoSearch.
const (
	AnyOrder      = structures.AnyOrder
	NearestFirst  = structures.NearestFirst
	FarthestFirst = structures.FarthestFirst
)

// Add adds members, or gives those that exist another place, and returns how many are new. It fails with a
// structures.Error if a point is out of bounds (see GeoPoint.Valid). A place is kept to about half a metre. O(log n) a
// member.
func (g Geo) Add(members ...GeoMember) (int, error) {
	res, err := g.AddWith(members)
	return res.Added, err
}

// AddWith is Add under the conditions of SortedSet.AddWith. O(log n) a member.
func (g Geo) AddWith(members []GeoMember, options ...WriteOption) (AddResult, error) {
	condition, err := conditionOf(options)
	if err != nil {
		return AddResult{}, err
	}
	return call(g.handle, writing, func(t *Tx) (AddResult, error) { return g.on(t).Add(members, condition) })
}

// Position returns the place of a member, or ErrNotFound. O(log n).
func (g Geo) Position(member string) (GeoPoint, error) {
	return callFound(g.handle, reading, func(t *Tx) (GeoPoint, bool, error) { return g.on(t).Position(member) })
}

// Distance returns how far two members are from each other in metres, or ErrNotFound if one of them does not exist.
// O(log n).
func (g Geo) Distance(a, b string) (float64, error) {
	return callFound(g.handle, reading, func(t *Tx) (float64, bool, error) { return g.on(t).Distance(a, b) })
}

// Search returns the members within a shape, none if the key does not exist. It fails with structures.ErrGeoMember if
// the member in the centre does not exist. O(log n + m) in the number m of members near the shape.
func (g Geo) Search(q GeoSearch) ([]GeoResult, error) {
	return call(g.handle, reading, func(t *Tx) ([]GeoResult, error) { return g.on(t).Search(q) })
}

// PutSearch makes the key what a search in the places at another key finds, whatever it held before, and returns how
// many members that are; none deletes the key. Their scores are their geohashes, or their distances from the centre in
// units of unit metres if that is not 0. O(log n) a member besides the cost of Search.
func (g Geo) PutSearch(from string, q GeoSearch, unit float64) (int, error) {
	return callKeys(g.handle, writing, []string{g.key, from}, func(t *Tx) (int, error) { return g.on(t).PutSearch(from, q, unit) })
}

func (g Geo) on(t *Tx) structures.Geo { return structures.Geo{Txn: t.txn(), Key: g.key} }
