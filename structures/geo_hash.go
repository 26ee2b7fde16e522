package structures

import (
	"math"

	"github.com/stavedb/stave/internal/trig"
)

// Geohashes, as Redis computes them: longitude and latitude are cut to integers of `step` bits each, whose bits are
// interleaved, so that places with a common prefix are near each other. The digits of every reply follow from the order
// of the operations here; it is that of Redis's geohash.c and geohash_helper.c. The conversions of products keep a
// compiler from fusing them with a sum, which would round differently.

// Bounds of what a geohash can hold, in degrees. The latitudes are those of the Mercator projection.
const (
	maxLongitude = 180
	maxLatitude  = 85.05112878
)

const (
	geoStep      = 26                 // bits of each coordinate in a score
	earthRadius  = 6372797.560856     // metres
	mercatorMax  = 20037726.37        // metres: half of the equator, about
	radPerDegree = math.Pi / 180.0    // radians
	evenBits     = 0x5555555555555555 // of the latitude
	oddBits      = 0xaaaaaaaaaaaaaaaa // of the longitude
)

// GeoPoint is a place on earth, in degrees.
type GeoPoint struct {
	Longitude, Latitude float64
}

// Valid says whether the point is within the bounds: longitudes from -180 to 180 and latitudes from -85.05112878 to
// 85.05112878.
func (p GeoPoint) Valid() bool {
	return math.Abs(p.Longitude) <= maxLongitude && math.Abs(p.Latitude) <= maxLatitude
}

// geohash is the cell of a place at some precision.
type geohash struct {
	bits uint64
	step int // bits of each coordinate; 0 stands for no cell
}

// spread moves the 32 bits of x to the even places.
func spread(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	v = (v | v<<2) & 0x3333333333333333
	return (v | v<<1) & evenBits
}

// gather is the inverse of spread.
func gather(v uint64) uint32 {
	v &= evenBits
	v = (v | v>>1) & 0x3333333333333333
	v = (v | v>>2) & 0x0f0f0f0f0f0f0f0f
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return uint32(v | v>>16)
}

// encode returns the cell of a point; latitudes reach from -limit to limit.
func (p GeoPoint) encode(step int, limit float64) geohash {
	latitude := (p.Latitude + limit) / (limit + limit)
	longitude := (p.Longitude + maxLongitude) / (maxLongitude + maxLongitude)
	scale := float64(uint64(1) << step)
	return geohash{bits: spread(uint32(latitude*scale)) | spread(uint32(longitude*scale))<<1, step: step}
}

// Score is the score by which a sorted set holds the point.
func (p GeoPoint) Score() float64 { return float64(p.encode(geoStep, maxLatitude).bits) }

// scoreBits is a score as a whole number. Scores that no place has are converted as Redis does on x86-64, on any
// machine.
func scoreBits(score float64) uint64 {
	const half = 1 << 63
	switch {
	case score >= 2*half || score < -half:
		if score > 0 {
			return 0
		}
		return half
	case score >= half:
		return uint64(int64(score-half)) | half
	}
	return uint64(int64(score))
}

// geoPoint is the middle of the cell that a score stands for.
func geoPoint(score float64) GeoPoint {
	area := geohash{bits: scoreBits(score), step: geoStep}.area()
	return GeoPoint{
		Longitude: max(-maxLongitude, min(maxLongitude, (area.west+area.east)/2)),
		Latitude:  max(-maxLatitude, min(maxLatitude, (area.south+area.north)/2)),
	}
}

// Geohash is the geohash of the point in its usual notation, 11 characters. The last one is always 0: it would need
// more bits than there are.
func (p GeoPoint) Geohash() string {
	const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
	bits := p.encode(geoStep, 90).bits // the usual notation has all latitudes
	var text [11]byte
	for i := range text[:10] {
		text[i] = alphabet[bits>>(52-(i+1)*5)&0x1f]
	}
	text[10] = alphabet[0]
	return string(text[:])
}

// geoArea is a cell, or what encloses a shape.
type geoArea struct {
	west, south, east, north float64
}

func (h geohash) area() geoArea {
	latitude, longitude := float64(gather(h.bits)), float64(gather(h.bits>>1))
	scale := float64(uint64(1) << h.step)
	const width, height = maxLongitude + maxLongitude, maxLatitude + maxLatitude
	return geoArea{
		west: -maxLongitude + float64(longitude/scale*width), east: -maxLongitude + float64((longitude+1)/scale*width),
		south: -maxLatitude + float64(latitude/scale*height), north: -maxLatitude + float64((latitude+1)/scale*height),
	}
}

// scores are the scores of the places in the cell: from low to before high.
func (h geohash) scores() (low, high float64) {
	shift := 2*geoStep - 2*h.step
	return float64(h.bits << shift), float64((h.bits + 1) << shift)
}

