package jsonl

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A decoder reads one JSON text, which is in memory, from front to back. The syntax
// is jsontext's, which refuses what encoding/json would repair: invalid UTF-8,
// half a surrogate pair, a name that appears twice. The types are the format's.
type decoder struct {
	json  jsontext.Decoder
	input bytes.Buffer // around data
	data  []byte
	base  int // where data begins in the line
}

// The texts of values of a line have been checked with the line: names once more
// would be the most expensive part of a large hash.
var (
	lineOptions  = jsontext.AllowDuplicateNames(false)
	valueOptions = jsontext.AllowDuplicateNames(true)
)

// reset begins with data, which is at base in the line.
func (d *decoder) reset(data []byte, base int, o jsontext.Options) {
	d.data, d.base = data, base
	d.input = *bytes.NewBuffer(data)
	d.json.Reset(&d.input, o)
}

// start is where the next value begins in data, or the bracket in its place.
func (d *decoder) start() int {
	at := int(d.json.InputOffset())
	return at + len(d.data[at:]) - len(bytes.TrimLeft(d.data[at:], " \t\r\n,:"))
}

// syntax words an error of the JSON reader: with the place in the line, from 1.
func (d *decoder) syntax(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("JSON: the line ends too early")
	}
	s, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return fmt.Errorf("JSON: %w", err)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("JSON: %q appears twice in an object, at byte %d", clip(s.JSONPointer.LastToken(), 40), d.base+int(s.ByteOffset)+1)
	}
	return fmt.Errorf("JSON: %w at byte %d", s.Err, d.base+int(s.ByteOffset)+1)
}

// expected is the error for anything other than what.
func (d *decoder) expected(what string) error {
	if d.json.PeekKind() == jsontext.KindInvalid {
		if _, err := d.json.ReadToken(); err != nil {
			return d.syntax(err)
		}
	}
	at := d.start()
	return fmt.Errorf("JSON: expected %s, found %s at byte %d", what, describe(d.data[at:]), d.base+at+1)
}

// describe names the value that text begins with.
func describe(text []byte) string {
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		value, err := jsontext.NewDecoder(bytes.NewReader(text)).ReadValue()
		if err != nil {
			return "a string"
		}
		return strconv.Quote(clip(string(unquote(value)), 40))
	case '}', ']':
		return strconv.QuoteRune(rune(text[0]))
	}
	if end := bytes.IndexAny(text, " \t\r\n,:]}"); end >= 0 {
		text = text[:end]
	}
	return clip(string(text), 40)
}

// take consumes a bracket.
func (d *decoder) take(bracket jsontext.Kind, what string) error {
	if d.json.PeekKind() != bracket {
		return d.expected(what)
	}
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// object calls member for each name of an object; member consumes the value.
func (d *decoder) object(what string, member func(name []byte) error) error {
	if err := d.take(jsontext.KindBeginObject, what); err != nil {
		return err
	}
	for d.json.PeekKind() != jsontext.KindEndObject {
		name, err := d.json.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		if err := member(unquote(name)); err != nil {
			return err
		}
	}
	return d.take(jsontext.KindEndObject, "'}'")
}

// array calls element for each element of an array; element consumes it.
func (d *decoder) array(what string, element func() error) error {
	if err := d.take(jsontext.KindBeginArray, what); err != nil {
		return err
	}
	for d.json.PeekKind() != jsontext.KindEndArray {
		if err := element(); err != nil {
			return err
		}
	}
	return d.take(jsontext.KindEndArray, "']'")
}

// scalar consumes a value of the given kind, a string or a number, and returns it
// as it was written.
func (d *decoder) scalar(kind jsontext.Kind, what string) ([]byte, error) {
	if d.json.PeekKind() != kind {
		return nil, d.expected(what)
	}
	value, err := d.json.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	return value, nil
}

// text consumes a JSON string.
func (d *decoder) text(what string) (string, error) {
	value, err := d.scalar(jsontext.KindString, what)
	if err != nil {
		return "", err
	}
	return string(unquote(value)), nil
}

// unquote decodes a string that is known to be valid.
func unquote(value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return append([]byte{}, value[1:len(value)-1]...)
	}
	// The error of a string that the decoder took is nil.
	text, _ := jsontext.AppendUnquote(nil, value)
	return text
}

// bytes consumes a string in any of its forms: a JSON string, a number (its digits
// as written), or {"b64":"..."}.
func (d *decoder) bytes(what string) (data []byte, err error) {
	switch d.json.PeekKind() {
	case jsontext.KindString:
		if data, err = d.scalar(jsontext.KindString, what); err == nil {
			data = unquote(data)
		}
		return data, err
	case jsontext.KindNumber:
		digits, err := d.scalar(jsontext.KindNumber, what)
		return bytes.Clone(digits), err
	case jsontext.KindBeginObject:
		found := false
		err := d.object(what, func(name []byte) (err error) {
			if string(name) != "b64" || found {
				return fmt.Errorf(`%s must be a string or {"b64":"..."}, not another object`, what)
			}
			found = true
			data, err = d.base64(what)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf(`%s must be a string or {"b64":"..."}, not another object`, what)
		}
		return data, err
	}
	return nil, d.expected(what + ` as a string or {"b64":"..."}`)
}

// name is bytes as a string.
func (d *decoder) name(what string) (string, error) {
	data, err := d.bytes(what)
	return string(data), err
}

// base64 consumes a string and decodes it.
func (d *decoder) base64(what string) ([]byte, error) {
	s, err := d.text(what + " as a base64 string")
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%s is not base64: %v", what, err)
	}
	return data, nil
}

// integer consumes a whole number that fits int64.
func (d *decoder) integer(what string) (int64, error) {
	digits, err := d.scalar(jsontext.KindNumber, what+" as a whole number")
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must be a whole number, not %s", what, clip(string(digits), 40))
	}
	return v, nil
}

// score consumes the score of a sorted set's member: a number, or "inf" and "-inf".
func (d *decoder) score() (float64, error) {
	var s string
	var err error
	if d.json.PeekKind() == jsontext.KindString {
		if s, err = d.text("a score"); err == nil && s != "inf" && s != "+inf" && s != "-inf" {
			err = fmt.Errorf(`a score must be a number, "inf" or "-inf", not %q`, clip(s, 40))
		}
	} else {
		var digits []byte
		digits, err = d.scalar(jsontext.KindNumber, `a score as a number, "inf" or "-inf"`)
		s = string(digits)
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

// clip shortens s to n bytes or a little less for a message.
func clip[T string | []byte](text T, n int) string {
	s := string(text[:min(len(text), n+1)])
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "?") + "..."
}
