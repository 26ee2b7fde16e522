package screen_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/screen"
)

// TestScreen: what is written, and what a terminal of three lines of eight columns shows then. | is where the cursor
// is.
func TestScreen(t *testing.T) {
	for _, test := range []struct{ name, writes, shows string }{
		{"lines", "one\r\ntwo", "one\ntwo|"},
		{"a line feed alone goes down", "one\ntwo", "one\n   two|"},
		{"scrolling", "1\r\n2\r\n3\r\n4", "2\n3\n4|"},
		{"carriage return and backspace", "abc\rx\b\by", "y|bc"},
		{"the last column", "12345678", "1234567|8"},
		{"wrapping", "123456789", "12345678\n9|"},
		{"a line break in the last column", "12345678\r\n9", "12345678\n9|"},
		{"moving from the last column", "12345678\x1b[Dx", "123456x|8"},
		{"wrapping at the bottom", "a\r\n\r\n12345678x", "\n12345678\nx|"},
		{"two columns", "日本", "日本|"},
		{"two columns do not fit", "1234567日", "1234567\n日|"},
		{"half of two columns is overwritten", "日\x1b[2Gx", " x|"},
		{"an accent of its own", "e\u0301x", "e\u0301x|"},
		{"an accent in the last column", "1234567e\u0301", "1234567|e\u0301"},
		{"an accent after two columns", "日\u0301", "日\u0301|"},
		{"up, down, left, right", "a\x1b[2Bb\x1b[Ac\x1b[3Dd\x1b[2Ce", "a\nd ce|\n b"},
		{"no further than the edges", "\x1b[9A\x1b[9Dx\x1b[9B\x1b[99Cy", "x\n\n       |y"},
		{"to a column, to a place", "abc\x1b[2Gx\x1b[3;4Hy\x1b[Hz", "z|xc\n\n   y"},
		{"erasing a line", "abcdef\x1b[3G\x1b[K", "ab|"},
		{"erasing a line up to the cursor", "abcdef\x1b[3G\x1b[1K", "  | def"},
		{"erasing a whole line", "abc\r\nabc\x1b[2K", "abc\n   |"},
		{"erasing the last column", "12345678\x1b[0K", "1234567|"},
		{"erasing below", "abc\r\nabc\r\nabc\x1b[2;2H\x1b[J", "abc\na|"},
		{"erasing above", "abc\r\nabc\r\nabc\x1b[2;2H\x1b[1J", "\n | c\nabc"},
		{"erasing everything", "abc\r\nabc\x1b[H\x1b[2J", "|"},
		{"colours", "\x1b[1;31mred\x1b[0m\x1b[?25l\x1b[?25h", "red|"},
		{"a saved place", "ab\x1b7\r\ncd\x1b8x", "abx|\ncd"},
		{"the other screen", "ab\x1b[?1049hother\x1b[?1049lx", "abx|"},
	} {
		for _, step := range []int{1, len(test.writes)} { // all at once, and byte by byte
			s := screen.New(3, 8, nil)
			for text := test.writes; text != ""; text = text[step:] {
				if _, err := s.Write([]byte(text[:step])); err != nil {
					t.Fatal(err)
				}
			}
			row, column := s.Cursor()
			lines := strings.Split(test.shows, "\n")
			for i, line := range lines {
				if before, _, ok := strings.Cut(line, "|"); ok {
					lines[i] = strings.TrimRight(strings.Replace(line, "|", "", 1), " ")
					if want := len([]rune(strings.NewReplacer("日", "日 ", "本", "本 ", "\u0301", "").Replace(before))) + 1; row != i+1 || column != want {
						t.Errorf("%s: the cursor is at %d, %d, want %d, %d", test.name, row, column, i+1, want)
					}
				}
			}
			want := strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
			if got := s.String(); got != want || len(s.Unknown()) > 0 {
				t.Errorf("%s: shows\n%swant\n%sunknown: %q", test.name, got, want, s.Unknown())
			}
		}
	}
}

// A question is answered, and what is not known is reported.
func TestQuestions(t *testing.T) {
	var answers strings.Builder
	s := screen.New(3, 8, &answers)
	if _, err := s.Write([]byte("ab\r\nc\x1b[6n\x1b[5n\x1b[5S\x1bZ\x01")); err != nil {
		t.Fatal(err)
	}
	if answers.String() != "\x1b[2;2R" {
		t.Errorf("answers %q", answers.String())
	}
	if got := strings.Join(s.Unknown(), " "); got != `"\x1b[5n" "\x1b[5S" "\x1bZ" "\x01"` {
		t.Errorf("unknown: %s", got)
	}
}
