package resp

import (
	"math"
	"strconv"

	"github.com/stavedb/stave/internal/number"
)

// ParseInt parses a decimal int64 the way Redis does everywhere: an optional minus sign, no plus sign, no leading
// zeros, no spaces, nothing else. It does not allocate.
func ParseInt(b []byte) (int64, bool) { return number.ParseInt(b) }

// AppendDouble appends f as Redis prints a double in a reply: integers below 2^62 without point or exponent, other
// values in the fewest digits that read back as the same double, infinities as inf and -inf.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	}
	const integral = 1 << 62
	if f >= -integral && f <= integral && f == math.Trunc(f) {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return appendShortest(dst, f)
}

// appendShortest lays the shortest digits out as Redis's printer does: plain while the exponent is small, scientific
// (with at least one exponent digit, where Go writes two) beyond.
func appendShortest(dst []byte, f float64) []byte {
	var scratch [32]byte
	sci := strconv.AppendFloat(scratch[:0], f, 'e', -1, 64) // d.ddde±xx
	if sci[0] == '-' {
		dst = append(dst, '-')
		sci = sci[1:]
	}
	var digits [20]byte
	n := 0
	exponent := 0
	for i, c := range sci {
		if c == 'e' {
			exponent, _ = strconv.Atoi(string(sci[i+1:])) // written by strconv just above
			break
		}
		if c != '.' {
			digits[n] = c
			n++
		}
	}
	scale := exponent - n + 1 // the value is digits * 10^scale
	magnitude := max(exponent, -exponent)
	switch {
	case scale >= 0 && magnitude < n+7:
		dst = append(dst, digits[:n]...)
		for range scale {
			dst = append(dst, '0')
		}
	case scale < 0 && (scale > -7 || magnitude < 4):
		dst = appendPlain(dst, digits[:n], -scale)
	default:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(dst, '.')
			dst = append(dst, digits[1:n]...)
		}
		sign := byte('+')
		if exponent < 0 {
			sign = '-'
		}
		dst = append(dst, 'e', sign)
		dst = strconv.AppendInt(dst, int64(magnitude), 10)
	}
	return dst
}

// appendPlain appends digits with a decimal point so that `decimals` of them stand after it.
func appendPlain(dst, digits []byte, decimals int) []byte {
	whole := len(digits) - decimals
	if whole <= 0 {
		dst = append(dst, '0', '.')
		for range -whole {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:whole]...)
	dst = append(dst, '.')
	return append(dst, digits[whole:]...)
}
