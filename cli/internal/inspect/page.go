package inspect

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/db"
)

// The page for a browser: one file with everything in it, no script, and a policy that lets a browser load nothing
// else. html/template escapes names of keys wherever they stand.

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"size": humanize.Size, "count": humanize.Count, "percent": humanize.Percent,
	"int64": func(n int) int64 { return int64(n) },
	"name":  func(key string) string { return humanize.Name(key, 60) },
}).Parse(pageText))

// Sizes of the drawings, in the units of their view boxes.
const (
	pageBar       = 600.0 // the longest segment
	pageTreeWide  = 960.0
	pageTreeHigh  = 300.0
	pageColumn    = 40 // of a histogram
	pageLetter    = 7  // of a label, at the most
	pageHistogram = 120.0
)

// A pageData is what the template is given: a report, with the coordinates of its drawings. All arithmetic is done
// here, and none in the template.
type pageData struct {
	*Report
	Made     string
	Rows     []pageRow
	Types    []pageColumnData
	Sizes    []pageColumnData
	Lives    []pageColumnData
	Tree     []pageTile
	Forecast string
	PerKey   string
}

// A pageRow is a segment with its bars, which stand one after the other: At is where one begins, Wide how long it is.
type pageRow struct {
	Segment
	Name, Dead, Age          string
	LiveWide, OldAt, OldWide float64
	ExpiredAt, ExpiredWide   float64
}

// RecordCount is the number of records, for the template.
func (r pageRow) RecordCount() int { return int(r.Records) }

// A pageColumnData is one column of a histogram. High is the value itself until placeColumns makes it a height.
type pageColumnData struct {
	Label, Value string
	X, Y, High   float64
}

// Middle and Above are the place of the figure over a column.
func (c pageColumnData) Middle() float64 { return c.X + pageColumn/2 }
func (c pageColumnData) Above() float64  { return c.Y - 4 }

// A pageFigure is a histogram.
type pageFigure struct {
	Columns []pageColumnData
	Wide    int
}

// Histogram is the argument of the template's histogram. One without columns is as wide as one with one.
func (pageData) Histogram(columns []pageColumnData) pageFigure {
	return pageFigure{columns, max(len(columns), 1) * pagePitch(columns)}
}

// pagePitch is how far apart the columns of a histogram are: their labels, which are centred on them, do not meet.
func pagePitch(columns []pageColumnData) int {
	letters := 0
	for _, c := range columns {
		letters = max(letters, utf8.RuneCountInString(c.Label), utf8.RuneCountInString(c.Value))
	}
	return max(pageColumn+12, letters*pageLetter+6)
}

// A pageTile is a group of keys in the map of groups.
type pageTile struct {
	tile
	Label, Title string
	Fill         string // a colour of its own
}

// pageFill is the colour of the group of a rank. Steps of the golden angle keep hues apart however many there are; what
// is left over is grey.
func pageFill(rank int, rest bool) string {
	if rest {
		return "#4a5568"
	}
	return fmt.Sprintf("hsl(%d, 50%%, 36%%)", (210+rank*13751/100)%360)
}

// TextX and TextY are the place of the label.
func (t pageTile) TextX() float64 { return t.X + 4 }
func (t pageTile) TextY() float64 { return t.Y + 13 }

// Page makes the page. It has the same figures as the picture for a terminal, and depends on nothing but the report:
// the same report is the same page.
func Page(seen *Report) ([]byte, error) {
	d := pageData{Report: seen, Made: seen.Time.UTC().Format(time.DateTime) + " UTC", Forecast: seen.forecast(), PerKey: seen.perKey()}
	scale := pageBar / float64(seen.longest())
	for _, s := range seen.Segments {
		row := pageRow{Segment: s, Name: fmt.Sprintf("%09d", s.Segment), Dead: s.dead(), Age: s.age(seen.Time)}
		row.LiveWide, row.OldWide, row.ExpiredWide = float64(s.Live)*scale, float64(s.Overwritten)*scale, float64(s.Expired)*scale
		row.OldAt, row.ExpiredAt = row.LiveWide, row.LiveWide+row.OldWide
		d.Rows = append(d.Rows, row)
	}
	for _, t := range seen.Keys.Types {
		d.Types = append(d.Types, pageColumnData{Label: t.Type, Value: humanize.Count(int64(t.Keys)), High: float64(t.Keys)})
	}
	for _, s := range seen.Keys.Sizes {
		d.Sizes = append(d.Sizes, pageColumnData{Label: "≤" + strings.ReplaceAll(humanize.Size(s.Bytes), " ", ""), Value: humanize.Count(int64(s.Keys)), High: float64(s.Keys)})
	}
	for i, l := range seen.Keys.Deadlines {
		d.Lives = append(d.Lives, pageColumnData{Label: lifeText(seen.Keys.Deadlines, i), Value: humanize.Count(int64(l.Keys)), High: float64(l.Keys)})
	}
	for _, columns := range [][]pageColumnData{d.Types, d.Sizes, d.Lives} {
		placeColumns(columns)
	}
	d.Tree = placeTree(seen.Keys)
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, d)
	return b.Bytes(), err
}

