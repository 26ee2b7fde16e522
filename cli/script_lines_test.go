package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestLineReader(t *testing.T) {
	l := newLineReader(strings.NewReader("a\r\n\nlast"))
	var got []string
	for {
		line, err := l.next()
		if err != nil {
			break
		}
		got = append(got, string(line))
	}
	if !slices.Equal(got, []string{"a", "", "last"}) || l.number != 3 || l.bytes != 8 {
		t.Errorf("%q, %d lines, %d bytes", got, l.number, l.bytes)
	}
}
