package cli

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A jsonReader reads one line of JSON front to back. An import reads millions of
// lines, and it must not lose a byte of them: encoding/json replaces what is no
// UTF-8 by U+FFFD, takes "KEY" for "key", keeps one of two equal names and
// makes a dozen allocations before the first value. This reader does none of
// that; a fuzz test holds it against encoding/json for everything else.
type jsonReader struct {
	data []byte
	pos  int
}

// maxDepth is how deeply values may be nested; no record needs more than 3.
const maxDepth = 100

// newJSONReader checks once that the line is UTF-8.
func newJSONReader(line []byte) (*jsonReader, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("not valid UTF-8: write binary data as keyB64, valueB64 or {\"b64\":\"...\"}")
	}
	return &jsonReader{data: line}, nil
}

// next skips blanks and returns the byte that the next token starts with, 0 at
// the end.
func (r *jsonReader) next() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// expected is the error for anything other than what. If the line has ended,
// or goes on with what can start no value, that is the news.
func (r *jsonReader) expected(what string) error {
	if r.next() == 0 {
		return errors.New("JSON: the line ends too early")
	}
	return fmt.Errorf("JSON: expected %s, found %s at byte %d", what, r.describe(), r.pos+1)
}

// take consumes one given byte.
func (r *jsonReader) take(c byte, what string) error {
	if r.next() != c {
		return r.expected(what)
	}
	r.pos++
	return nil
}

// object calls member for each name of an object; member consumes the value.
func (r *jsonReader) object(what string, member func(name string) error) error {
	if err := r.take('{', what); err != nil {
		return err
	}
	for first := true; r.next() != '}'; first = false {
		if !first {
			if err := r.take(',', "',' or '}'"); err != nil {
				return err
			}
		}
		name, err := r.text("the name of a member")
		if err != nil {
			return err
		}
		if err := r.take(':', "':'"); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	r.pos++
	return nil
}

// array calls element for each element of an array; element consumes it.
func (r *jsonReader) array(what string, element func() error) error {
	if err := r.take('[', what); err != nil {
		return err
	}
	for first := true; r.next() != ']'; first = false {
		if !first {
			if err := r.take(',', "',' or ']'"); err != nil {
				return err
			}
		}
		if err := element(); err != nil {
			return err
		}
	}
	r.pos++
	return nil
}

// raw consumes one value of any kind and returns it as it was written.
func (r *jsonReader) raw() ([]byte, error) {
	r.next()
	start := r.pos
	if err := r.skip(0); err != nil {
		return nil, err
	}
	return r.data[start:r.pos], nil
}

// skip consumes one value.
func (r *jsonReader) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("JSON: nested too deeply at byte %d", r.pos+1)
	}
	switch c := r.next(); {
	case c == '{':
		return r.object("", func(string) error { return r.skip(depth + 1) })
	case c == '[':
		return r.array("", func() error { return r.skip(depth + 1) })
	case c == '"':
		_, err := r.text("")
		return err
	case c == '-' || c >= '0' && c <= '9':
		_, err := r.number("")
		return err
	}
	for _, literal := range []string{"true", "false", "null"} {
		if r.has(literal) {
			r.pos += len(literal)
			return nil
		}
	}
	return r.expected("a value")
}

// has reports whether the line goes on with a literal.
func (r *jsonReader) has(literal string) bool {
	return len(r.data)-r.pos >= len(literal) && string(r.data[r.pos:r.pos+len(literal)]) == literal
}

// text consumes a JSON string.
func (r *jsonReader) text(what string) (string, error) {
	if err := r.take('"', what); err != nil {
		return "", err
	}
	start := r.pos
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			s := string(r.data[start:r.pos])
			r.pos++
			return s, nil
		case c == '\\':
			return r.escaped(append([]byte(nil), r.data[start:r.pos]...))
		case c < ' ':
			return "", fmt.Errorf("JSON: control character %q within a string at byte %d", c, r.pos+1)
		}
		r.pos++
	}
	return "", errors.New("JSON: the line ends within a string")
}

// escaped is text from the first backslash on; out is what stands before it.
func (r *jsonReader) escaped(out []byte) (string, error) {
	for r.pos < len(r.data) {
		c := r.data[r.pos]
		r.pos++
		switch {
		case c == '"':
			return string(out), nil
		case c < ' ':
			return "", fmt.Errorf("JSON: control character %q within a string at byte %d", c, r.pos)
		case c != '\\':
			out = append(out, c)
		default:
			var err error
			if out, err = r.escape(out); err != nil {
				return "", err
			}
		}
	}
	return "", errors.New("JSON: the line ends within a string")
}

