package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// Columns for people; programs take --json.

// A table is text in columns: numbers to the right, words to the left.
type table struct {
	Rows  [][]string
	width int  // that it may have, in columns of a terminal; 0: any
	plain bool // numbers have no units: what only begins with a digit is a word
}

// NewTable starts a table with its headings.
func NewTable(headings ...string) *table { return &table{Rows: [][]string{headings}} }

// Row adds a row, with as many cells as there are headings.
func (t *table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// minColumn is how far a column is narrowed to make a table fit.
const minColumn = 8

// Write prints the table. A column is numeric if all cells below the heading start with a digit. Widths are those that
// a terminal gives the characters. Cells that do not fit are cut. Blanks at the end of a line are cut, for diffs and
// scripts.
func (t *table) Write(w io.Writer) error {
	widths := make([]int, len(t.Rows[0]))
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	t.narrow(widths)
	numeric := make([]bool, len(widths))
	for i := range numeric {
		numeric[i] = t.numeric(i)
	}
	for _, row := range t.Rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			cell = Cut(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell))
			if numeric[i] {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// narrow takes from the widest columns what is too much.
func (t *table) narrow(widths []int) {
	if t.width == 0 {
		return
	}
	total := 2 * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for total > t.width {
		widest, next := 0, 0 // the widest one, and the width of the one after it
		for i, width := range widths {
			switch {
			case width > widths[widest]:
				widest, next = i, widths[widest]
			case i != widest:
				next = max(next, width)
			}
		}
		if widths[widest] <= minColumn {
			return
		}
		less := min(total-t.width, max(widths[widest]-next, 1), widths[widest]-minColumn)
		widths[widest] -= less
		total -= less
	}
}

// Cut shortens a text to a width, in columns of a terminal.
func Cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	left, kept := width-1, 0
	for characters := uniseg.NewGraphemes(text); characters.Next(); {
		if left -= characters.Width(); left < 0 {
			break
		}
		_, kept = characters.Positions()
	}
	return text[:kept] + "…"
}

// numeric is decided by the cells that say something; a dash stands for none.
func (t *table) numeric(column int) bool {
	found := false
	for _, row := range t.Rows[1:] {
		switch cell := strings.TrimPrefix(row[column], "-"); {
		case cell == "":
		case cell[0] < '0' || cell[0] > '9':
			return false
		case t.plain && strings.Trim(cell, "0123456789.") != "":
			return false
		default:
			found = true
		}
	}
	return found
}
