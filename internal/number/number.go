// Package number parses and prints numbers as Redis does, digit by digit and refusal by refusal.
//
//   - [ParseInt]: integers, as in INCRBY and most arguments.
//   - [ParseFloat], [ParseBound], [ParseWeight]: doubles, as scores, ends of score ranges, and weights of SORT.
//   - [ParseExtended], [AddExtended], [AppendExtended]: C's long doubles, as in INCRBYFLOAT.
//
// The functions are pure. Those for integers and doubles do not allocate for the usual forms.
package number

import (
	"math"
	"strconv"
	"strings"
)

// maxInt is the length of the longest int64 in decimal, its sign included.
const maxInt = 20

// ParseInt parses a decimal int64 as strictly as Redis: an optional minus sign and digits without a leading zero; no
// plus sign, no spaces, no "-0".
func ParseInt[T string | []byte](text T) (n int64, ok bool) {
	if len(text) == 0 || len(text) > maxInt {
		return 0, false
	}
	if len(text) == 1 && text[0] == '0' {
		return 0, true
	}
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || digits[0] < '1' || digits[0] > '9' {
		return 0, false
	}
	var u uint64
	for i := 0; i < len(digits); i++ {
		digit := uint64(digits[i]) - '0'
		if digit > 9 || u > (math.MaxUint64-digit)/10 {
			return 0, false
		}
		u = u*10 + digit
	}
	if len(digits) < len(text) {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u <= math.MaxInt64
}

// ParseFloat parses a finite or infinite double the way Redis reads a score or an increment: what C's strtod takes,
// except that spaces, NaN and numbers too large or too small for a double are refused.
func ParseFloat[T string | []byte](text T) (f float64, ok bool) {
	f, ranged, ok := strtod(string(text))
	return f, ok && ranged
}

// ParseBound parses an end of a score range, which Redis reads with a bare strtod: leading spaces are skipped, the
// empty text is 0, and a number beyond the doubles is infinite or 0. NaN is refused.
func ParseBound[T string | []byte](text T) (f float64, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	f, _, ok = strtod(strings.TrimLeft(string(text), " \t\n\v\f\r"))
	return f, ok
}

// strtod parses a text that C's function of that name takes whole, except NaN. Go's syntax differs in two ways: it has
// underscores, which are refused here, and a hexadecimal number needs an exponent, which is added. Both know infinity
// as "inf" and "infinity" only. ranged is false if the number does not fit a double.
func strtod(text string) (f float64, ranged, ok bool) {
	if text == "" || len(text) > maxFloat || strings.IndexByte(text, '_') >= 0 {
		return 0, false, false
	}
	if isHex(text) && !strings.ContainsAny(text, "pP") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if math.IsNaN(f) {
		return 0, false, false
	}
	if err != nil {
		// Beyond the doubles ParseFloat returns the infinity of the right sign.
		return f, false, math.IsInf(f, 0)
	}
	return f, f != 0 || isZero(text), true
}

// maxFloat bounds the text of a float, in bytes. Redis has such a bound for long doubles only, and a larger one; it
// keeps a hostile argument of 512 MB from being parsed.
const maxFloat = 64 << 10

func isHex(text string) bool {
	if text[0] == '+' || text[0] == '-' {
		text = text[1:]
	}
	return len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x'
}

// isZero distinguishes a zero from a number that underflowed to it, by the digits before the
// exponent.
func isZero(text string) bool {
	exponent := "eE"
	if isHex(text) {
		exponent = "pP"
	}
	if i := strings.IndexAny(text, exponent); i >= 0 {
		text = text[:i]
	}
	return !strings.ContainsAny(text, "123456789abcdefABCDEF")
}

// ParseWeight parses a double the way Redis reads what SORT compares: leading spaces are skipped, the empty text is 0,
// a NUL ends it, and NaN and numbers too large or too small for a double are refused.
func ParseWeight[T string | []byte](text T) (f float64, ok bool) {
	s, _, _ := strings.Cut(string(text), "\x00")
	if s == "" {
		return 0, true
	}
	f, ranged, ok := strtod(strings.TrimLeft(s, " \t\n\v\f\r"))
	return f, ok && ranged
}
