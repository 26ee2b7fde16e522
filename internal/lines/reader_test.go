package lines

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// all reads to the end.
func all(l *Reader) (got []string, err error) {
	for {
		line, err := l.Next()
		if err != nil {
			return got, err
		}
		got = append(got, string(line))
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", bufferBytes+1)
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"one break", "\n", []string{""}},
		{"the last without a break", "a\r\n\nlast", []string{"a", "", "last"}},
		{"a return within a line stays", "a\rb\n", []string{"a\rb"}},
		{"two returns", "a\r\r\n", []string{"a\r"}},
		{"a return at the end", "a\r", []string{"a"}},
		{"byte order mark", "\xef\xbb\xbfa\n\xef\xbb\xbfb\n", []string{"a", "\xef\xbb\xbfb"}},
		{"longer than the buffer", long + "\n" + long, []string{long, long}},
		{"NUL", "a\x00b\n", []string{"a\x00b"}},
	}
	for _, test := range tests {
		for _, r := range []io.Reader{strings.NewReader(test.text), iotest.OneByteReader(strings.NewReader(test.text))} {
			l := NewReader(r)
			got, err := all(l)
			if err != io.EOF || !slices.Equal(got, test.want) {
				t.Errorf("%s: %.40q, %v", test.name, got, err)
			}
			if l.Number() != len(test.want) || l.Bytes() != int64(len(test.text)) {
				t.Errorf("%s: %d lines, %d bytes", test.name, l.Number(), l.Bytes())
			}
		}
	}
}

// A line beyond the limit is an error with its number, long before memory runs out.
func TestLineTooLong(t *testing.T) {
	l := NewReader(strings.NewReader("a\n" + strings.Repeat("x", 600) + "\nb\n"))
	l.max = 500
	got, err := all(l)
	if len(got) != 1 || err == nil || err.Error() != "line 2 is longer than 500 bytes" {
		t.Errorf("%q, %v", got, err)
	}
}

// An error of the input is passed on, after the lines before it; the piece of a line before it is dropped.
func TestReadError(t *testing.T) {
	broken := errors.New("broken pipe")
	l := NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
	got, err := all(l)
	if !slices.Equal(got, []string{"a"}) || !errors.Is(err, broken) || l.Number() != 1 {
		t.Errorf("%q, %v, %d lines", got, err, l.Number())
	}
}

func TestWaiting(t *testing.T) {
	r, w := io.Pipe()
	l := NewReader(r)
	go func() {
		io.WriteString(w, "a\nb\n")
		io.WriteString(w, "c\n")
		w.Close()
	}()
	for _, want := range []bool{false, true, true} { // b has come with a; c has not
		if _, err := l.Next(); err != nil || l.Waiting() != want {
			t.Errorf("line %d: waiting %v, %v", l.Number(), l.Waiting(), err)
		}
	}
}

func TestSkip(t *testing.T) {
	for line, want := range map[string]bool{"": true, " \t\r": true, "#": true, "  # a": true, "a # b": false, "{": false} {
		if Skip([]byte(line)) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