// move is the cell some cells to the east and to the north, each -1, 0 or 1, around the earth if need be.
func (h geohash) move(east, north int) geohash {
	used := uint64(math.MaxUint64) >> (64 - 2*h.step)
	return geohash{step: h.step, bits: stepIn(h.bits, oddBits, used, east) | stepIn(h.bits, evenBits, used, north)}
}

// stepIn adds d to the coordinate whose bits the mask has: the others are set first, to let carries pass, or cleared.
func stepIn(bits, mask, used uint64, d int) uint64 {
	own := bits & mask
	others := ^mask & used
	switch {
	case d == 0:
		return own // as it is: on the easternmost meridian it has one bit too many
	case d > 0:
		own += others + 1
	default:
		own = (own | others) - (others + 1)
	}
	return own & mask & used
}

// radians is an angle in degrees.
func radians(degrees float64) float64 { return float64(degrees * radPerDegree) }

// distance is the length in metres of the great circle between two points, by the haversine formula.
func (p GeoPoint) distance(q GeoPoint) float64 {
	v := trig.Sin((radians(q.Longitude) - radians(p.Longitude)) / 2)
	if v == 0 {
		return latitudeDistance(p.Latitude, q.Latitude)
	}
	a, b := radians(p.Latitude), radians(q.Latitude)
	u := trig.Sin((b - a) / 2)
	return 2.0 * earthRadius * trig.Asin(math.Sqrt(float64(u*u)+float64(trig.Cos(a)*trig.Cos(b)*v*v)))
}

// latitudeDistance is the distance of two points with the same longitude.
func latitudeDistance(a, b float64) float64 {
	return earthRadius * math.Abs(radians(b)-radians(a))
}

// GeoShape is what a search covers around its centre: a circle, or a box if Radius is 0 and the box is not empty.
// Lengths are in metres.
type GeoShape struct {
	Radius        float64
	Width, Height float64
	// Box makes the shape a box.
	Box bool
}

// distanceOf is the distance of a point from the centre, and whether the shape covers the point.
func (s GeoShape) distanceOf(p, centre GeoPoint) (float64, bool) {
	if !s.Box {
		d := centre.distance(p)
		return d, d <= s.Radius
	}
	if latitudeDistance(p.Latitude, centre.Latitude) > s.Height/2 ||
		p.distance(GeoPoint{centre.Longitude, p.Latitude}) > s.Width/2 {
		return 0, false
	}
	return centre.distance(p), true
}

// bounds encloses the shape.
func (s GeoShape) bounds(c GeoPoint) geoArea {
	height, width := s.Radius, s.Radius
	if s.Box {
		height, width = s.Height/2, s.Width/2
	}
	dy := height / earthRadius / radPerDegree
	// Nearer to a pole the same width is more degrees.
	pole := c.Latitude + dy
	if c.Latitude < 0 {
		pole = c.Latitude - dy
	}
	dx := width / earthRadius / trig.Cos(radians(pole)) / radPerDegree
	return geoArea{west: c.Longitude - dx, east: c.Longitude + dx, south: c.Latitude - dy, north: c.Latitude + dy}
}

// estimate is the precision at which the cell of the centre and its neighbours cover the shape.
func (s GeoShape) estimate(latitude float64) int {
	reach := s.Radius
	if s.Box {
		reach = math.Sqrt(float64(s.Width/2*(s.Width/2)) + float64(s.Height/2*(s.Height/2)))
	}
	if reach == 0 {
		return geoStep
	}
	step := 1
	for ; reach < mercatorMax; reach *= 2 {
		step++
	}
	step -= 2 // the range is in most cases covered then
	if math.Abs(latitude) > 66 {
		step--
		if math.Abs(latitude) > 80 {
			step--
		}
	}
	return min(max(step, 1), geoStep)
}

// cells are those that may hold places of the shape: the cell of the centre and its neighbours, in Redis's order. Cells
// that cannot have any have step 0.
func (s GeoShape) cells(c GeoPoint) [9]geohash {
	box := s.bounds(c)
	h := c.encode(s.estimate(c.Latitude), maxLatitude)
	tooSmall := h.move(0, 1).area().north < box.north || h.move(0, -1).area().south > box.south ||
		h.move(1, 0).area().east < box.east || h.move(-1, 0).area().west > box.west
	if tooSmall && h.step > 1 {
		h = c.encode(h.step-1, maxLatitude)
	}
	area := h.area()
	var cells [9]geohash
	for i, d := range [9][2]int{{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}} {
		east, north := d[0], d[1]
		if h.step >= 2 && (north < 0 && area.south < box.south || north > 0 && area.north > box.north ||
			east < 0 && area.west < box.west || east > 0 && area.east > box.east) {
			continue
		}
		cells[i] = h.move(east, north)
	}
	return cells
}
