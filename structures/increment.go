package structures

import (
	"math"
	"math/big"
	"strconv"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/keydir"
)

// Incr adds delta to the integer that the key holds, 0 if it does not exist, and
// returns the sum; the deadline stays. O(1).
func (s String) Incr(delta int64) (int64, error) {
	c, err := s.find()
	if err != nil {
		return 0, err
	}
	text, err := s.short(&c, longestInt, ErrNotInteger)
	if err != nil {
		return 0, err
	}
	sum, text, err := increment(text, c.exists, delta, ErrNotInteger)
	if err != nil {
		return 0, err
	}
	return sum, notifyUnless(s.Txn, EventIncrBy, s.Key, s.Txn.PutString(s.Key, text))
}

// IncrFloat adds delta, a float in decimal, to the float that the key holds, 0 if it does not
// exist, and returns the sum in decimal; the deadline stays. Floats have the 64 bits of mantissa of
// a long double, and up to 17 digits after the point: text in and out keeps what a float64 would
// lose. O(1).
func (s String) IncrFloat(delta []byte) ([]byte, error) {
	c, err := s.find()
	if err != nil {
		return nil, err
	}
	text, err := s.short(&c, longestFloat, ErrNotFloat)
	if err != nil {
		return nil, err
	}
	old, err := parseFloat(text, c.exists, ErrNotFloat)
	if err != nil {
		return nil, err
	}
	add, ok := number.ParseExtended(delta)
	if !ok {
		return nil, ErrNotFloat
	}
	if text, err = sumFloat(old, add); err != nil {
		return nil, err
	}
	return text, notifyUnless(s.Txn, EventIncrByFloat, s.Key, s.put(text))
}

// short returns the value, which is refused if it is longer than limit: it is no
// number, and need not be read to see that.
func (s String) short(c *stringValue, limit int, refusal Error) ([]byte, error) {
	n, err := s.len(c)
	if err != nil || !c.exists {
		return nil, err
	}
	if n > limit {
		return nil, refusal
	}
	return s.whole(make([]byte, 0, max(n, longestInt)), c)
}

// Incr adds delta to the integer that the field holds, 0 if it does not exist,
// and returns the sum; the deadline stays. O(log n).
func (h Hash) Incr(field string, delta int64) (int64, error) {
	if err := checkElem(field, nil); err != nil {
		return 0, err
	}
	v, err := h.open()
	if err != nil {
		return 0, err
	}
	loc, exists := v.get(field)
	text, err := h.short(field, loc, exists, longestInt, ErrHashNotInteger)
	if err != nil {
		return 0, err
	}
	sum, text, err := increment(text, exists, delta, ErrHashNotInteger)
	if err != nil {
		return 0, err
	}
	return sum, notifyUnless(h.Txn, EventHIncrBy, h.Key, v.replace(field, text))
}

// IncrFloat adds delta, a float in decimal, to the float that the field holds, 0
// if it does not exist, and returns the sum in decimal, as String.IncrFloat does;
// the deadline stays. O(log n).
func (h Hash) IncrFloat(field string, delta []byte) ([]byte, error) {
	add, ok := number.ParseExtended(delta)
	switch {
	case !ok:
		return nil, ErrNotFloat
	case add.IsInf():
		return nil, ErrNaNOrInfinity
	}
	if err := checkElem(field, nil); err != nil {
		return nil, err
	}
	v, err := h.open()
	if err != nil {
		return nil, err
	}
	loc, exists := v.get(field)
	held, err := h.short(field, loc, exists, longestFloat, ErrHashNotFloat)
	if err != nil {
		return nil, err
	}
	old, err := parseFloat(held, exists, ErrHashNotFloat)
	if err != nil {
		return nil, err
	}
	text, err := sumFloat(old, add)
	if err != nil {
		return nil, err
	}
	return text, notifyUnless(h.Txn, EventHIncrByFloat, h.Key, v.replace(field, text))
}

// short is String.short for a field.
func (h Hash) short(field string, loc keydir.Loc, exists bool, limit int, refusal Error) ([]byte, error) {
	if !exists {
		return nil, nil
	}
	n, err := h.Txn.ValueLen(h.Key, field, keydir.Hash, loc)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, refusal
	}
	return h.Txn.Value(make([]byte, 0, max(n, longestInt)), h.Key, field, keydir.Hash, loc)
}

// longestInt is the length of the longest decimal int64.
const longestInt = 20

// increment adds delta to the integer in text, 0 if there is none, and returns the
// sum also as text. notInteger is the refusal of anything else.
func increment(text []byte, exists bool, delta int64, notInteger Error) (int64, []byte, error) {
	var old int64
	if exists {
		var ok bool
		if old, ok = number.ParseInt(text); !ok {
			return 0, nil, notInteger
		}
	}
	sum, ok := add(old, delta)
	if !ok {
		return 0, nil, ErrOverflow
	}
	return sum, strconv.AppendInt(text[:0], sum, 10), nil
}

