// Package screen is a small terminal in memory, for tests of what a person sees. It knows what a line editor sends:
// letters, those of two columns too, line breaks, the cursor's movements and questions, erasing, and the other screen
// of programs that fill all of it. Colours change nothing. What it does not know it reports, so that no test compares a
// screen that a real terminal would not show.
package screen

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// A Screen has rows of columns, and a cursor. It is used by one goroutine at a time.
type Screen struct {
	rows, columns int
	cells         [][]string // What each column shows: "" after a letter of two columns, and where nothing has been written.
	row, column   int        // The cursor. It stays in the last column until the next letter wraps: then wraps is set.
	wraps         bool
	saved         [2]int
	main          [][]string // The usual screen, while the other one is shown.
	answers       io.Writer
	pending       []byte // The beginning of a letter or a sequence.
	unknown       []string
}

// New returns an empty screen. It answers to answers, as a terminal does as if by its keys, when it is asked where the
// cursor is.
func New(rows, columns int, answers io.Writer) *Screen {
	s := &Screen{rows: rows, columns: columns, answers: answers}
	s.cells = s.blank(rows)
	return s
}

func (s *Screen) blank(rows int) [][]string {
	cells := make([][]string, rows)
	for i := range cells {
		cells[i] = make([]string, s.columns)
	}
	return cells
}

// Write shows what a program writes. It fails only if an answer cannot be given.
func (s *Screen) Write(p []byte) (n int, err error) {
	s.pending = append(s.pending, p...)
	for len(s.pending) > 0 && err == nil {
		used := 0
		if used, err = s.next(s.pending); used == 0 {
			break
		}
		s.pending = s.pending[used:]
	}
	return len(p), err
}

// String is what is shown, without blanks at the ends of lines and empty lines at the end.
func (s *Screen) String() string {
	var b strings.Builder
	for _, row := range s.cells {
		var line strings.Builder
		for i := 0; i < len(row); i++ {
			letter := row[i]
			if letter == "" {
				letter = " "
			}
			line.WriteString(letter)
			if uniseg.StringWidth(letter) == 2 {
				i++
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Cursor is where the next letter goes, from 1 on as terminals count. After the last column it is still there.
func (s *Screen) Cursor() (row, column int) { return s.row + 1, s.column + 1 }

// Unknown are the sequences that it did not obey.
func (s *Screen) Unknown() []string { return s.unknown }

// next obeys what p begins with, and returns its length; 0 if it is not whole yet.
func (s *Screen) next(p []byte) (used int, err error) {
	switch c := p[0]; {
	case c == '\x1b':
		return s.escape(p)
	case c == '\r':
		s.move(s.row, 0)
	case c == '\n':
		s.lineFeed()
	case c == '\b':
		s.move(s.row, s.column-1)
	case c == '\a':
	case c < ' ' || c == 0x7f:
		s.unknown = append(s.unknown, strconv.Quote(string(c)))
	case !utf8.FullRune(p):
		return 0, nil
	default:
		r, size := utf8.DecodeRune(p)
		s.put(string(r))
		return size, nil
	}
	return 1, nil
}

// put writes a letter at the cursor. One without a width of its own joins the letter before.
func (s *Screen) put(letter string) {
	width := uniseg.StringWidth(letter)
	if width == 0 {
		at := s.column
		if !s.wraps {
			at--
		}
		for at > 0 && s.cells[s.row][at] == "" {
			at--
		}
		if at >= 0 {
			s.cells[s.row][at] += letter
		}
		return
	}
	if s.wraps || s.column+width > s.columns {
		s.column = 0
		s.lineFeed()
	}
	if s.column > 0 && uniseg.StringWidth(s.cells[s.row][s.column-1]) == 2 {
		s.cells[s.row][s.column-1] = "" // only half of it is left
	}
	for i := range width {
		s.cells[s.row][s.column+i] = ""
	}
	s.cells[s.row][s.column] = letter
	s.column += width
	if s.wraps = s.column == s.columns; s.wraps {
		s.column--
	}
}

// lineFeed goes a line down, where the last line makes the others scroll.
func (s *Screen) lineFeed() {
	s.wraps = false
	if s.row++; s.row == s.rows {
		s.row--
		s.cells = append(s.cells[1:], s.blank(1)...)
	}
}

// move places the cursor, within the screen.
func (s *Screen) move(row, column int) {
	s.row, s.column, s.wraps = min(max(row, 0), s.rows-1), min(max(column, 0), s.columns-1), false
}

// escape obeys a sequence that begins with ESC.
func (s *Screen) escape(p []byte) (used int, err error) {
	if len(p) < 2 {
		return 0, nil
	}
	switch p[1] {
	case 'D':
		s.lineFeed()
	case '7':
		s.saved = [2]int{s.row, s.column}
	case '8':
		s.move(s.saved[0], s.saved[1])
	case '[':
		end := bytes.IndexFunc(p[2:], func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return 0, nil
		}
		used = 2 + end + 1
		return used, s.control(string(p[2:used-1]), p[used-1])
	default:
		s.unknown = append(s.unknown, strconv.Quote(string(p[:2])))
	}
	return 2, nil
}

// control obeys ESC [ arguments final.
func (s *Screen) control(arguments string, final byte) error {
	first, second, _ := strings.Cut(arguments, ";")
	number := func(text string, otherwise int) int {
		if n, err := strconv.Atoi(text); err == nil && (n > 0 || final == 'J' || final == 'K') {
			return n
		}
		return otherwise
	}
	switch n := number(first, 1); final {
	case 'A':
		s.move(s.row-n, s.column)
	case 'B':
		s.move(s.row+n, s.column)
	case 'C':
		s.move(s.row, s.column+n)
	case 'D':
		s.move(s.row, s.column-n)
	case 'G':
		s.move(s.row, n-1)
	case 'H':
		s.move(n-1, number(second, 1)-1)
	case 'J':
		s.erase(s.cells, number(first, 0))
	case 'K':
		s.erase(s.cells[s.row:s.row+1], number(first, 0))
	case 'm', 'q': // colours, the shape of the cursor
	case 'n':
		if arguments == "6" {
			row, column := s.Cursor()
			_, err := fmt.Fprintf(s.answers, "\x1b[%d;%dR", row, column)
			return err
		}
		fallthrough
	default:
		if !s.mode(arguments + string(final)) {
			s.unknown = append(s.unknown, strconv.Quote("\x1b["+arguments+string(final)))
		}
	}
	return nil
}

// erase empties lines, of which one is that of the cursor: from the cursor on (0), up to it (1), or all (2).
func (s *Screen) erase(lines [][]string, which int) {
	cursor := s.column
	if len(lines) > 1 {
		cursor += s.row * s.columns
	}
	for i := range len(lines) * s.columns {
		if which == 2 || which == 1 && i <= cursor || which == 0 && i >= cursor {
			lines[i/s.columns][i%s.columns] = ""
		}
	}
	s.wraps = false
}

// mode obeys what switches something on (h) or off (l).
func (s *Screen) mode(arguments string) bool {
	switch arguments {
	case "?25h", "?25l", "?2004h", "?2004l": // Whether the cursor is seen, and pasted text is marked.
	case "?1049h":
		s.main, s.saved = s.cells, [2]int{s.row, s.column}
		s.cells = s.blank(s.rows)
	case "?1049l":
		if s.main != nil {
			s.cells, s.main = s.main, nil
			s.move(s.saved[0], s.saved[1])
		}
	default:
		return false
	}
	return true
}
