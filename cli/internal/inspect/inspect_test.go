package inspect

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// aReport is one with everything that a picture can show: names that a terminal or a browser might obey among it.
func aReport() *Report {
	now := time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	return &Report{
		Dir: "data", StoreID: strings.Repeat("0123456789abcdef", 2), Time: now, Sequence: 4_000_000, Bytes: 594e6, LiveBytes: 462e6, IndexBytes: 44e6,
		Segments: []Segment{
			{Segment: 41, Bytes: 256e6, Live: 150e6, Overwritten: 70e6, Expired: 36e6, Records: 1_200_000, Sealed: true, Time: ago(76 * time.Hour), Hint: "ok", Taken: true, Reason: "41 % dead"},
			{Segment: 42, Bytes: 256e6, Live: 250e6, Overwritten: 6e6, Records: 1_400_000, Sealed: true, Merged: true, Time: ago(90 * time.Minute), Hint: "stale", Reason: "2 % dead"},
			{Segment: 43, Bytes: 82e6, Live: 62e6, Overwritten: 20e6, Records: 400_000, Reason: "active"},
			{Segment: 44, Bytes: 40, Live: 40, Reason: "active"},
		},
		Merge: Merge{Due: true, Segments: 1, Reads: 256e6, Writes: 186e6, Reclaims: 70e6},
		Keys: db.Survey{
			Keys: 1_420_000, Bytes: 426e6, Expired: 12_000,
			Types:     []db.SurveyType{{Type: "string", Keys: 1_000_000, Bytes: 300e6, Memory: 16e6}, {Type: "hash", Keys: 420_000, Elements: 3_000_000, Bytes: 126e6, Memory: 28e6}},
			Sizes:     []db.SurveySize{{Bytes: 64, Keys: 1_000_000}, {Bytes: 512, Keys: 419_999}, {Bytes: 1 << 20, Keys: 1}},
			Deadlines: []db.SurveyTTL{{Left: time.Hour, Keys: 20_000}, {Left: 24 * time.Hour}, {Left: 720 * time.Hour, Keys: 400_000}, {}, {Left: -1, Keys: 1_000_000}},
			Biggest: []db.SurveyKey{
				{Key: "log", Type: "stream", Elements: 10_000, Bytes: 1e6},
				{Namespace: 3, Key: "\x1b[2J<script>\xff", Type: "string", Bytes: 512},
				{Key: strings.Repeat("long ", 100), Type: "string", Bytes: 511},
			},
			Prefixes: []db.SurveyPrefix{{Prefix: "user:", Keys: 1_000_000, Bytes: 300e6}, {Prefix: "<b>:", Keys: 400_000, Bytes: 100e6}, {Keys: 20_000, Bytes: 26e6}},
		},
	}
}

// The pictures, in the forms that terminals need: testdata/picture.golden, rewritten with -update.
func TestPicture(t *testing.T) {
	var got bytes.Buffer
	for _, p := range []Picture{{Width: 120}, {Width: 80, Plain: true}, {Width: 60, Color: true}} {
		got.Write(p.Draw(aReport()))
		got.WriteString("----\n")
	}
	got.Write(Picture{Width: 80}.Draw(&Report{Bytes: 40, Segments: []Segment{{Segment: 1, Bytes: 40, Live: 40}}}))
	golden.Compare(t, "testdata/picture.golden", got.Bytes(), *update)
}

// The page is one file that needs nothing else, and obeys no name of a key: testdata/page.html.
func TestPage(t *testing.T) {
	page, err := Page(aReport())
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/page.html", page, *update)
	for _, bad := range []string{"<script", "<b>", "http://", "https://", "src=", "\x1b"} {
		if bytes.Contains(page, []byte(bad)) {
			t.Errorf("the page has %q", bad)
		}
	}
	if _, err := Page(&Report{}); err != nil {
		t.Errorf("an empty store: %v", err)
	}
}

// What stands over and under the columns of a histogram is within the drawing, and does not meet what is beside it.
func TestLabelsFit(t *testing.T) {
	for _, label := range []string{"0", "1,253,009", "≤256KB", strings.Repeat("x", 30)} {
		columns := []pageColumnData{{Value: label, High: 5}, {Label: label, Value: "1", High: 1}, {Label: "b", Value: label}}
		placeColumns(columns)
		figure := (pageData{}).Histogram(columns)
		half := float64(len([]rune(label))) * pageLetter / 2
		for i, c := range columns {
			if c.Middle()-half < 0 || c.Middle()+half > float64(figure.Wide) || i > 0 && c.Middle()-columns[i-1].Middle() < 2*half {
				t.Errorf("%s: column %d, whose middle is at %v of %d", label, i, c.Middle(), figure.Wide)
			}
		}
	}
}

// Each group of keys has a colour of its own, ten degrees from all others at least.
func TestGroupsHaveColours(t *testing.T) {
	var hues []int
	for rank := range 20 {
		var hue int
		if _, err := fmt.Sscanf(pageFill(rank, false), "hsl(%d,", &hue); err != nil {
			t.Fatal(err)
		}
		for i, other := range hues {
			if apart := (hue - other + 360) % 360; min(apart, 360-apart) < 10 {
				t.Errorf("groups %d and %d have hues %d and %d", i, rank, other, hue)
			}
		}
		hues = append(hues, hue)
	}
	if pageFill(3, true) == pageFill(3, false) {
		t.Error("the rest has the colour of a group")
	}
}

// The cells of a bar add up to the length of the segment, whatever the shares are.
func TestBarsAreToScale(t *testing.T) {
	for _, s := range []Segment{{Bytes: 100, Live: 33, Overwritten: 33, Expired: 34}, {Bytes: 100, Live: 1, Overwritten: 1, Expired: 98}, {Bytes: 100, Live: 100}, {Bytes: 3, Live: 1, Expired: 2}} {
		for width := barNarrow; width <= barWide; width++ {
			drawn, cells := Picture{}.bar(s, 100, width)
			want := int(float64(s.Bytes)/100*float64(width) + 0.5)
			if n := len([]rune(drawn)); n != cells || cells != want {
				t.Fatalf("%+v in %d: %q, %d cells, want %d", s, width, drawn, cells, want)
			}
		}
	}
}

// Tiles lie within the room, have the areas of their sizes, and so fill it without a gap.
func TestSquarify(t *testing.T) {
	room := tile{0, 0, 960, 300}
	for _, sizes := range [][]float64{{1}, {6, 6, 4, 3, 2, 2, 1}, {1000, 1, 1, 1, 1}, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, {3, 0}, {}, {0}} {
		total := 0.0
		for _, s := range sizes {
			total += s
		}
		tiles := squarify(sizes, room)
		if want := len(sizes); len(tiles) != want && total > 0 {
			t.Fatalf("%v: %d tiles", sizes, len(tiles))
		}
		for i, at := range tiles {
			area := sizes[i] / total * room.Wide * room.High
			if at.X < 0 || at.Y < 0 || at.X+at.Wide > room.Wide+1e-6 || at.Y+at.High > room.High+1e-6 || math.Abs(at.Wide*at.High-area) > 1e-3 {
				t.Errorf("%v: %+v, want an area of %v", sizes, at, area)
			}
			for _, before := range tiles[:i] {
				if at.X < before.X+before.Wide-1e-6 && before.X < at.X+at.Wide-1e-6 && at.Y < before.Y+before.High-1e-6 && before.Y < at.Y+at.High-1e-6 {
					t.Errorf("%v: %+v and %+v overlap", sizes, before, at)
				}
			}
		}
	}
}
