package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
)

// The picture for a terminal. Three shades tell live, overwritten and expired bytes apart, so that colours only add to
// it.

// A Picture draws a report as text. It fits its width down to 65 columns; below that rows are longer.
type Picture struct {
	Width int  // in columns
	Color bool // by escape sequences of ANSI
	Plain bool // ASCII only
}

// A shade is what a cell of a bar stands for.
type shade int

const (
	shadeLive shade = iota
	shadeOverwritten
	shadeExpired
)

// glyph is a cell of a shade, and its colour as an SGR parameter.
func (p Picture) glyph(s shade) (cell, color string) {
	cells, colors := []string{"█", "░", "▒"}, []string{"32", "90", "33"}
	if p.Plain {
		cells = []string{"#", ".", "x"}
	}
	return cells[s], colors[s]
}

// The narrowest and the widest bar, and the columns of a row that are not the bar.
const (
	barNarrow = 10
	barWide   = 60
	barBeside = 55
)

// Draw draws all of it, segments first. A store without keys has no more than their figures. Names of keys are made
// safe for a terminal by humanize.Name.
func (p Picture) Draw(seen *Report) []byte {
	var b strings.Builder
	p.segments(&b, seen)
	fmt.Fprintf(&b, "total     %6s  live %s (%s)   %s   RAM %s%s\n", humanize.Size(seen.Bytes), humanize.Size(seen.LiveBytes), humanize.Percent(seen.LiveBytes, seen.Bytes),
		seen.forecast(), humanize.Size(seen.IndexBytes), seen.perKey())
	expired := ""
	if seen.Keys.Expired > 0 {
		expired = fmt.Sprintf(", and %s that expired and is not deleted yet", humanize.Plural(seen.Keys.Expired, "key"))
		if seen.Keys.Expired > 1 {
			expired = strings.Replace(expired, "is not", "are not", 1)
		}
	}
	fmt.Fprintf(&b, "keys      %s%s\n", humanize.Count(int64(seen.Keys.Keys)), expired)
	if seen.Keys.Keys == 0 {
		return []byte(b.String())
	}
	p.types(&b, seen.Keys)
	p.lives(&b, seen.Keys)
	p.sizes(&b, seen.Keys)
	p.biggest(&b, seen.Keys)
	return []byte(b.String())
}

// segments draws a row a segment. The longest bar is the longest segment.
func (p Picture) segments(b *strings.Builder, seen *Report) {
	bar := min(max(p.Width-barBeside, barNarrow), barWide)
	longest := seen.longest()
	live, _ := p.glyph(shadeLive)
	old, _ := p.glyph(shadeOverwritten)
	gone, _ := p.glyph(shadeExpired)
	fmt.Fprintf(b, "%s live  %s overwritten  %s expired\n\n", live, old, gone)
	fmt.Fprintf(b, "segment      size  %-*s  %5s  %11s  %7s  %-5s  merge\n", bar, "", "dead", "records", "age", "hint")
	for _, s := range seen.Segments {
		drawn, cells := p.bar(s, longest, bar)
		next := "-"
		switch {
		case s.Taken:
			next = "next"
		case !s.Sealed:
			next = "active"
		}
		fmt.Fprintf(b, "%09d  %6s  %s%s  %5s  %11s  %7s  %-5s  %s\n", s.Segment, humanize.Size(s.Bytes), drawn, strings.Repeat(" ", bar-cells), s.dead(),
			humanize.Count(int64(s.Records)), s.age(seen.Time), cmp.Or(s.Hint, "-"), next)
	}
	fmt.Fprintln(b)
}

// bar draws a segment in at most width cells, to scale, and says in how many. Each share is rounded on its own
// upper bound, so that the cells of a bar add up to its length.
func (p Picture) bar(s Segment, longest int64, width int) (drawn string, cells int) {
	cell := func(bytes int64) int { return int(float64(bytes)/float64(longest)*float64(width) + 0.5) }
	sum := int64(0)
	var b strings.Builder
	for i, bytes := range []int64{s.Live, s.Overwritten, s.Expired} {
		sum += bytes
		glyph, color := p.glyph(shade(i))
		n := cell(sum) - cells
		b.WriteString(terminal.Paint(p.Color, strings.Repeat(glyph, n), color))
		cells += n
	}
	return b.String(), cells
}

