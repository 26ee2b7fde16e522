package structures_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

func (m *memory) geo(key string) structures.Geo { return structures.Geo{Txn: m, Key: key} }

// sicily are the places of Redis's documentation.
func sicily(t *testing.T) *memory {
	t.Helper()
	m := newMemory()
	res, err := m.geo("g").Add([]structures.GeoMember{
		{Member: "Palermo", Point: structures.GeoPoint{Longitude: 13.361389, Latitude: 38.115556}},
		{Member: "Catania", Point: structures.GeoPoint{Longitude: 15.087269, Latitude: 37.502669}},
		{Member: "edge1", Point: structures.GeoPoint{Longitude: 12.758489, Latitude: 38.788135}},
		{Member: "edge2", Point: structures.GeoPoint{Longitude: 17.241510, Latitude: 38.788135}},
	}, 0)
	must(t, err)
	equal(t, "added", res.Added, 4)
	return m
}

// The figures are those of Redis's documentation.
func TestGeoFigures(t *testing.T) {
	m := sicily(t)
	d, ok, err := m.geo("g").Distance("Palermo", "Catania")
	must(t, err)
	equal(t, "distance", fmt.Sprintf("%.4f %t", d, ok), "166274.1516 true")
	_, ok, err = m.geo("g").Distance("Palermo", "nowhere")
	must(t, err)
	equal(t, "distance to nowhere", ok, false)
	p, ok, err := m.geo("g").Position("Palermo")
	must(t, err)
	equal(t, "position", fmt.Sprintf("%.17f %.17f %t", p.Longitude, p.Latitude, ok), "13.36138933897018433 38.11555639549629859 true")
	equal(t, "geohash", p.Geohash(), "sqc8b49rny0")
	score, _, err := m.zset("g").Score("Catania")
	must(t, err)
	equal(t, "score", score, 3479447370796909)
}

// The distances are those that Redis stores, in kilometres, to the last bit.
func TestGeoDistancesToTheLastBit(t *testing.T) {
	for _, tt := range []struct {
		p, q structures.GeoPoint
		want float64
	}{
		{structures.GeoPoint{Longitude: 13.361389, Latitude: 38.115556}, structures.GeoPoint{Longitude: 15.087269, Latitude: 37.502669}, 166.27415156960032},
		{structures.GeoPoint{Longitude: 2.3522, Latitude: 48.8566}, structures.GeoPoint{Longitude: 139.6917, Latitude: 35.6895}, 9714.8114300243687},
		{structures.GeoPoint{Longitude: -0.1276, Latitude: 51.5072}, structures.GeoPoint{Longitude: -74.006, Latitude: 40.7128}, 5571.814015569902},
		{structures.GeoPoint{Longitude: 151.2093, Latitude: -33.8688}, structures.GeoPoint{Longitude: -43.1729, Latitude: -22.9068}, 13524.847983799578},
		{structures.GeoPoint{Longitude: -70.6693, Latitude: -33.4489}, structures.GeoPoint{Longitude: 109.3, Latitude: 33.45}, 20017.882233775028},
		{structures.GeoPoint{Longitude: 179.9, Latitude: 0.001}, structures.GeoPoint{Longitude: -179.9, Latitude: -0.002}, 22.247941952800293},
		{structures.GeoPoint{Longitude: 24.9384, Latitude: 60.1699}, structures.GeoPoint{Longitude: 24.9385, Latitude: 60.17}, 0.012608461821918309},
		{structures.GeoPoint{Longitude: -175.2, Latitude: -21.14}, structures.GeoPoint{Longitude: 4.8, Latitude: 21.1399}, 20020.723004063329},
		{structures.GeoPoint{Longitude: 100, Latitude: 85}, structures.GeoPoint{Longitude: -80, Latitude: 84.9}, 1123.3856872714821},
		{structures.GeoPoint{Longitude: 7.4474, Latitude: 46.948}, structures.GeoPoint{Longitude: 8.5417, Latitude: 47.3769}, 95.520794756503207},
	} {
		m := newMemory()
		_, err := m.geo("g").Add([]structures.GeoMember{{Member: "p", Point: tt.p}, {Member: "q", Point: tt.q}}, 0)
		must(t, err)
		d, _, err := m.geo("g").Distance("p", "q")
		must(t, err)
		equal(t, fmt.Sprint(tt.p, " to ", tt.q), d/1000, tt.want)
	}
}