// escape consumes what follows a backslash.
func (r *jsonReader) escape(out []byte) ([]byte, error) {
	if r.pos == len(r.data) {
		return out, errors.New("JSON: the line ends within a string")
	}
	c := r.data[r.pos]
	r.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
		u, err := r.hex4()
		if err != nil {
			return out, err
		}
		if !utf16.IsSurrogate(u) {
			return utf8.AppendRune(out, u), nil
		}
		if r.has(`\u`) {
			r.pos += 2
			low, err := r.hex4()
			if err != nil {
				return out, err
			}
			if pair := utf16.DecodeRune(u, low); pair != utf8.RuneError {
				return utf8.AppendRune(out, pair), nil
			}
		}
		return out, fmt.Errorf(`JSON: half a surrogate pair at byte %d: write binary data as base64`, r.pos)
	}
	return out, fmt.Errorf("JSON: unknown escape \\%c at byte %d", c, r.pos)
}

// hex4 consumes four hex digits.
func (r *jsonReader) hex4() (rune, error) {
	if len(r.data)-r.pos >= 4 {
		if v, err := strconv.ParseUint(string(r.data[r.pos:r.pos+4]), 16, 16); err == nil {
			r.pos += 4
			return rune(v), nil
		}
	}
	return 0, fmt.Errorf(`JSON: \u without four hex digits at byte %d`, r.pos+1)
}

// number consumes a number and returns it as it was written.
func (r *jsonReader) number(what string) (string, error) {
	if c := r.next(); c != '-' && (c < '0' || c > '9') {
		return "", r.expected(what)
	}
	start := r.pos
	digits := func() bool {
		from := r.pos
		for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
			r.pos++
		}
		return r.pos > from
	}
	one := func(set string) bool {
		for i := range len(set) {
			if r.pos < len(r.data) && r.data[r.pos] == set[i] {
				r.pos++
				return true
			}
		}
		return false
	}
	one("-")
	good := one("0") || digits()
	if good && one(".") {
		good = digits()
	}
	if good && one("eE") {
		one("+-")
		good = digits()
	}
	if !good {
		return "", fmt.Errorf("JSON: malformed number at byte %d", start+1)
	}
	return string(r.data[start:r.pos]), nil
}

// bytes consumes one string in any of its forms: a JSON string, a number (its
// digits as written), or {"b64":"..."}.
func (r *jsonReader) bytes(what string) (string, error) {
	switch c := r.next(); {
	case c == '"':
		return r.text(what)
	case c == '-' || c >= '0' && c <= '9':
		return r.number(what)
	case c == '{':
		data, found := "", false
		err := r.object(what, func(name string) (err error) {
			if name != "b64" || found {
				return fmt.Errorf(`%s must be a string or {"b64":"..."}, not another object`, what)
			}
			found = true
			data, err = r.base64(what)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf(`%s must be a string or {"b64":"..."}, not another object`, what)
		}
		return data, err
	}
	return "", r.expected(what + ` as a string or {"b64":"..."}`)
}

// base64 consumes a string and decodes it.
func (r *jsonReader) base64(what string) (string, error) {
	s, err := r.text(what + " as a base64 string")
	if err != nil {
		return "", err
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", fmt.Errorf("%s is not base64: %v", what, err)
	}
	return string(data), nil
}

// integer consumes a whole number that fits int64.
func (r *jsonReader) integer(what string) (int64, error) {
	s, err := r.number(what + " as a whole number")
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must be a whole number, not %s", what, clip(s, 40))
	}
	return v, nil
}

// score consumes a sorted-set score: a number, or "inf" and "-inf".
func (r *jsonReader) score() (float64, error) {
	var s string
	var err error
	if r.next() == '"' {
		if s, err = r.text("a score"); err == nil && s != "inf" && s != "+inf" && s != "-inf" {
			err = fmt.Errorf(`a score must be a number, "inf" or "-inf", not %q`, clip(s, 40))
		}
	} else {
		s, err = r.number(`a score as a number, "inf" or "-inf"`)
	}
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("the score %s is beyond a float64", clip(s, 40))
	}
	return f, nil
}

// describe names the value that comes next, for an error message.
func (r *jsonReader) describe() string {
	rest := r.data[r.pos:]
	switch c := r.next(); {
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		if s, err := (&jsonReader{data: rest}).text(""); err == nil {
			return strconv.Quote(clip(s, 40))
		}
		return "a string"
	case r.has("true"), r.has("false"), r.has("null"):
		return map[byte]string{'t': "true", 'f': "false", 'n': "null"}[c]
	}
	if n := len(rest) - len(bytes.TrimLeft(rest, "+-.eE0123456789")); n > 0 {
		return clip(string(rest[:n]), 40)
	}
	c, _ := utf8.DecodeRune(rest)
	return strconv.QuoteRune(c)
}

// clip shortens s to n bytes for a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}
