package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// appendText appends s as a JSON string. Only what JSON demands is escaped,
// plus DEL and the C1 controls: an export read on a terminal must not be able
// to move its cursor. s must be valid UTF-8.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		size := 1
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', b)
		case b == '\n', b == '\r', b == '\t':
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', map[byte]byte{'\n': 'n', '\r': 'r', '\t': 't'}[b])
		case b < 0x20 || b == 0x7f:
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		case b == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0: // U+0080 to U+009F
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '0', '0', hex[s[i+1]>>4], hex[s[i+1]&15])
			size = 2
		default:
			i++
			continue
		}
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendBytes appends any bytes: as a JSON string when they are UTF-8, and as
// {"b64":"..."} otherwise. No other object can stand where a string is
// expected, so the two never clash.
func appendBytes[T string | []byte](dst []byte, data T) []byte {
	if s := string(data); utf8.ValidString(s) {
		return appendText(dst, s)
	}
	dst = append(dst, `{"b64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, []byte(data))
	return append(dst, `"}`...)
}

// appendScore appends a sorted-set score with the fewest digits that read back
// as the same float64. JSON has no infinity, so that becomes a string.
func appendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, `"inf"`...)
	case math.IsInf(score, -1):
		return append(dst, `"-inf"`...)
	case score == math.Trunc(score) && math.Abs(score) < 1e17:
		return strconv.AppendFloat(dst, score, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, score, 'g', -1, 64)
}

// A jsonReader walks one JSON line token by token. Unlike Unmarshal into a
// struct it is case-sensitive, sees duplicate names, and keeps the digits of a
// number as they were written.
type jsonReader struct {
	dec *json.Decoder
}

// newJSONReader refuses what encoding/json would silently turn into U+FFFD:
// bytes that are not UTF-8 and halves of surrogate pairs.
func newJSONReader(line []byte) (*jsonReader, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("not valid UTF-8: write binary data as keyB64, valueB64 or {\"b64\":\"...\"}")
	}
	if hasLoneSurrogate(line) {
		return nil, errors.New(`half a surrogate pair (\ud800 to \udfff): write binary data as base64`)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	return &jsonReader{dec: dec}, nil
}

// token returns the next token. Syntax errors name the byte within the line.
func (r *jsonReader) token() (json.Token, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, syntaxError(err)
	}
	return t, nil
}

// syntaxError words an error of the decoder.
func syntaxError(err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("JSON: %v at byte %d", s, s.Offset)
	}
	return errors.New("JSON: the line ends too early")
}

// delim consumes one given bracket; what says what should have been there.
func (r *jsonReader) delim(want json.Delim, what string) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("expected %s, found %s", what, describe(t))
	}
	return nil
}

// object walks the members of an object whose opening brace has been read.
func (r *jsonReader) object(member func(name string) error) error {
	for r.dec.More() {
		t, err := r.token()
		if err != nil {
			return err
		}
		if err := member(t.(string)); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}

// array walks an array whose opening bracket has been read.
func (r *jsonReader) array(element func() error) error {
	for r.dec.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}

// bytes reads one string in any of its forms: a JSON string, a number (its
// digits as written), or {"b64":"..."}.
func (r *jsonReader) bytes(what string) (string, error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	switch t := t.(type) {
	case string:
		return t, nil
	case json.Number:
		return t.String(), nil
	case json.Delim:
		if t == '{' {
			return r.encoded(what)
		}
	}
	return "", fmt.Errorf("%s must be a string or {\"b64\":\"...\"}, not %s", what, describe(t))
}

// encoded reads the rest of {"b64":"..."}.
func (r *jsonReader) encoded(what string) (string, error) {
	name, err := r.token()
	if err != nil {
		return "", err
	}
	if name != "b64" {
		return "", fmt.Errorf(`%s must be a string or {"b64":"..."}, not another object`, what)
	}
	s, err := r.base64(what)
	if err != nil {
		return "", err
	}
	return s, r.delim('}', "the end of {\"b64\":...}")
}

// base64 reads a string and decodes it.
func (r *jsonReader) base64(what string) (string, error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s must be a base64 string, not %s", what, describe(t))
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", fmt.Errorf("%s is not base64: %v", what, err)
	}
	return string(data), nil
}

// integer reads a whole number that fits int64.
func (r *jsonReader) integer(what string) (int64, error) {
	t, err := r.token()
	if err != nil {
		return 0, err
	}
	if n, ok := t.(json.Number); ok {
		if v, err := n.Int64(); err == nil {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%s must be a whole number, not %s", what, describe(t))
}

// score reads a sorted-set score: a number, or "inf" and "-inf".
func (r *jsonReader) score() (float64, error) {
	t, err := r.token()
	if err != nil {
		return 0, err
	}
	text := ""
	switch t := t.(type) {
	case json.Number:
		text = t.String()
	case string:
		text = t
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("a score must be a number, \"inf\" or \"-inf\", not %s", describe(t))
	}
	return f, nil
}

// describe names a token for an error message.
func describe(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(t)
	case json.Number:
		return t.String()
	case string:
		return strconv.Quote(clip(t, 40))
	case json.Delim:
		switch t {
		case '{':
			return "an object"
		case '[':
			return "an array"
		}
		return "'" + t.String() + "'"
	}
	return fmt.Sprint(t)
}

// clip shortens s to n bytes for a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// hasLoneSurrogate reports whether a \u escape in line is half of a pair.
func hasLoneSurrogate(line []byte) bool {
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			continue
		}
		i++ // the escaped byte, so that \\u is not taken for \u
		if i >= len(line) || line[i] != 'u' {
			continue
		}
		switch u := hex4(line, i+1); {
		case u >= 0xdc00 && u < 0xe000:
			return true
		case u >= 0xd800 && u < 0xdc00:
			low := uint32(0)
			if i+6 < len(line) && line[i+5] == '\\' && line[i+6] == 'u' {
				low = hex4(line, i+7)
			}
			if low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 10
		}
	}
	return false
}

// hex4 reads four hex digits at i, or 0 when they are not there.
func hex4(line []byte, i int) uint32 {
	if i+4 > len(line) {
		return 0
	}
	v, err := strconv.ParseUint(string(line[i:i+4]), 16, 16)
	if err != nil {
		return 0
	}
	return uint32(v)
}
