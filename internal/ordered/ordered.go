// Package ordered has the order-preserving encoding of numbers: it turns float64 scores and int64 list indexes into
// uint64 values, and these into 16 hex digits, such that the numbers, the unsigned integers and the text all sort the
// same way.
//
// Names of sorted set and list records carry numbers in this form, so that a plain byte comparison of two names
// is a comparison of the numbers in them. The functions are pure and safe for concurrent use.
package ordered

import (
	"encoding/binary"
	"math"
)

// HexLen is the length in bytes of the text form that [AppendHex] writes.
const HexLen = 16

const signBit = 1 << 63

// Float returns the order-preserving form of f: the IEEE 754 bits with the sign bit flipped if f is not negative,
// and with all bits flipped if it is. a < b holds exactly if Float(a) < Float(b), infinities included.
//
// Negative zero equals zero, so it gets zero's form: equal numbers must not make two different names.
//
// NaN has no place in an order, and callers refuse it. Float still maps every NaN beyond the infinity of its sign, and
// ToFloat returns a NaN for that.
func Float(f float64) uint64 {
	if f == 0 {
		return signBit // Both zeros.
	}
	u := math.Float64bits(f)
	if u&signBit != 0 {
		return ^u
	}
	return u | signBit
}

// ToFloat is the inverse of [Float]. A value that Float never returns for a number (one beyond the infinities, which
// only damaged input holds) gives NaN; the form that negative zero would have had gives negative zero.
func ToFloat(u uint64) float64 {
	if u&signBit != 0 {
		return math.Float64frombits(u &^ signBit)
	}
	return math.Float64frombits(^u)
}

// Int returns the order-preserving form of i: its two's complement with the sign bit flipped.
func Int(i int64) uint64 { return uint64(i) ^ signBit }

// ToInt is the inverse of [Int].
func ToInt(u uint64) int64 { return int64(u ^ signBit) }

// AppendHex appends the 16 lower-case hex digits of u to dst. Texts compare byte by byte as the numbers compare.
func AppendHex(dst []byte, u uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, hexDigits(u>>32)), hexDigits(u&(1<<32-1)))
}

// hexDigits returns the eight hex digits of a number of 32 bits, the first one in the highest byte. It spreads the
// digits over the bytes and turns all into text at once: those above nine by the carry that six more give.
func hexDigits(u uint64) uint64 {
	const ones = 0x0101010101010101
	u = (u<<16 | u) & 0x0000ffff0000ffff
	u = (u<<8 | u) & 0x00ff00ff00ff00ff
	u = (u<<4 | u) & (0x0f * ones)
	letters := (u + 6*ones) >> 4 & ones
	return u + '0'*ones + letters*('a'-'0'-10)
}

// ParseHex is the inverse of [AppendHex]. It accepts exactly what AppendHex writes: 16 digits, no upper case, no sign,
// no prefix, because a second spelling of a number would be a second name for one record.
func ParseHex(text []byte) (u uint64, ok bool) {
	if len(text) != HexLen {
		return 0, false
	}
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			u = u<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			u = u<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return u, true
}
