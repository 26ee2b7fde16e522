package resp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrUnbalancedQuotes means that a line opened a quote it did not close, or closed one in the middle of a word.
var ErrUnbalancedQuotes = errors.New("unbalanced quotes in request")

// ErrAfterQuote is ErrUnbalancedQuotes where a closing quote is followed by something else than white space or the end.
var ErrAfterQuote = fmt.Errorf("%w", ErrUnbalancedQuotes)

// SplitLine splits a line into arguments by the rules that redis-cli and inline commands share: words are separated by
// white space; "..." knows the escapes \n \r \t \b \a \xHH and a backslash before any other byte; '...' knows only \';
// a closing quote must be followed by white space or the end. An empty or blank line gives no arguments.
func SplitLine(line []byte) ([][]byte, error) {
	var args [][]byte
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		// A NUL ends the line, as it does for the C string that Redis sees.
		if i == len(line) || line[i] == 0 {
			return args, nil
		}
		arg, next, err := splitWord(line, i)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		i = next
	}
}

// splitWord reads one word from line[i:] and returns where it ended.
func splitWord(line []byte, i int) ([]byte, int, error) {
	word := []byte{}
	var err error
	for i < len(line) {
		switch c := line[i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 0: // not \v and \f: Redis keeps those inside a word
			return word, i, nil
		case c == '"':
			if word, i, err = splitDouble(word, line, i+1); err != nil {
				return nil, 0, err
			}
			return word, i, nil
		case c == '\'':
			if word, i, err = splitSingle(word, line, i+1); err != nil {
				return nil, 0, err
			}
			return word, i, nil
		default:
			word = append(word, c)
			i++
		}
	}
	return word, i, nil
}

func splitDouble(word, line []byte, i int) ([]byte, int, error) {
	for i < len(line) && line[i] != 0 {
		c := line[i]
		switch {
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2:i+4]):
			word, _ = hex.AppendDecode(word, line[i+2:i+4])
			i += 4
		case c == '\\' && i+1 < len(line):
			word = append(word, unescape(line[i+1]))
			i += 2
		case c == '"':
			return closeQuote(word, line, i+1)
		default:
			word = append(word, c)
			i++
		}
	}
	return nil, 0, ErrUnbalancedQuotes
}

func splitSingle(word, line []byte, i int) ([]byte, int, error) {
	for i < len(line) && line[i] != 0 {
		c := line[i]
		switch {
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			word = append(word, '\'')
			i += 2
		case c == '\'':
			return closeQuote(word, line, i+1)
		default:
			word = append(word, c)
			i++
		}
	}
	return nil, 0, ErrUnbalancedQuotes
}

// closeQuote checks that a word ends right after its closing quote.
func closeQuote(word, line []byte, i int) ([]byte, int, error) {
	if i < len(line) && !isSpace(line[i]) && line[i] != 0 {
		return nil, 0, ErrAfterQuote
	}
	return word, i, nil
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(digits []byte) bool { return len(bytes.Trim(digits, "0123456789abcdefABCDEF")) == 0 }

// AppendQuoted appends b in double quotes so that it is one printable line which [SplitLine] reads back as b.
func AppendQuoted(dst, b []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range b {
		switch c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\a':
			dst = append(dst, '\\', 'a')
		case '\b':
			dst = append(dst, '\\', 'b')
		default:
			if c >= ' ' && c <= '~' {
				dst = append(dst, c)
			} else {
				dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
			}
		}
	}
	return append(dst, '"')
}
