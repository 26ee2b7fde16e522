package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Columns for people; programs take --json.

// A table is text in columns: numbers to the right, words to the left.
type table struct {
	rows [][]string
}

// newTable starts a table with its headings.
func newTable(headings ...string) *table { return &table{rows: [][]string{headings}} }

// row adds a row, with as many cells as there are headings.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table. A column is numeric if its cells below the heading start with a digit.
// Widths count characters, not bytes. Blanks at the end of a line are cut, for diffs and scripts.
func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.numeric(i) {
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

// numeric decides by the first cell that says something: all cells of a column are of one kind, and
// a dash stands for none.
func (t *table) numeric(column int) bool {
	for _, row := range t.rows[1:] {
		if cell := row[column]; cell != "" && cell != "-" {
			return cell[0] >= '0' && cell[0] <= '9'
		}
	}
	return false
}