// level is one of the eight heights of a cell, for a share, with a blank before it; "" for nothing, and where there is
// only ASCII.
func (p Picture) level(part, whole int64) string {
	if p.Plain || whole <= 0 || part == 0 {
		return ""
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	return " " + string(levels[min(int(float64(part)/float64(whole)*8), 7)])
}

// types draws a row a type of keys.
func (p Picture) types(b *strings.Builder, k db.Survey) {
	t := terminal.NewTable("type", "keys", "share", "elements", "on disk", "RAM", "")
	for _, s := range k.Types {
		t.Row(s.Type, humanize.Count(int64(s.Keys)), humanize.Percent(int64(s.Keys), int64(k.Keys)), elementsText(s.Elements), humanize.Size(s.Bytes), humanize.Size(s.Memory),
			strings.TrimSpace(p.level(int64(s.Keys), int64(k.Keys))))
	}
	fmt.Fprintln(b)
	_ = t.Write(b) // a Builder takes everything
}

// elementsText is a number of elements; a string has none. An empty stream looks the same.
func elementsText(n int) string {
	if n == 0 {
		return "-"
	}
	return humanize.Count(int64(n))
}

// lives draws how long the keys have to live, on one line: each class with its share of the keys.
func (p Picture) lives(b *strings.Builder, k db.Survey) {
	b.WriteString("\ntime to live  ")
	for i, d := range k.Deadlines {
		if i > 0 {
			b.WriteString("  ")
		}
		fmt.Fprintf(b, "%s %s%s", lifeText(k.Deadlines, i), humanize.Percent(int64(d.Keys), int64(k.Keys)), p.level(int64(d.Keys), int64(k.Keys)))
	}
	b.WriteString("\n")
}

// lifeText names a class of deadlines: an upper bound, or what is beyond all of them.
func lifeText(all []db.SurveyTTL, i int) string {
	switch left := all[i].Left; {
	case left < 0:
		return "none"
	case left == 0:
		return "longer"
	default:
		return "<" + humanize.Age(left)
	}
}

// sizes draws how many keys are of which size: a row a power of two. The longest row is the most common size, so bars
// of two stores cannot be compared.
func (p Picture) sizes(b *strings.Builder, k db.Survey) {
	most := int64(1)
	for _, s := range k.Sizes {
		most = max(most, int64(s.Keys))
	}
	glyph, color := p.glyph(shadeLive)
	width := min(max(p.Width-barBeside, barNarrow), barWide)
	fmt.Fprintf(b, "\nbytes on disk of a key\n")
	for _, s := range k.Sizes {
		n := int(float64(s.Keys)/float64(most)*float64(width) + 0.5)
		row := fmt.Sprintf("  up to %6s  %11s  %s", humanize.Size(s.Bytes), humanize.Count(int64(s.Keys)), terminal.Paint(p.Color, strings.Repeat(glyph, n), color))
		fmt.Fprintln(b, strings.TrimRight(row, " "))
	}
}

// biggest lists the biggest keys and groups. Names are cut to the width: a key may be 64 KiB long.
func (p Picture) biggest(b *strings.Builder, k db.Survey) {
	t := terminal.NewTable("biggest keys", "db", "type", "elements", "on disk")
	name := max(p.Width-40, 20)
	for _, s := range k.Biggest {
		t.Row(humanize.Name(s.Key, name), fmt.Sprint(s.Namespace), s.Type, elementsText(s.Elements), humanize.Size(s.Bytes))
	}
	fmt.Fprintln(b)
	_ = t.Write(b)
	t = terminal.NewTable("groups of keys", "keys", "on disk", "share")
	for _, s := range k.Prefixes {
		t.Row(groupName(s, name), humanize.Count(int64(s.Keys)), humanize.Size(s.Bytes), humanize.Percent(s.Bytes, k.Bytes))
	}
	fmt.Fprintln(b)
	_ = t.Write(b)
}
