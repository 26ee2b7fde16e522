package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// row is one line of a table. A row of which nothing was measured, and nothing has failed, is left out.
type row struct {
	label  string
	cells  []cell
	target string
	met    func(v float64) bool // of the last cell; nil: no target
	each   bool                 // every cell must meet it
}

// cell shows one figure, or a function of several; without figures, nothing.
type cell struct {
	of       func(f figures) (float64, bool) // nil: nothing
	format   func(v float64) string
	names    []string // of the figures that it is made of
	unjudged bool     // has no part in the verdict
}

// text is the cell in a table. What failed says so: instead of a figure, or after those of other runs and steps.
func (c *cell) text(f figures) (text string, v float64, measured, failed bool) {
	if c.of == nil {
		return "", 0, false, false
	}
	failed = slices.ContainsFunc(c.names, f.failed)
	v, measured = c.of(f)
	switch {
	case measured && failed:
		return c.format(v) + ", failed", v, true, true
	case measured:
		return c.format(v), v, true, false
	case failed:
		return "failed", 0, false, true
	}
	return "", 0, false, false
}

type table struct {
	title   string
	columns []string // after the label; target and verdict are added
	rows    []row
}

// fig shows one figure.
func fig(format func(float64) string, name string) cell {
	return cell{names: []string{name}, of: func(f figures) (float64, bool) { return f.median(name) }, format: format}
}

// calc shows a function of figures all of which are there.
func calc(format func(float64) string, value func(v []float64) float64, names ...string) cell {
	return cell{names: names, format: format, of: func(f figures) (float64, bool) {
		in := make([]float64, len(names))
		for i, name := range names {
			v, ok := f.median(name)
			if !ok {
				return 0, false
			}
			in[i] = v
		}
		return value(in), true
	}}
}

// each shows what one entry takes: the difference of two figures over the
// number of entries.
func each(full, base, entries string) cell {
	return calc(octets, func(v []float64) float64 { return (v[0] - v[1]) / v[2] }, full, base, entries)
}

func micros(v float64) string { return fmt.Sprintf("%.2f us", v/1e3) }
func millis(v float64) string { return fmt.Sprintf("%.1f ms", v/1e6) }
func times(v float64) string  { return fmt.Sprintf("%.2f x", v) }
func octets(v float64) string { return fmt.Sprintf("%.1f B", v) }
func count(v float64) string  { return fmt.Sprintf("%.0f", v) }
func mega(v float64) string   { return fmt.Sprintf("%.0f MB", v/1e6) }

func atMost(limit float64) func(float64) bool { return func(v float64) bool { return v <= limit } }

func atLeast(limit float64) func(float64) bool { return func(v float64) bool { return v >= limit } }

// printTables prints every table of which something was measured.
func printTables(out io.Writer, f figures) error {
	for _, t := range tables {
		var lines []string
		for _, r := range t.rows {
			if line, ok := r.line(f, t.targeted()); ok {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		head := append([]string{t.title}, t.columns...)
		if t.targeted() {
			head = append(head, "target", "met")
		}
		_, err := fmt.Fprintf(out, "\n| %s |\n|%s\n%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)), strings.Join(lines, "\n"))
		if err != nil {
			return err
		}
	}
	return nil
}

// targeted says whether any row has something to be met.
func (t *table) targeted() bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return r.target != "" })
}

func (r *row) line(f figures, targeted bool) (string, bool) {
	cells := []string{r.label}
	var shown, judged, met int
	for i, c := range r.cells {
		text, v, measured, failed := c.text(f)
		cells = append(cells, text)
		if !measured && !failed {
			continue
		}
		shown++
		if r.met != nil && !c.unjudged && (r.each || i == len(r.cells)-1) {
			judged++
			if measured && !failed && r.met(v) {
				met++
			}
		}
	}
	if targeted {
		verdict := ""
		if judged > 0 {
			verdict = "no"
			if met == judged {
				verdict = "yes"
			}
		}
		cells = append(cells, r.target, verdict)
	}
	return "| " + strings.Join(cells, " | ") + " |", shown > 0
}
