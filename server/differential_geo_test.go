package server_test

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

// The grammar of the commands on places, and how distances are compared.

// distances are the commands whose replies hold distances.
var distances = []string{"geodist", "geosearch", "georadius", "georadius_ro", "georadiusbymember", "georadiusbymember_ro"}

// distancePattern is a distance in a reply.
var distancePattern = regexp.MustCompile(`^[0-9]+\.[0-9]{4}$`)

// sameDistances says whether two replies are the same but for the last digits of distances.
func sameDistances(a, b resp.Reply) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Items) != len(b.Items) || a.Int != b.Int {
		return false
	}
	for i := range a.Items {
		if !sameDistances(a.Items[i], b.Items[i]) {
			return false
		}
	}
	return bytes.Equal(a.Text, b.Text) || a.Kind == resp.BulkString && sameDistance(string(a.Text), string(b.Text))
}

// sameDistance compares distances with four decimals.
func sameDistance(a, b string) bool {
	if a == b || !distancePattern.MatchString(a) || !distancePattern.MatchString(b) {
		return a == b
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && alike(x, y, 1.0001e-4)
}

// alike says whether two distances, rounded to a digit, could be one whose sines and cosines are off by a unit in the
// last place: ours are correctly rounded, those of a C library nearly always. On the other side of the earth this makes
// half a metre, for there the arc sine grows without bounds.
func alike(x, y, digit float64) bool {
	if x == y {
		return true // also invalid distances
	}
	const diameter, off = 2 * 6372797.560856, 1e-15
	for _, unit := range []float64{1, 1000, 0.3048, 1609.34} {
		whole := diameter / unit
		if x > whole*math.Pi/2+digit {
			continue
		}
		s := math.Sin(min(x/whole, math.Pi/2))
		low, high := whole*math.Asin(s*(1-off)), whole*math.Asin(min(s*(1+off), 1))
		if y >= low*(1-off)-digit && y <= high*(1+off)+digit {
			return true
		}
	}
	return false
}

// TestDistancesAlike says what the comparison of distances lets pass.
func TestDistancesAlike(t *testing.T) {
	for _, tt := range []struct {
		x, y, digit float64
		want        bool
	}{
		{166274.15156960033, 166274.15156960036, 0, true},
		{166274.15156960033, 166274.15156960133, 0, false},
		{166274.1516, 166274.1517, 1.0001e-4, true},
		{166274.1516, 166274.1518, 1.0001e-4, false},
		{20020733.9, 20020733.5, 0, true}, // half of the equator is 20,020,734.0 m
		{20020733.9, 20020732.9, 0, false},
		{20020.7339, 20020.7335, 0, true},
		{20000000, 20000000.001, 0, false},
		{0, 0.0001, 0, false},
		{0, 0, 0, true},
		{-753, -753, 0, true}, // another score that the key held already
		{-753, -754, 0, false},
		{3e7, 3e7, 0, true},
	} {
		if got := alike(tt.x, tt.y, tt.digit); got != tt.want {
			t.Errorf("%v and %v to %v: %t", tt.x, tt.y, tt.digit, got)
		}
	}
}

// degrees are within limit, near a place or anywhere.
func (g *generator) degrees(near, limit float64) string {
	switch g.r.IntN(12) {
	case 0:
		return g.float()
	case 1:
		return pick(g, "180", "-180", "85.05112878", "-85.05112878", "85.06", "180.1", "0", "90", "-0.0", "66.1", "80.5", "-80.5")
	case 2, 3:
		return strconv.FormatFloat((g.r.Float64()*2-1)*limit, 'f', 6, 64)
	}
	return strconv.FormatFloat(near+g.r.NormFloat64()*pick(g, 0.001, 0.1, 3), 'f', -1, 64)
}

func (g *generator) point() []string {
	return []string{g.degrees(15.08, 180), g.degrees(37.5, 85.05112878)}
}

func (g *generator) length() string {
	if g.chance(12) {
		return pick(g, "0", "-1", "x", "nan", "inf", "1e300", "1e-300", "")
	}
	return strconv.FormatFloat(pick(g, 1.0, 10, 100, 1000, 5000)*g.r.Float64()*pick(g, 1.0, 10, 1000), 'f', 3, 64)
}

func (g *generator) unit() string { return pick(g, "m", "km", "KM", "ft", "mi", "M", "km", "x") }

func (g *generator) geoadd() []string {
	args := join(g.key(), g.maybe(6, "nx"), g.maybe(6, "XX"), g.maybe(4, "ch"))
	most := 4
	if g.wide {
		most = 60
	}
	for range 1 + g.r.IntN(most) {
		args = append(args, g.point()...)
		args = append(args, g.element())
	}
	return args
}

func (g *generator) geoShape() []string {
	centre := join("FROMLONLAT", g.point())
	if g.chance(3) {
		centre = []string{"frommember", g.element()}
	}
	shape := []string{"BYRADIUS", g.length(), g.unit()}
	if g.chance(2) {
		shape = []string{"bybox", g.length(), g.length(), g.unit()}
	}
	if g.chance(30) {
		return pick(g, centre, shape, join(centre, shape, shape), join(centre, centre, shape), join(centre, "frommember", "a", shape))
	}
	if g.chance(2) {
		return join(shape, centre)
	}
	return join(centre, shape)
}

func (g *generator) geoWords() []string {
	count := g.maybe(3, "COUNT", pick(g, "1", "2", "5", "100", "0", "-1", "x"))
	return join(g.maybe(3, "withdist"), g.maybe(3, "WITHHASH"), g.maybe(3, "withcoord"), count, g.maybe(6, "any"),
		g.maybe(2, pick(g, "asc", "DESC")), g.maybe(40, pick(g, "nope", "count", "store")))
}

func (g *generator) geoStore() []string {
	return join(g.maybe(8, "store", g.key()), g.maybe(8, "STOREDIST", g.key()))
}

// TestPlaces compares searches among many places, where most of them find something.
func TestPlaces(t *testing.T) {
	p := newPair(t)
	g := &generator{r: chance.Rand(t), wide: true}
	run := func(args ...string) {
		t.Helper()
		if d := p.run(args); d != "" {
			t.Errorf("%q: %s", args, d)
		}
	}
	for i := range 400 {
		run(join("geoadd", "places", g.point(), "m"+strconv.Itoa(i))...)
	}
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	for range rounds {
		a, b := "m"+strconv.Itoa(g.r.IntN(410)), "m"+strconv.Itoa(g.r.IntN(410))
		run("geodist", "places", a, b, g.unit())
		run("geohash", "places", a, b)
		run("geopos", "places", a, b)
		run(join("geosearch", "places", g.geoShape(), g.geoWords())...)
		run(join("geosearch", "places", "frommember", a, "byradius", g.length(), g.unit(), g.geoWords())...)
		run(join("georadius", "places", g.point(), g.length(), g.unit(), g.geoWords(), "store", "found")...)
		run("zrange", "found", "0", "-1")
		run(join("geosearchstore", "found", "places", g.geoShape(), "storedist")...)
		run("zcard", "found")
	}
}
