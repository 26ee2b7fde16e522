package conf

import (
	"errors"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// The errors of a line.
var (
	errQuotes = errors.New("unbalanced quotes")
	errBehind = errors.New("a closing quote must be followed by a blank")
	errNull   = errors.New("a NUL byte")
)

// splitArgs splits a line into its arguments. The rules are those of Redis's sdssplitargs.
func splitArgs(line string) (args []string, err error) {
	if strings.IndexByte(line, 0) >= 0 {
		return nil, errNull
	}
	words, err := resp.SplitLine([]byte(line))
	switch {
	case errors.Is(err, resp.ErrAfterQuote):
		return nil, errBehind
	case err != nil:
		return nil, errQuotes
	}
	for _, word := range words {
		args = append(args, string(word))
	}
	return args, nil
}

const blanks = " \t\r\n\v\f"

// Quote writes an argument so that splitting gives it back: as it stands if it can.
func Quote(arg string) string {
	plain := arg != ""
	for i := 0; i < len(arg) && plain; i++ {
		c := arg[i]
		plain = c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\' && (c != '#' || i > 0)
	}
	if plain {
		return arg
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(arg); i++ {
		switch c := arg[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case strings.IndexByte("\n\r\t\b\a", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte("nrtba"[strings.IndexByte("\n\r\t\b\a", c)])
		case c < ' ' || c == 0x7f:
			const digits = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
