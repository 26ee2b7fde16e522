package main

import (
	"fmt"
	"io"
	"strings"
)

// row is one line of a table. A row of which nothing was measured is left out.
type row struct {
	label  string
	cells  []cell
	target string
	met    func(v float64) bool // of the last cell; nil: no target
	each   bool                 // every cell must meet it
}

// cell shows one figure, or a function of several; without figures, nothing.
type cell struct {
	figures []string
	value   func(v []float64) float64 // nil: the first figure
	format  func(v float64) string
}

type table struct {
	title   string
	columns []string // after the label; target and verdict are added
	rows    []row
}

func fig(format func(float64) string, name string) cell { return cell{[]string{name}, nil, format} }

func micros(v float64) string { return fmt.Sprintf("%.2f us", v/1e3) }
func millis(v float64) string { return fmt.Sprintf("%.1f ms", v/1e6) }
func times(v float64) string  { return fmt.Sprintf("%.2f x", v) }
func octets(v float64) string { return fmt.Sprintf("%.1f B", v) }
func mega(v float64) string   { return fmt.Sprintf("%.0f MB", v/1e6) }

func atMost(limit float64) func(float64) bool { return func(v float64) bool { return v <= limit } }

func atLeast(limit float64) func(float64) bool { return func(v float64) bool { return v >= limit } }

// printTables prints every table of which something was measured.
func printTables(out io.Writer, f figures) error {
	for _, t := range tables {
		var lines []string
		for _, r := range t.rows {
			if line, ok := r.line(f); ok {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		head := append(append([]string{t.title}, t.columns...), "target", "met")
		_, err := fmt.Fprintf(out, "\n| %s |\n|%s\n%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)), strings.Join(lines, "\n"))
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *row) line(f figures) (string, bool) {
	cells := []string{r.label}
	var measured, judged, met int
	for i, c := range r.cells {
		v, ok := c.of(f)
		if !ok {
			cells = append(cells, "")
			continue
		}
		measured++
		cells = append(cells, c.format(v))
		if r.met != nil && (r.each || i == len(r.cells)-1) {
			judged++
			if r.met(v) {
				met++
			}
		}
	}
	verdict := ""
	if judged > 0 {
		verdict = "no"
		if met == judged {
			verdict = "yes"
		}
	}
	return "| " + strings.Join(append(cells, r.target, verdict), " | ") + " |", measured > 0
}

// of returns the value of the cell, if its figures were measured.
func (c *cell) of(f figures) (float64, bool) {
	if len(c.figures) == 0 {
		return 0, false
	}
	in := make([]float64, len(c.figures))
	for i, name := range c.figures {
		v, ok := f.median(name)
		if !ok {
			return 0, false
		}
		in[i] = v
	}
	if c.value != nil {
		return c.value(in), true
	}
	return in[0], true
}
