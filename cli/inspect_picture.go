package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// The picture for a terminal. Three shades tell live, overwritten and expired bytes apart, so that colours only add to it.

// A picture says how to draw: how many columns there are, and what the terminal can show.
type picture struct {
	width int
	color bool
	plain bool // ASCII only
}

// A shade is what a cell of a bar stands for.
type shade int

const (
	shadeLive shade = iota
	shadeOverwritten
	shadeExpired
)

// glyph is a cell of a shade, and its colour as an SGR parameter.
func (p picture) glyph(s shade) (cell, color string) {
	cells, colors := []string{"█", "░", "▒"}, []string{"32", "90", "33"}
	if p.plain {
		cells = []string{"#", ".", "x"}
	}
	return cells[s], colors[s]
}

// paint is text in a colour, if there are colours.
func (p picture) paint(text, color string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// The narrowest and the widest bar, and the columns of a row that are not the bar.
const (
	barNarrow = 10
	barWide   = 60
	barBeside = 55
)

// draw draws all of it.
func (p picture) draw(seen *inspection) []byte {
	var b strings.Builder
	p.segments(&b, seen)
	fmt.Fprintf(&b, "total     %6s  live %s (%s)   %s   RAM %s%s\n", terminal.Size(seen.Bytes), terminal.Size(seen.LiveBytes), terminal.Percent(seen.LiveBytes, seen.Bytes),
		mergeForecast(seen), terminal.Size(seen.IndexBytes), perKey(seen.IndexBytes, seen.Keys.Keys+seen.Keys.Expired))
	expired := ""
	if seen.Keys.Expired > 0 {
		expired = fmt.Sprintf(", and %s that expired and is not deleted yet", terminal.Plural(seen.Keys.Expired, "key"))
		if seen.Keys.Expired > 1 {
			expired = strings.Replace(expired, "is not", "are not", 1)
		}
	}
	fmt.Fprintf(&b, "keys      %s%s\n", terminal.Count(int64(seen.Keys.Keys)), expired)
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
func (p picture) segments(b *strings.Builder, seen *inspection) {
	bar := min(max(p.width-barBeside, barNarrow), barWide)
	longest := int64(1)
	for _, s := range seen.Segments {
		longest = max(longest, s.Bytes)
	}
	live, _ := p.glyph(shadeLive)
	old, _ := p.glyph(shadeOverwritten)
	gone, _ := p.glyph(shadeExpired)
	fmt.Fprintf(b, "%s live  %s overwritten  %s expired\n\n", live, old, gone)
	fmt.Fprintf(b, "segment      size  %-*s  %5s  %11s  %7s  %-5s  merge\n", bar, "", "dead", "records", "age", "hint")
	for _, s := range seen.Segments {
		drawn, cells := p.bar(s, longest, bar)
		dead, age, next := "-", "-", "-"
		if s.Records > 0 {
			dead = terminal.Percent(s.Overwritten+s.Expired, s.Bytes)
		}
		if s.Time != nil {
			age = ageText(seen.Time.Sub(*s.Time))
		}
		switch {
		case s.Taken:
			next = "next"
		case !s.Sealed:
			next = "active"
		}
		fmt.Fprintf(b, "%09d  %6s  %s%s  %5s  %11s  %7s  %-5s  %s\n", s.Segment, terminal.Size(s.Bytes), drawn, strings.Repeat(" ", bar-cells), dead,
			terminal.Count(int64(s.Records)), age, orDefault(s.Hint, "-"), next)
	}
	fmt.Fprintln(b)
}

// bar draws a segment in at most width cells, to scale, and says in how many. Each share is rounded on its own
// upper bound, so that the cells of a bar add up to its length.
func (p picture) bar(s inspectSegment, longest int64, width int) (drawn string, cells int) {
	cell := func(bytes int64) int { return int(float64(bytes)/float64(longest)*float64(width) + 0.5) }
	sum := int64(0)
	var b strings.Builder
	for i, bytes := range []int64{s.Live, s.Overwritten, s.Expired} {
		sum += bytes
		glyph, color := p.glyph(shade(i))
		n := cell(sum) - cells
		b.WriteString(p.paint(strings.Repeat(glyph, n), color))
		cells += n
	}
	return b.String(), cells
}

// mergeForecast says what the next merge would do.
func mergeForecast(seen *inspection) string {
	m := seen.Merge
	if m.Segments == 0 {
		return "nothing to merge"
	}
	when := "merge would"
	if !m.Due {
		when = "no merge is due, one would"
	}
	return fmt.Sprintf("%s reclaim %s in %d of %s, write %s", when, terminal.Size(m.Reclaims), m.Segments, terminal.Plural(len(seen.Segments), "segment"), terminal.Size(m.Writes))
}

// level is one of the eight heights of a cell, for a share.
func (p picture) level(part, whole int64) string {
	if p.plain || whole <= 0 || part == 0 {
		return ""
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	return " " + string(levels[min(int(float64(part)/float64(whole)*8), 7)])
}

func (p picture) types(b *strings.Builder, k db.Survey) {
	t := terminal.NewTable("type", "keys", "share", "elements", "on disk", "RAM", "")
	for _, s := range k.Types {
		elements := "-"
		if s.Elements > 0 {
			elements = terminal.Count(int64(s.Elements))
		}
		t.Row(s.Type, terminal.Count(int64(s.Keys)), terminal.Percent(int64(s.Keys), int64(k.Keys)), elements, terminal.Size(s.Bytes), terminal.Size(s.Memory),
			strings.TrimSpace(p.level(int64(s.Keys), int64(k.Keys))))
	}
	fmt.Fprintln(b)
	_ = t.Write(b) // a Builder takes everything
}

// lives draws how long the keys have to live.
func (p picture) lives(b *strings.Builder, k db.Survey) {
	b.WriteString("\ntime to live  ")
	for i, d := range k.Deadlines {
		if i > 0 {
			b.WriteString("  ")
		}
		fmt.Fprintf(b, "%s %s%s", lifeText(k.Deadlines, i), terminal.Percent(int64(d.Keys), int64(k.Keys)), p.level(int64(d.Keys), int64(k.Keys)))
	}
	b.WriteString("\n")
}

// lifeText names a class of deadlines.
func lifeText(all []db.SurveyTTL, i int) string {
	switch left := all[i].Left; {
	case left < 0:
		return "none"
	case left == 0:
		return "longer"
	default:
		return "<" + ageText(left)
	}
}

// sizes draws how many keys are of which size: a row a power of two.
func (p picture) sizes(b *strings.Builder, k db.Survey) {
	most := int64(1)
	for _, s := range k.Sizes {
		most = max(most, int64(s.Keys))
	}
	glyph, color := p.glyph(shadeLive)
	width := min(max(p.width-barBeside, barNarrow), barWide)
	fmt.Fprintf(b, "\nbytes on disk of a key\n")
	for _, s := range k.Sizes {
		n := int(float64(s.Keys)/float64(most)*float64(width) + 0.5)
		row := fmt.Sprintf("  up to %6s  %11s  %s", terminal.Size(s.Bytes), terminal.Count(int64(s.Keys)), p.paint(strings.Repeat(glyph, n), color))
		fmt.Fprintln(b, strings.TrimRight(row, " "))
	}
}

// biggest lists the biggest keys and groups. Names are cut to the width: a key may be 64 KiB long.
func (p picture) biggest(b *strings.Builder, k db.Survey) {
	t := terminal.NewTable("biggest keys", "db", "type", "elements", "on disk")
	name := max(p.width-40, 20)
	for _, s := range k.Biggest {
		elements := "-"
		if s.Elements > 0 {
			elements = terminal.Count(int64(s.Elements))
		}
		t.Row(shortText(s.Key, name), fmt.Sprint(s.Namespace), s.Type, elements, terminal.Size(s.Bytes))
	}
	fmt.Fprintln(b)
	_ = t.Write(b)
	t = terminal.NewTable("groups of keys", "keys", "on disk", "share")
	for _, s := range k.Prefixes {
		label := shortText(s.Prefix, name)
		if s.Prefix == "" {
			label = "(others)"
		}
		t.Row(label, terminal.Count(int64(s.Keys)), terminal.Size(s.Bytes), terminal.Percent(s.Bytes, k.Bytes))
	}
	fmt.Fprintln(b)
	_ = t.Write(b)
}

// shortText is a name as a terminal may show it, in at most n characters: quoted if it is not plain text.
func shortText(name string, n int) string {
	text := name[:min(len(name), 4*n)]
	for len(text) < len(name) && len(text) > 0 && !utf8.RuneStart(name[len(text)]) {
		text = text[:len(text)-1] // within a character
	}
	cut := len(text) < len(name)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = string(resp.AppendQuoted(nil, []byte(text)))
	}
	runes := []rune(text)
	if len(runes) <= n && !cut {
		return text
	}
	return string(runes[:min(n-1, len(runes))]) + "…"
}

// ageText writes a time of any length in a few characters: 12s, 5m, 3h, 3d 4h.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%day < time.Hour || d >= 10*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}
