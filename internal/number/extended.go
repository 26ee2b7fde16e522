package number

import (
	"math/big"
	"strings"
)

// The arithmetic of INCRBYFLOAT and HINCRBYFLOAT is that of C's long double on x86: 64 bits of mantissa, rounded to
// nearest, ties to even, with a decimal form of 17 digits after the point. Doubles would give other digits than
// Redis: 0.1 + 0.2 is 0.3 here.
const (
	extendedPrecision = 64     // bits of mantissa
	extendedMax       = 16384  // a finite number is below 2^extendedMax
	extendedMin       = -16446 // numbers up to 2^extendedMin round to 0

	// maxExtended bounds the text of such a number in bytes, as Redis does.
	maxExtended = 5*1024 - 1
	// maxDecimal is above the decimal exponent of any finite number, and its negative below that of any number above 0.
	maxDecimal = 5000
)

// ParseExtended parses a long double as Redis reads the increment of INCRBYFLOAT: a text that strtold takes whole,
// except leading spaces, NaN, and numbers that overflow or underflow to 0. Infinity is a number.
func ParseExtended[T string | []byte](text T) (*big.Float, bool) {
	if len(text) == 0 || len(text) > maxExtended {
		return nil, false
	}
	rest := strings.ToLower(string(text))
	negative := rest[0] == '-'
	if negative || rest[0] == '+' {
		rest = rest[1:]
	}
	if rest == "inf" || rest == "infinity" {
		return new(big.Float).SetInf(negative), true
	}
	var x *big.Float
	var ok bool
	if hex, isHex := strings.CutPrefix(rest, "0x"); isHex {
		x, ok = parseHexadecimal(hex)
	} else {
		x, ok = parseDecimal(rest)
	}
	if !ok || !x.IsInf() && x.Sign() != 0 && !inExtendedRange(x) {
		return nil, false
	}
	if negative {
		x.Neg(x)
	}
	return x, true
}

// inExtendedRange reports whether a number other than 0 is finite and not 0 after rounding to a long double.
func inExtendedRange(x *big.Float) bool {
	exponent := x.MantExp(nil) // of a mantissa from 0.5 to 1
	return exponent <= extendedMax && (exponent > extendedMin+1 || exponent == extendedMin+1 && x.MinPrec() > 1)
}

// scanNumber splits a number into its digits, the count of those after the point, and its exponent.
func scanNumber(text, digitSet string, exponentMark byte) (digits string, behind, exponent int, ok bool) {
	end := strings.IndexByte(text, exponentMark)
	if end >= 0 {
		if exponent, ok = scanExponent(text[end+1:]); !ok {
			return "", 0, 0, false
		}
		text = text[:end]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits = whole + fraction
	if digits == "" || strings.Trim(digits, digitSet) != "" {
		return "", 0, 0, false
	}
	return strings.TrimLeft(digits, "0"), len(fraction), exponent, true
}

// scanExponent parses an exponent. It limits one that is beyond all use.
func scanExponent(text string) (int, bool) {
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		n = min(n*10+int(text[i]-'0'), 1<<20)
	}
	if negative {
		n = -n
	}
	return n, true
}

func parseDecimal(text string) (*big.Float, bool) {
	digits, behind, exponent, ok := scanNumber(text, "0123456789", 'e')
	if !ok {
		return nil, false
	}
	x := new(big.Float).SetPrec(extendedPrecision)
	if digits == "" {
		return x, true
	}
	exponent -= behind
	if magnitude := len(digits) + exponent; magnitude > maxDecimal || magnitude < -maxDecimal {
		return nil, false
	}
	n, _ := new(big.Int).SetString(digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent >= 0 {
		return x.SetInt(n.Mul(n, power)), true
	}
	// A quotient of integers is rounded once; a product with a rounded power of ten would be rounded twice.
	return x.SetRat(new(big.Rat).SetFrac(n, power)), true
}

func parseHexadecimal(text string) (*big.Float, bool) {
	digits, behind, exponent, ok := scanNumber(text, "0123456789abcdef", 'p')
	if !ok {
		return nil, false
	}
	x := new(big.Float).SetPrec(extendedPrecision)
	if digits == "" {
		return x, true
	}
	n, _ := new(big.Int).SetString(digits, 16)
	return x.SetMantExp(x.SetInt(n), exponent-4*behind), true
}

// AddExtended is the sum of two long doubles; ok is false if it is infinite or not a number.
func AddExtended(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(extendedPrecision).Add(a, b)
	return sum, sum.Sign() == 0 || sum.MantExp(nil) <= extendedMax
}

// AppendExtended appends a finite number in decimal, with up to 17 digits after the point and no exponent.
func AppendExtended(dst []byte, x *big.Float) []byte {
	text := strings.TrimRight(strings.TrimRight(x.Text('f', 17), "0"), ".")
	if text == "-0" || text == "" {
		text = "0"
	}
	return append(dst, text...)
}
