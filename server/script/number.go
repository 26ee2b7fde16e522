package script

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Numbers as text. Lua 5.1 leaves both directions to C: strtod reads, "%.14g" writes.

// quietNaN is what C has where it has a NaN without a sign. [math.NaN] has other bits: it says that Go has made it, by
// ^ or a function of package math, where C's processor would have made a negative one.
var quietNaN = math.Float64frombits(0x7ff8 << 48)

// likeC returns a number that is to be shown or packed, with the bits that C has.
func likeC(f float64) float64 {
	switch made := math.NaN(); math.Float64bits(f) {
	case math.Float64bits(made):
		return -quietNaN
	case math.Float64bits(-made):
		return quietNaN
	}
	return f
}

// numberText is a number as tostring and ".." write it.
func numberText(f float64) string { return formatG(f, 14) }

// formatG is C's "%.*g".
func formatG(f float64, precision int) string {
	f = likeC(f)
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1e14 && precision >= 14 && (f != 0 || !math.Signbit(f)):
		return strconv.FormatInt(int64(f), 10)
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'e', max(precision, 1)-1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	n, _ := strconv.Atoi(exponent) // written by strconv just above
	if n < -4 || n >= max(precision, 1) {
		return trimZeros(mantissa) + "e" + exponent
	}
	return trimZeros(strconv.FormatFloat(f, 'f', max(max(precision, 1)-1-n, 0), 64))
}

// trimZeros removes the zeros at the end of a fraction.
func trimZeros(text string) string {
	if strings.IndexByte(text, '.') < 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

const blanks = " \t\n\v\f\r"

// parseNumber reads a number as lua_tonumber does: blanks around it, decimal, hexadecimal, "inf" and "nan".
func parseNumber(text string) (float64, bool) {
	text = strings.TrimRight(text, blanks)
	f, n := strtod(text)
	return f, n > 0 && n == len(text)
}

// strtod is C's: it reads the longest beginning of the text that is a number, after blanks, and returns how long that
// is with the blanks; 0 if there is none.
func strtod(text string) (f float64, n int) {
	start := len(text) - len(strings.TrimLeft(text, blanks))
	i := start
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	rest := strings.ToLower(text[i:min(len(text), i+8)])
	switch {
	case strings.HasPrefix(rest, "infinity"):
		return special(text[start], math.Inf(1)), i + 8
	case strings.HasPrefix(rest, "inf"):
		return special(text[start], math.Inf(1)), i + 3
	case strings.HasPrefix(rest, "nan"):
		return special(text[start], quietNaN), i + 3
	case strings.HasPrefix(rest, "0x"):
		if end := scanNumber(text, i+2, isHexDigit, 'p'); end > i+2 {
			return parseHex(text[start:end]), end
		}
		return special(text[start], 0), i + 1
	}
	end := scanNumber(text, i, isDigit, 'e')
	if end == i {
		return 0, 0
	}
	f, _ = strconv.ParseFloat(text[start:end], 64) // out of range is an infinity, as in C
	return f, end
}

func special(first byte, f float64) float64 {
	if first == '-' {
		return math.Copysign(f, -1)
	}
	return f
}

// scanNumber returns the end of digits, a fraction and an exponent from i on; i if there is no digit.
func scanNumber(text string, i int, digit func(byte) bool, exponent byte) int {
	digits := 0
	end := i
	for ; end < len(text) && digit(text[end]); end++ {
		digits++
	}
	if end < len(text) && text[end] == '.' {
		from := end
		for end++; end < len(text) && digit(text[end]); end++ {
			digits++
		}
		if digits == 0 {
			end = from
		}
	}
	if digits == 0 {
		return i
	}
	if end < len(text) && text[end]|0x20 == exponent {
		e := end + 1
		if e < len(text) && (text[e] == '-' || text[e] == '+') {
			e++
		}
		if e < len(text) && isDigit(text[e]) {
			for end = e; end < len(text) && isDigit(text[end]); end++ {
			}
		}
	}
	return end
}

// parseHex reads a hexadecimal float, whose exponent Go wants and C does not.
func parseHex(text string) float64 {
	if !strings.ContainsAny(text, "pP") {
		text += "p0"
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// toNumber is a value as a number, if it is one or reads as one.
func toNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

// toText is a value as a string, if it is one or a number.
func toText(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return numberText(float64(v)), true
	}
	return "", false
}

// toInteger is C's conversion of a double to a 64-bit integer on the machines that Redis runs on.
func toInteger(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64 // also for NaN
}

// toInt is C's conversion to an int.
func toInt(f float64) int32 {
	if f > math.MinInt32-1 && f < 1<<31 {
		return int32(f)
	}
	return math.MinInt32
}

// toUnsigned is C's conversion to 64 bits without a sign on those machines.
func toUnsigned(f float64) uint64 {
	switch {
	case f >= 1<<64:
		return 0
	case f >= 1<<63:
		return uint64(f)
	}
	return uint64(toInteger(f))
}
