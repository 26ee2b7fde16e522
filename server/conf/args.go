package conf

import (
	"errors"
	"strings"
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
	for {
		line = strings.TrimLeft(line, blanks)
		if line == "" {
			return args, nil
		}
		var arg string
		if arg, line, err = nextArg(line); err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
}

const blanks = " \t\r\n\v\f"

// nextArg takes one argument off a line that begins with it.
func nextArg(line string) (arg, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			return b.String(), line[i:], nil
		case c == '"' || c == '\'':
			text, n, err := quoted(line[i:])
			if err != nil {
				return "", "", err
			}
			b.WriteString(text)
			return b.String(), line[i+n:], nil
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", nil
}

// quoted reads a text in quotes, and returns it and how many bytes it takes. A blank or the end of the line
// must follow.
func quoted(line string) (text string, n int, err error) {
	quote := line[0]
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			if i+1 < len(line) && strings.IndexByte(blanks, line[i+1]) < 0 {
				return "", 0, errBehind
			}
			return b.String(), i + 1, nil
		case c != '\\' || i+1 == len(line):
			b.WriteByte(c)
		case quote == '\'':
			if line[i+1] != '\'' {
				b.WriteByte(c)
				continue
			}
			b.WriteByte('\'')
			i++
		default:
			taken, value := escape(line[i+1:])
			b.WriteByte(value)
			i += taken
		}
	}
	return "", 0, errQuotes
}

// escape reads what follows a backslash within double quotes: how many bytes, and which byte they mean.
func escape(s string) (taken int, value byte) {
	if s[0] == 'x' && len(s) >= 3 {
		high, low := hexDigit(s[1]), hexDigit(s[2])
		if high >= 0 && low >= 0 {
			return 3, byte(high<<4 | low)
		}
	}
	if i := strings.IndexByte("nrtba", s[0]); i >= 0 {
		return 1, "\n\r\t\b\a"[i]
	}
	return 1, s[0]
}

// hexDigit is the value of a hexadecimal digit, -1 for what is none.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

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
