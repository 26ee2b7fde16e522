package command

import (
	"errors"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// Latitudes end at 85.05112878 degrees, where the square map of the geohash ends; a longitude or
// latitude beyond is refused with the numbers in the error. Distances are on a sphere of
// 6,372,797.560856 m, as in Redis, and so are its errors: up to 0.5 % in the worst case. Units are
// metres within the code; the argument's unit is a factor that is applied when a number is read and
// when one is written.

// geoCommands work on sorted sets whose scores are positions: 26 bits of longitude and 26 of
// latitude, interleaved. So ZRANGE, ZREM and the like work on them too, and positions come back
// rounded to a cell of 0.6 m or less.
var geoCommands = InGroup(GroupGeo, []*Command{
	{Name: "geoadd", Arity: -5, Flags: Write | DenyOOM, Work: BySize, Keys: OneKey("RW update"), Run: geoaddCommand},
	{Name: "geopos", Arity: -2, Flags: ReadOnly, Work: BySize, Keys: OneKey("RO access"), Run: geoposCommand},
	{Name: "geohash", Arity: -2, Flags: ReadOnly, Work: BySize, Keys: OneKey("RO access"), Run: geohashCommand},
	{Name: "geodist", Arity: -4, Flags: ReadOnly, Work: BySize, Keys: OneKey("RO access"), Run: geodistCommand},
	{Name: "geosearch", Arity: -7, Flags: ReadOnly, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return geoSearch(c, geoQuery{from: 1, at: 2, search: true}) }},
	{Name: "geosearchstore", Arity: -8, Flags: Write | DenyOOM, Keys: destinationAnd(Keys{Use: "RO access", First: 2, Step: 1}),
		Run: func(c *Call) error { return geoSearch(c, geoQuery{from: 2, at: 3, search: true, store: 1}) }},
	{Name: "georadius", Arity: -6, Flags: Write | DenyOOM | MovableKeys, Keys: radiusKeys(6),
		Run: func(c *Call) error { return geoSearch(c, geoQuery{from: 1, at: 6, mayStore: true}) }},
	{Name: "georadius_ro", Arity: -6, Flags: ReadOnly, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return geoSearch(c, geoQuery{from: 1, at: 6}) }},
	{Name: "georadiusbymember", Arity: -5, Flags: Write | DenyOOM | MovableKeys, Keys: radiusKeys(5),
		Run: func(c *Call) error { return geoSearch(c, geoQuery{from: 1, at: 5, byMember: true, mayStore: true}) }},
	{Name: "georadiusbymember_ro", Arity: -5, Flags: ReadOnly, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return geoSearch(c, geoQuery{from: 1, at: 5, byMember: true}) }},
})

// radiusKeys are the keys of GEORADIUS and its like, whose options start at argument i.
func radiusKeys(i int) []Keys {
	return []Keys{
		{Use: "RO access", First: 1, Step: 1},
		{Use: "OW update", Keyword: "STORE", First: i, Step: 1},
		{Use: "OW update", Keyword: "STOREDIST", First: i, Step: 1},
	}
}

// parsePoint reads a longitude and a latitude. Longitude comes first, as x before y.
func (a Args) parsePoint(i int) (p db.GeoPoint, err error) {
	if p.Longitude, err = a.ParseFloat(i); err != nil {
		return p, err
	}
	if p.Latitude, err = a.ParseFloat(i + 1); err != nil {
		return p, err
	}
	if !p.Valid() {
		return p, structures.ErrGeoPoint(p)
	}
	return p, nil
}

// units are the units of length, in metres.
var units = words[float64]{{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}}

// parseUnit reads a unit of length, in metres. A mile is 1609.34 m and a foot 0.3048 m, as Redis
// has them.
func (a Args) parseUnit(i int) (float64, error) {
	if unit, ok := units.find(a[i]); ok {
		return unit, nil
	}
	return 0, Error("ERR unsupported unit provided. please use M, KM, FT, MI")
}

// geoaddCommand is GEOADD. All positions are checked before the first is written. Without CH the
// reply counts new members only, so it is 0 for one that was moved.
func geoaddCommand(c *Call) error {
	o, i := c.Args.addWords(false)
	if n := len(c.Args) - i; n == 0 || n%3 != 0 || o.nx && o.xx {
		return ErrSyntax
	}
	members := make([]db.GeoMember, 0, (len(c.Args)-i)/3)
	for ; i < len(c.Args); i += 3 {
		p, err := c.Args.parsePoint(i)
		if err != nil {
			return err
		}
		members = append(members, db.GeoMember{Member: c.Key(i + 2), Point: p})
	}
	result, err := c.Tx.Geo(c.Key(1)).AddWith(members, o.conditions...)
	return o.replyAdded(c, result, err)
}

// hasSortedSet says whether a key holds a sorted set. Another type is an error.
func (c *Call) hasSortedSet(key string) (bool, error) {
	n, err := c.Tx.SortedSet(key).Len()
	return n > 0, err
}

// eachPlace replies with an array of what reply makes of the place of each member; absent stands
// for one that does not exist. The type is checked before the header of the reply, because an array
// cannot become an error afterwards without being truncated.
func (c *Call) eachPlace(absent func(), reply func(db.GeoPoint)) error {
	places := c.Tx.Geo(c.Key(1))
	if _, err := c.hasSortedSet(c.Key(1)); err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	for i := 2; i < len(c.Args); i++ {
		p, err := places.Position(c.Key(i))
		switch {
		case errors.Is(err, db.ErrNotFound):
			absent()
		case err != nil:
			return err
		default:
			reply(p)
		}
	}
	return nil
}

// geoposCommand is GEOPOS: a null array for a member that does not exist.
func geoposCommand(c *Call) error { return c.eachPlace(c.Out.NullArray, c.point) }

// geohashCommand is GEOHASH: text of eleven characters, of the standard geohash and not of the
// score.
func geohashCommand(c *Call) error {
	return c.eachPlace(c.Out.Null, func(p db.GeoPoint) { c.Out.BulkString(p.Geohash()) })
}

// point replies with longitude and latitude, with all digits that Redis prints. Those are 17 after
// the point, without zeros at the end.
func (c *Call) point(p db.GeoPoint) {
	c.Out.Array(2)
	for _, degrees := range []float64{p.Longitude, p.Latitude} {
		var digits [40]byte
		text := strconv.AppendFloat(digits[:0], degrees, 'f', 17, 64)
		c.Out.DoubleText(strings.TrimRight(strings.TrimRight(string(text), "0"), "."))
	}
}

// distance replies with a distance in a unit, with four decimals.
func (c *Call) distance(distance, unit float64) {
	var digits [32]byte
	c.Out.Bulk(strconv.AppendFloat(digits[:0], distance/unit, 'f', 4, 64))
}

// geodistCommand is GEODIST: null if one of the members does not exist. The unit is checked before
// the key. The distance is that of the cells' centres, not of what GEOADD was given.
func geodistCommand(c *Call) error {
	unit := 1.0
	var err error
	switch {
	case len(c.Args) == 5:
		if unit, err = c.Args.parseUnit(4); err != nil {
			return err
		}
	case len(c.Args) > 5:
		return ErrSyntax
	}
	d, err := c.Tx.Geo(c.Key(1)).Distance(c.Key(2), c.Key(3))
	if err != nil {
		return orElse(err, c.Out.Null)
	}
	c.distance(d, unit)
	return nil
}