// placeColumns gives the columns of a histogram their places; the highest fills it.
func placeColumns(columns []pageColumnData) {
	most, pitch := 1.0, pagePitch(columns)
	for _, c := range columns {
		most = max(most, c.High)
	}
	for i := range columns {
		c := &columns[i]
		c.High *= pageHistogram / most
		c.X, c.Y = float64(i*pitch)+float64(pitch-pageColumn)/2, pageHistogram-c.High
	}
}

// placeTree makes the map of groups: areas are as large as the groups are on disk. A label is drawn where it has room
// for three characters; a browser shows the title of any tile.
func placeTree(k db.Survey) (tiles []pageTile) {
	var sizes []float64
	for _, p := range k.Prefixes {
		sizes = append(sizes, float64(p.Bytes))
	}
	for i, at := range squarify(sizes, tile{0, 0, pageTreeWide, pageTreeHigh}) {
		p := k.Prefixes[i]
		label := groupName(p, 40)
		t := pageTile{tile: at, Title: fmt.Sprintf("%s: %s, %s", label, humanize.Plural(p.Keys, "key"), humanize.Size(p.Bytes)), Fill: pageFill(i, p.Prefix == "")}
		if room := int(at.Wide / 8); at.High > 16 && room >= 3 {
			t.Label = humanize.Name(label, room)
		}
		tiles = append(tiles, t)
	}
	return tiles
}

// A tile is a rectangle.
type tile struct{ X, Y, Wide, High float64 }

// squarify divides a rectangle among sizes, the largest first, into rectangles that are nearly squares (Bruls, Huizing
// and van Wijk, Squarified Treemaps, 2000). Their areas are in the proportion of the sizes.
func squarify(sizes []float64, room tile) []tile {
	total := 0.0
	for _, s := range sizes {
		total += s
	}
	if total <= 0 {
		return nil
	}
	scale := room.Wide * room.High / total
	tiles := make([]tile, 0, len(sizes))
	for start := 0; start < len(sizes); {
		side := min(room.Wide, room.High)
		end, sum := start, 0.0
		for best := 0.0; end < len(sizes); end++ {
			with := sum + sizes[end]*scale
			// The worst of a row is its first or its last: sizes descend.
			worst := max(side*side*sizes[start]*scale/(with*with), with*with/(side*side*max(sizes[end]*scale, 1e-9)))
			if end > start && worst > best {
				break
			}
			sum, best = with, worst
		}
		tiles, room = appendRow(tiles, sizes[start:end], scale, sum, room)
		start = end
	}
	return tiles
}

// appendRow puts a row along the shorter side of the room, and returns what is left of it.
func appendRow(tiles []tile, sizes []float64, scale, sum float64, room tile) ([]tile, tile) {
	if room.Wide >= room.High {
		wide, y := sum/max(room.High, 1e-9), room.Y
		for _, s := range sizes {
			high := s * scale / max(wide, 1e-9)
			tiles = append(tiles, tile{room.X, y, wide, high})
			y += high
		}
		return tiles, tile{room.X + wide, room.Y, room.Wide - wide, room.High}
	}
	high, x := sum/max(room.Wide, 1e-9), room.X
	for _, s := range sizes {
		wide := s * scale / max(high, 1e-9)
		tiles = append(tiles, tile{x, room.Y, wide, high})
		x += wide
	}
	return tiles, tile{room.X, room.Y + high, room.Wide, room.High - high}
}
