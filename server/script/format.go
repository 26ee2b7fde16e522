package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// directive is one % of a format.
type directive struct {
	minus, plus, space, sharp, zero bool
	width, precision                int // precision is -1 if there is none
	verb                            byte
}

// parseDirective reads what follows a %, and returns how long it is.
func parseDirective(L *lua.LState, format string) (d directive, n int) {
	flags := 0
	for ; n < len(format) && strings.IndexByte("-+ #0", format[n]) >= 0; n++ {
		d.minus = d.minus || format[n] == '-'
		d.plus = d.plus || format[n] == '+'
		d.space = d.space || format[n] == ' '
		d.sharp = d.sharp || format[n] == '#'
		d.zero = d.zero || format[n] == '0'
		flags++
	}
	if flags > 5 {
		fail(L, "invalid format (repeated flags)")
	}
	digits := func() (value int) {
		for range 2 {
			if n < len(format) && isDigit(format[n]) {
				value = value*10 + int(format[n]-'0')
				n++
			}
		}
		return value
	}
	d.width, d.precision = digits(), -1
	if n < len(format) && format[n] == '.' {
		n++
		d.precision = digits()
	}
	if n < len(format) && isDigit(format[n]) {
		fail(L, "invalid format (width or precision too long)")
	}
	if n < len(format) {
		d.verb = format[n]
		n++
	}
	return d, n
}

func stringFormat(L *lua.LState) int {
	format := textArg(L, 1)
	m, arg := of(L), 1
	m.spend(L, len(format)>>4)
	b := m.grow(L, nil, len(format)+16)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(m.grow(L, b, 1), format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			b = append(b, '%')
			continue
		}
		if arg++; arg > L.GetTop() {
			argError(L, arg, "no value")
		}
		d, n := parseDirective(L, format[min(i, len(format)):])
		i += n - 1
		piece := d.apply(L, arg)
		m.allocate(L, len(piece))
		b = m.append(L, b, piece)
	}
	return push(L, built(b))
}

// apply formats argument i.
func (d directive) apply(L *lua.LState, i int) string {
	switch d.verb {
	case 'c':
		return cString(d.pad(string([]byte{byte(toInt(numberArg(L, i)))}), false))
	case 'd', 'i':
		return d.integer(toInteger(numberArg(L, i)))
	case 'o', 'u', 'x', 'X':
		return d.unsigned(toUnsigned(numberArg(L, i)))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(numberArg(L, i))
	case 'q':
		return string(quoted(L, textArg(L, i)))
	case 's':
		text := textArg(L, i)
		if d.precision < 0 && len(text) >= 100 {
			return text // as in C, without padding
		}
		text = cString(text)
		if d.precision >= 0 && len(text) > d.precision {
			text = text[:d.precision]
		}
		return d.pad(text, false)
	}
	verb := ""
	if d.verb != 0 {
		verb = string(rune(d.verb))
	}
	fail(L, "invalid option '%%%s' to 'format'", verb)
	return ""
}

// pad fills a text up to the width; zeros go after a sign or 0x.
func (d directive) pad(text string, zeros bool) string {
	missing := d.width - len(text)
	switch {
	case missing <= 0:
		return text
	case d.minus:
		return text + strings.Repeat(" ", missing)
	case !zeros || !d.zero:
		return strings.Repeat(" ", missing) + text
	}
	head := 0
	if strings.IndexByte("+- ", text[0]) >= 0 {
		head = 1
	}
	if rest := text[head:]; len(rest) > 1 && rest[0] == '0' && rest[1]|0x20 == 'x' {
		head += 2
	}
	return text[:head] + strings.Repeat("0", missing) + text[head:]
}

// digits pads a number with zeros up to the precision.
func (d directive) digits(text string) string {
	if d.precision == 0 && text == "0" {
		return ""
	}
	return strings.Repeat("0", max(d.precision-len(text), 0)) + text
}

func (d directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.plus:
		return "+"
	case d.space:
		return " "
	}
	return ""
}

func (d directive) integer(n int64) string {
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	return d.pad(d.sign(n < 0)+d.digits(strconv.FormatUint(magnitude, 10)), d.precision < 0)
}

func (d directive) unsigned(n uint64) string {
	base, prefix := 10, ""
	switch d.verb {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
		if d.sharp && n != 0 {
			prefix = "0" + string(rune(d.verb))
		}
	}
	text := d.digits(strconv.FormatUint(n, base))
	if d.verb == 'X' {
		text = strings.ToUpper(text)
	}
	if d.verb == 'o' && d.sharp && !strings.HasPrefix(text, "0") {
		text = "0" + text
	}
	return d.pad(prefix+text, d.precision < 0)
}

func (d directive) float(f float64) string {
	f = likeC(f)
	negative := math.Signbit(f)
	f = math.Abs(f)
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	text := ""
	finite := !math.IsInf(f, 0) && !math.IsNaN(f)
	switch {
	case math.IsNaN(f):
		text = "nan"
	case math.IsInf(f, 0):
		text = "inf"
	case d.verb == 'f':
		text = strconv.FormatFloat(f, 'f', precision, 64)
	case d.verb|0x20 == 'e':
		text = strconv.FormatFloat(f, 'e', precision, 64)
	case d.sharp:
		text = fmt.Sprintf("%#.*g", max(precision, 1), f)
	default:
		text = formatG(f, precision)
	}
	if finite && d.sharp && d.verb|0x20 != 'g' && precision == 0 {
		mantissa, exponent, scientific := strings.Cut(text, "e")
		if text = mantissa + "."; scientific {
			text += "e" + exponent
		}
	}
	if d.verb == 'E' || d.verb == 'G' {
		text = strings.ToUpper(text)
	}
	return d.pad(d.sign(negative)+text, finite)
}

// quoted is a text as a string of Lua's.
func quoted(L *lua.LState, s string) lua.LString {
	m := of(L)
	b := append(m.grow(L, nil, len(s)+8), '"')
	for i := range len(s) {
		b = m.grow(L, b, 8)
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, `\r`...)
		case 0:
			b = append(b, `\000`...)
		default:
			b = append(b, c)
		}
	}
	return built(append(b, '"'))
}