// longestFloat is above the length of any text that is a float, in bytes.
const longestFloat = 5 << 10

// parseFloat returns the float in text, 0 if there is none. notFloat is the
// refusal of anything else.
func parseFloat(text []byte, exists bool, notFloat Error) (*big.Float, error) {
	if !exists {
		return new(big.Float), nil
	}
	f, ok := number.ParseExtended(text)
	if !ok {
		return nil, notFloat
	}
	return f, nil
}

// sumFloat is the decimal form of a sum.
func sumFloat(a, b *big.Float) ([]byte, error) {
	sum, ok := number.AddExtended(a, b)
	if !ok {
		return nil, ErrSumInfinite
	}
	return number.AppendExtended(nil, sum), nil
}

// Bounds restrict the sum of String.IncrWithin.
type Bounds struct {
	// Least and Most are the bounds, both allowed. Default: those of an int64.
	Least, Most *int64
	// Saturate makes a sum beyond a bound that bound. Without it nothing is
	// written then.
	Saturate bool
}

// IncrResult is what an increment within bounds did.
type IncrResult[N int64 | string] struct {
	// Done says that no bound forbade it, and the value was written.
	Done bool
	// Value is the value, and Added what was added to it.
	Value, Added N
}

// IncrWithin is Incr within bounds. O(1).
func (s String) IncrWithin(delta int64, b Bounds) (res IncrResult[int64], err error) {
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	if b.Least != nil {
		least = *b.Least
	}
	if b.Most != nil {
		most = *b.Most
	}
	if least > most {
		return res, ErrBounds
	}
	c, err := s.find()
	if err != nil {
		return res, err
	}
	text, err := s.short(&c, longestInt, ErrNotInteger)
	if err != nil {
		return res, err
	}
	old, text, err := increment(text, c.exists, 0, ErrNotInteger)
	if err != nil {
		return res, err
	}
	sum, ok := add(old, delta)
	switch {
	case !ok && delta > 0:
		sum = most
	case !ok:
		sum = least
	case sum < least:
		sum, ok = least, false
	case sum > most:
		sum, ok = most, false
	}
	if !ok && !b.Saturate {
		res.Value = old
		return res, nil
	}
	if delta, ok = subtract(sum, old); !ok {
		return res, ErrOverflow
	}
	err = s.Txn.PutString(s.Key, strconv.AppendInt(text[:0], sum, 10))
	return IncrResult[int64]{true, sum, delta}, notifyUnless(s.Txn, EventIncrBy, s.Key, err)
}

// DecimalBounds are Bounds of String.IncrFloatWithin, in decimal; "" is none. A
// sum that is no long double is refused if no bound keeps it from that.
type DecimalBounds struct {
	Least, Most string
	Saturate    bool
}

// clamp returns x, or the bound that it is beyond.
func (b DecimalBounds) clamp(x *big.Float) (*big.Float, error) {
	least, most := x, x
	ok := true
	if b.Least != "" {
		least, ok = number.ParseExtended(b.Least)
	}
	if ok && b.Most != "" {
		most, ok = number.ParseExtended(b.Most)
	}
	switch {
	case !ok:
		return nil, ErrNotFloat
	case b.Least != "" && b.Most != "" && least.Cmp(most) > 0:
		return nil, ErrBounds
	case x.Cmp(least) < 0:
		return least, nil
	case x.Cmp(most) > 0:
		return most, nil
	}
	return x, nil
}

// IncrFloatWithin is IncrFloat within bounds; the result is in decimal. O(1).
func (s String) IncrFloatWithin(delta string, b DecimalBounds) (res IncrResult[string], err error) {
	added, ok := number.ParseExtended(delta)
	if !ok {
		return res, ErrNotFloat
	}
	c, err := s.find()
	if err != nil {
		return res, err
	}
	text, err := s.short(&c, longestFloat, ErrNotFloat)
	if err != nil {
		return res, err
	}
	old, err := parseFloat(text, c.exists, ErrNotFloat)
	if err != nil {
		return res, err
	}
	if old.IsInf() || added.IsInf() {
		return res, ErrSumInfinite
	}
	exact, finite := number.AddExtended(old, added)
	sum, err := b.clamp(exact)
	switch {
	case err != nil:
		return res, err
	case sum != exact && !b.Saturate:
		return IncrResult[string]{Value: string(number.AppendExtended(nil, old)), Added: "0"}, nil
	case sum == exact && !finite, sum.IsInf():
		return res, ErrSumInfinite
	case sum != exact:
		if added, finite = number.AddExtended(sum, new(big.Float).Neg(old)); !finite {
			return res, ErrSumInfinite
		}
	}
	text = number.AppendExtended(nil, sum)
	res = IncrResult[string]{true, string(text), string(number.AppendExtended(nil, added))}
	return res, notifyUnless(s.Txn, EventIncrByFloat, s.Key, s.put(text))
}
