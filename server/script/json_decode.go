package script

import (
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// jsonToken is the type of a token, as errors name it.
type jsonToken string

const (
	tokenEnd    jsonToken = "T_END"
	tokenString jsonToken = "T_STRING"
	tokenNumber jsonToken = "T_NUMBER"
	tokenBool   jsonToken = "T_BOOLEAN"
	tokenNull   jsonToken = "T_NULL"
	tokenObject jsonToken = "T_OBJ_BEGIN"
	tokenArray  jsonToken = "T_ARR_BEGIN"
)

var jsonPunctuation = map[byte]jsonToken{
	'{': tokenObject, '}': "T_OBJ_END", '[': tokenArray, ']': "T_ARR_END", ':': "T_COLON", ',': "T_COMMA", 0: tokenEnd,
}

// jsonDecoder reads one text. Its token is the last one that was read.
type jsonDecoder struct {
	L     *lua.LState
	m     *machine
	src   string
	at    int
	token jsonToken // or the text of an error
	index int       // where the token starts
	value lua.LValue
}

func jsonDecode(L *lua.LState) int {
	if L.GetTop() != 1 {
		argError(L, 1, "expected 1 argument")
	}
	src := textArg(L, 1)
	if len(src) >= 2 && (src[0] == 0 || src[1] == 0) {
		fail(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	src, _, _ = strings.Cut(src, "\x00") // as C sees it
	d := jsonDecoder{L: L, m: of(L), src: src}
	d.next()
	v := d.process(0)
	if d.next(); d.token != tokenEnd {
		d.expected("the end")
	}
	return push(L, v)
}

func (d *jsonDecoder) expected(what string) {
	fail(d.L, "Expected %s but found %s at character %d", what, d.token, d.index+1)
}

func (d *jsonDecoder) byteAt(i int) byte {
	if i < len(d.src) {
		return d.src[i]
	}
	return 0
}

// next reads a token.
func (d *jsonDecoder) next() {
	d.m.spend(d.L, 1)
	for strings.IndexByte(" \t\n\r", d.byteAt(d.at)) >= 0 && d.at < len(d.src) {
		d.at++
	}
	d.index = d.at
	c := d.byteAt(d.at)
	rest := d.src[d.at:]
	invalid := d.m.json.decodeInvalid
	switch {
	case jsonPunctuation[c] != "":
		d.token = jsonPunctuation[c]
		d.at = min(d.at+1, len(d.src))
	case c == '"':
		d.text()
	case c == '-' || isDigit(c):
		if !invalid && isInvalidNumber(rest) {
			d.token = "invalid number"
			return
		}
		d.number()
	case strings.HasPrefix(rest, "true"):
		d.token, d.value, d.at = tokenBool, lua.LTrue, d.at+4
	case strings.HasPrefix(rest, "false"):
		d.token, d.value, d.at = tokenBool, lua.LFalse, d.at+5
	case strings.HasPrefix(rest, "null"):
		d.token, d.value, d.at = tokenNull, d.m.null, d.at+4
	case invalid && strings.IndexByte("+iInN", c) >= 0 && isInvalidNumber(rest):
		d.number()
	default:
		d.token = "invalid token"
	}
}

// isInvalidNumber reports whether a text begins with a number that C reads and JSON does not know.
func isInvalidNumber(s string) bool {
	if strings.HasPrefix(s, "+") {
		return true
	}
	s = strings.TrimPrefix(s, "-")
	if strings.HasPrefix(s, "0") {
		return len(s) > 1 && (s[1]|0x20 == 'x' || isDigit(s[1]))
	}
	if len(s) < 3 || s[0] <= '9' {
		return false
	}
	word := strings.ToLower(s[:3])
	return word == "inf" || word == "nan"
}

func (d *jsonDecoder) number() {
	// What can be part of a number ends at the next of these; strtod would look at more of a long text than once.
	rest := d.src[d.at:]
	if end := strings.IndexAny(rest, ",]}: \t\r\n\""); end >= 0 {
		rest = rest[:end]
	}
	f, n := strtod(rest)
	if n == 0 {
		d.token = "invalid number"
		return
	}
	d.at += n
	d.token, d.value = tokenNumber, lua.LNumber(f)
}

// text reads a string. An error is where it was met.
func (d *jsonDecoder) text() {
	var b []byte
	fail := func(text jsonToken) { d.token, d.index = text, d.at }
	from := d.at + 1
	for d.at++; ; d.at++ {
		c := d.byteAt(d.at)
		if d.at >= len(d.src) {
			fail("unexpected end of string")
			return
		}
		if c == '"' {
			break
		}
		if c != '\\' {
			continue
		}
		b = d.m.grow(d.L, d.m.append(d.L, b, d.src[from:d.at]), utf8.UTFMax)
		if e := d.byteAt(d.at + 1); e == 'u' {
			r, n := unicodeEscape(d.src[d.at:])
			if n == 0 {
				fail("invalid unicode escape code")
				return
			}
			b = utf8.AppendRune(b, r)
			d.at += n - 1
		} else {
			i := strings.IndexByte(`"\/bfnrt`, e)
			if i < 0 || d.at+1 >= len(d.src) {
				fail("invalid escape code")
				return
			}
			b = append(b, "\"\\/\b\f\n\r\t"[i])
			d.at++
		}
		from = d.at + 1
	}
	b = d.m.append(d.L, b, d.src[from:d.at])
	d.at++
	d.token, d.value = tokenString, built(b)
}

// unicodeEscape reads \uXXXX, or two of them for a surrogate pair, and returns how long it is; 0 if it is wrong.
func unicodeEscape(s string) (r rune, n int) {
	r = hex4(s)
	if r < 0 || r&0xf800 != 0xd800 {
		return r, 6 * min(int(r)+1, 1)
	}
	if r&0x400 != 0 || len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
		return 0, 0
	}
	low := hex4(s[6:])
	if low < 0 || low&0xfc00 != 0xdc00 {
		return 0, 0
	}
	return (r&0x3ff<<10 | low&0x3ff) + 0x10000, 12
}

// hex4 is the number of \uXXXX; -1 if it is none.
func hex4(s string) (r rune) {
	if len(s) < 6 {
		return -1
	}
	for i := 2; i < 6; i++ {
		switch c := s[i]; {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case isHexDigit(c):
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return r
}

// process is the value that starts with the current token.
func (d *jsonDecoder) process(depth int) lua.LValue {
	switch d.token {
	case tokenString, tokenNumber, tokenBool, tokenNull:
		return d.value
	case tokenObject, tokenArray:
		if depth++; depth > min(d.m.json.decodeDepth, maxNesting) {
			fail(d.L, "Found too many nested data structures (%d) at character %d", depth, d.at)
		}
		d.m.allocate(d.L, 64)
		if d.token == tokenObject {
			return d.object(depth)
		}
		return d.array(depth)
	}
	d.expected("value")
	return lua.LNil
}

// more reads what follows an element, and reports whether it is another one, whose first token it reads then.
func (d *jsonDecoder) more(end jsonToken, expected string) bool {
	switch d.next(); d.token {
	case end:
		return false
	case "T_COMMA":
		d.next()
	default:
		d.expected(expected)
	}
	return true
}

func (d *jsonDecoder) object(depth int) lua.LValue {
	t := d.L.CreateTable(0, 0)
	if d.next(); d.token == "T_OBJ_END" {
		return t
	}
	for more := true; more; more = d.more("T_OBJ_END", "comma or object end") {
		if d.token != tokenString {
			d.expected("object key string")
		}
		key := d.value
		if d.next(); d.token != "T_COLON" {
			d.expected("colon")
		}
		d.next()
		t.RawSet(key, d.process(depth))
		d.m.allocate(d.L, 64)
	}
	return t
}

func (d *jsonDecoder) array(depth int) lua.LValue {
	t := d.L.CreateTable(0, 0)
	if d.m.json.arrayMT {
		t.Metatable = d.m.arrayMT
	}
	if d.next(); d.token == "T_ARR_END" {
		return t
	}
	i := 0
	for more := true; more; more = d.more("T_ARR_END", "comma or array end") {
		i++
		t.RawSetInt(i, d.process(depth))
		d.m.allocate(d.L, 16)
	}
	return t
}