func TestGeoSearch(t *testing.T) {
	m := sicily(t)
	centre := structures.GeoPoint{Longitude: 15, Latitude: 37}
	circle := structures.GeoShape{Radius: 200e3}
	box := structures.GeoShape{Box: true, Width: 400e3, Height: 400e3}
	for _, tt := range []struct {
		name string
		q    structures.GeoSearch
		want string
	}{
		{"circle", structures.GeoSearch{Centre: centre, Shape: circle, Order: structures.NearestFirst}, "Catania=56 Palermo=190"},
		{"box", structures.GeoSearch{Centre: centre, Shape: box, Order: structures.FarthestFirst}, "edge1=280 edge2=280 Palermo=190 Catania=56"},
		{"nearest", structures.GeoSearch{Centre: centre, Shape: box, Count: 1}, "Catania=56"},
		{"around a member", structures.GeoSearch{FromMember: true, Member: "Palermo", Shape: circle, Order: structures.FarthestFirst},
			"Catania=166 edge1=91 Palermo=0"},
		{"nothing", structures.GeoSearch{Centre: centre, Shape: structures.GeoShape{Radius: 1}}, ""},
		{"the whole earth", structures.GeoSearch{Centre: centre, Shape: structures.GeoShape{Radius: 3e7}, Count: 9, Any: true, Order: structures.NearestFirst},
			"Catania=56 Palermo=190 edge2=280 edge1=280"},
	} {
		results, err := m.geo("g").Search(tt.q)
		must(t, err)
		var words []string
		for _, r := range results {
			words = append(words, fmt.Sprintf("%s=%.0f", r.Member, r.Distance/1000))
		}
		equal(t, tt.name, strings.Join(words, " "), tt.want)
	}
	some, err := m.geo("g").Search(structures.GeoSearch{Centre: centre, Shape: box, Count: 2, Any: true})
	must(t, err)
	equal(t, "any two", len(some), 2)
	n, err := m.geo("to").PutSearch("g", structures.GeoSearch{Centre: centre, Shape: circle}, 1000)
	must(t, err)
	equal(t, "stored", n, 2)
	score, _, err := m.zset("to").Score("Catania")
	must(t, err)
	equal(t, "distance stored", fmt.Sprintf("%.4f", score), "56.4413")
	n, err = m.geo("to").PutSearch("none", structures.GeoSearch{Centre: centre, Shape: circle}, 0)
	must(t, err)
	equal(t, "stored of nothing", n, 0)
	equal(t, "left", whole(t, m, "to"), "")
}

func TestGeoRefusals(t *testing.T) {
	m := sicily(t)
	for _, p := range []structures.GeoPoint{
		{Longitude: 180.1}, {Latitude: 85.06}, {Longitude: math.NaN()}, {Latitude: math.Inf(-1)}, {Longitude: math.Inf(1)},
	} {
		_, err := m.geo("g").Add([]structures.GeoMember{{Member: "x", Point: p}}, 0)
		if err == nil || !strings.HasPrefix(err.Error(), "ERR invalid longitude,latitude pair ") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := m.geo("g").Search(structures.GeoSearch{FromMember: true, Member: "none"}); err != structures.ErrGeoMember {
		t.Errorf("around nobody: %v", err)
	}
	must(t, m.PutString("s", nil))
	if _, err := m.geo("s").Search(structures.GeoSearch{}); err != structures.ErrWrongType {
		t.Errorf("a string: %v", err)
	}
}

// A search finds what a scan of all places finds, near the poles and the date line as well, as long as the shape does
// not reach beyond these: Redis does not search there.
func TestGeoSearchFindsAll(t *testing.T) {
	r := chance.Rand(t)
	m := newMemory()
	var all []structures.GeoMember
	for i := range 500 {
		p := structures.GeoPoint{Longitude: r.Float64()*340 - 170, Latitude: r.Float64()*150 - 75}
		all = append(all, structures.GeoMember{Member: fmt.Sprint(i), Point: p})
	}
	_, err := m.geo("g").Add(all, 0)
	must(t, err)
	for range 200 {
		centre := structures.GeoPoint{Longitude: r.Float64()*240 - 120, Latitude: r.Float64()*100 - 50}
		radius := r.Float64() * 1e6
		results, err := m.geo("g").Search(structures.GeoSearch{Centre: centre, Shape: structures.GeoShape{Radius: radius}})
		must(t, err)
		var got, want []string
		for _, found := range results {
			got = append(got, found.Member)
		}
		everywhere, err := m.geo("g").Search(structures.GeoSearch{Centre: centre, Shape: structures.GeoShape{Radius: 4e7}})
		must(t, err)
		equal(t, "places on earth", len(everywhere), len(all))
		for _, found := range everywhere {
			if found.Distance <= radius {
				want = append(want, found.Member)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		equal(t, fmt.Sprint("within ", radius, " of ", centre), fmt.Sprint(got), fmt.Sprint(want))
	}
}
