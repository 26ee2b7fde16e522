package command

import (
	"errors"
	"math"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// GEOSEARCH and GEORADIUS, with and without STORE. All six fill in a geoQuery and share what comes
// after: the shape is covered by nine cells of the geohash, each of them a range of scores, and
// what lies in them is measured. So a search reads a few ranges of the sorted set and not all of
// it.
//
// The combinations that are refused, and the order in which that is found out, are Redis's: the
// type of the key, the words from left to right, then what does not go together. A member that
// serves as the centre is looked up when its word is read, so its error comes before that of a
// later word.

// geoQuery is a parsed search.
type geoQuery struct {
	from, at int  // arguments: the key to search in, and the first of the options
	search   bool // GEOSEARCH and GEOSEARCHSTORE, which have the shape among the options
	byMember bool // GEORADIUSBYMEMBER
	mayStore bool // GEORADIUS and GEORADIUSBYMEMBER, which have STORE among the options
	store    int  // argument: the key that takes the result; 0 for none

	db.GeoSearch
	unit                         float64
	exists                       bool // the key to search in
	coordinates, distances, hash bool // WITHCOORD, WITHDIST, WITHHASH
	storeDistances               bool
	centred, shaped              bool
}

// geoSearch is all six search commands. The order of the checks is Redis's. The source is empty for
// a key that does not exist: the words are checked all the same, and a destination is deleted.
func geoSearch(c *Call, q geoQuery) error {
	var err error
	if q.exists, err = c.hasSortedSet(c.Key(q.from)); err != nil {
		return err
	}
	if err := q.parse(c); err != nil {
		return err
	}
	if q.store > 0 {
		unit := 0.0
		if q.storeDistances {
			unit = q.unit
		}
		if strings.HasPrefix(c.Command.Name, "georadius") {
			q.Event = structures.EventGeoRadiusStore
		}
		return c.Int(c.Tx.Geo(c.Key(q.store)).PutSearch(c.Key(q.from), q.GeoSearch, unit))
	}
	results, err := c.Tx.Geo(c.Key(q.from)).Search(q.GeoSearch)
	if err != nil {
		return err
	}
	q.reply(c, results)
	return nil
}

// parse reads the query of any of the commands. GEORADIUS and its relatives have centre and radius
// in fixed places.
func (q *geoQuery) parse(c *Call) (err error) {
	switch {
	case q.search:
	case !q.byMember:
		if q.Centre, err = c.Args.parsePoint(2); err == nil {
			err = q.circle(c, 4)
		}
	case q.exists:
		if err = q.member(c, 2); err == nil {
			err = q.circle(c, 3)
		}
	}
	if err != nil {
		return err
	}
	for i := q.at; i < len(c.Args); {
		taken, err := q.option(c, i)
		if err != nil {
			return err
		}
		if taken == 0 {
			return ErrSyntax
		}
		i += taken
	}
	return q.check(c)
}

// option reads the option at argument i and returns how many arguments it takes, 0 if there is no
// such option. A word may be repeated, unless it names the centre or the shape in two ways.
func (q *geoQuery) option(c *Call, i int) (taken int, err error) {
	more := len(c.Args) - i - 1
	switch {
	case c.Args.Is(i, "withdist"):
		q.distances = true
	case c.Args.Is(i, "withhash"):
		q.hash = true
	case c.Args.Is(i, "withcoord"):
		q.coordinates = true
	case c.Args.Is(i, "any"):
		q.Any = true
	case c.Args.Is(i, "asc"):
		q.Order = db.NearestFirst
	case c.Args.Is(i, "desc"):
		q.Order = db.FarthestFirst
	case c.Args.Is(i, "count") && more >= 1:
		n, err := c.Args.parseFrom(i+1, 1, "ERR COUNT must be > 0")
		if err != nil {
			return 0, err
		}
		q.Count = int(min(n, math.MaxInt32))
		return 2, nil
	case q.mayStore && more >= 1 && (c.Args.Is(i, "store") || c.Args.Is(i, "storedist")):
		q.store, q.storeDistances = i+1, c.Args.Is(i, "storedist")
		return 2, nil
	case q.search && q.store > 0 && c.Args.Is(i, "storedist"):
		q.storeDistances = true
	case q.search:
		return q.shapeOption(c, i, more)
	default:
		return 0, nil
	}
	return 1, nil
}

// shapeOption reads an option that only GEOSEARCH and GEOSEARCHSTORE have.
func (q *geoQuery) shapeOption(c *Call, i, more int) (taken int, err error) {
	switch {
	case c.Args.Is(i, "frommember") && more >= 1 && (!q.centred || q.FromMember):
		taken, err = 2, q.member(c, i+1)
	case c.Args.Is(i, "fromlonlat") && more >= 2 && !q.FromMember:
		q.centred = true
		q.Centre, err = c.Args.parsePoint(i + 1)
		taken = 3
	case c.Args.Is(i, "byradius") && more >= 2 && !q.Shape.Box:
		taken, err = 3, q.circle(c, i+1)
	case c.Args.Is(i, "bybox") && more >= 3 && (!q.shaped || q.Shape.Box):
		taken, err = 4, q.box(c, i+1)
	}
	return taken, err
}

// member makes argument i, a member, the centre.
func (q *geoQuery) member(c *Call, i int) error {
	q.centred, q.FromMember, q.Member = true, true, c.Key(i)
	if !q.exists {
		return nil
	}
	_, err := c.Tx.Geo(c.Key(q.from)).Position(q.Member)
	if errors.Is(err, db.ErrNotFound) {
		return structures.ErrGeoMember
	}
	return err
}

// circle reads a radius and a unit. The radius is kept in metres, and the unit for the distances in
// the reply.
func (q *geoQuery) circle(c *Call, i int) (err error) {
	q.shaped = true
	radius, ok := c.Args.parseLength(i)
	switch {
	case !ok:
		return Error("ERR need numeric radius")
	case radius < 0:
		return Error("ERR radius cannot be negative")
	}
	if q.unit, err = c.Args.parseUnit(i + 1); err != nil {
		return err
	}
	q.Shape = db.GeoShape{Radius: radius * q.unit}
	return nil
}

// box reads width, height and a unit. Width and height are those of the whole box: its centre is
// half of each away from the edges.
func (q *geoQuery) box(c *Call, i int) (err error) {
	q.shaped = true
	width, ok := c.Args.parseLength(i)
	if !ok {
		return Error("ERR need numeric width")
	}
	height, ok := c.Args.parseLength(i + 1)
	switch {
	case !ok:
		return Error("ERR need numeric height")
	case width < 0 || height < 0:
		return Error("ERR height or width cannot be negative")
	}
	if q.unit, err = c.Args.parseUnit(i + 2); err != nil {
		return err
	}
	q.Shape = db.GeoShape{Box: true, Width: width * q.unit, Height: height * q.unit}
	return nil
}

// parseLength returns argument i as a length, which must not be negative.
func (a Args) parseLength(i int) (float64, bool) {
	length, err := a.ParseFloat(i)
	return length, err == nil
}

// check finds what does not go together. It runs after all words have been read, and before the
// search.
func (q *geoQuery) check(c *Call) error {
	switch {
	case q.store > 0 && (q.coordinates || q.distances || q.hash):
		name := "STORE option in GEORADIUS"
		if q.search {
			name = "GEOSEARCHSTORE"
		}
		return Errorf("ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options", name)
	case q.search && !q.centred:
		return Errorf("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %s", Quoted(c.Arg(0)))
	case q.search && !q.shaped:
		return Errorf("ERR exactly one of BYRADIUS and BYBOX can be specified for %s", Quoted(c.Arg(0)))
	case q.Any && q.Count == 0:
		return Error("ERR the ANY argument requires COUNT argument")
	}
	return nil
}

// reply writes the results: members, or arrays of a member and the requested attributes. The order
// of the parts is fixed, whatever the order of the words: distance, hash, place.
func (q *geoQuery) reply(c *Call, results []db.GeoResult) {
	fields := 1
	for _, asked := range []bool{q.distances, q.hash, q.coordinates} {
		if asked {
			fields++
		}
	}
	c.Out.Array(len(results))
	for _, r := range results {
		if fields > 1 {
			c.Out.Array(fields)
		}
		c.Out.BulkString(r.Member)
		if q.distances {
			c.distance(r.Distance, q.unit)
		}
		if q.hash {
			c.Out.Int(int64(r.Score))
		}
		if q.coordinates {
			c.point(r.Point)
		}
		if c.Out.Exceeded() {
			return
		}
	}
}
