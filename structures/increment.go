package structures

import (
	"math/big"
	"strconv"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/keydir"
)

// Incr adds delta to the integer that the key holds, 0 if it does not exist, and
// returns the sum; the deadline stays. O(1).
func (s String) Incr(delta int64) (int64, error) {
	loc, ok, err := s.find()
	if err != nil {
		return 0, err
	}
	sum, text, err := increment(s.Txn, record{s.Key, "", keydir.String, loc}, ok, delta, ErrNotInteger)
	if err != nil {
		return 0, err
	}
	return sum, told(s.Txn, EventIncrBy, s.Key, s.Txn.PutString(s.Key, text))
}

// IncrFloat adds delta, a float in decimal, to the float that the key holds, 0 if
// it does not exist, and returns the sum in decimal; the deadline stays. Floats
// have the 64 bits of mantissa of a long double, and up to 17 digits behind the
// point: text in and out keeps what a float64 would lose. O(1).
func (s String) IncrFloat(delta []byte) ([]byte, error) {
	loc, ok, err := s.find()
	if err != nil {
		return nil, err
	}
	old, err := readFloat(s.Txn, record{s.Key, "", keydir.String, loc}, ok, ErrNotFloat)
	if err != nil {
		return nil, err
	}
	add, ok := number.ParseExtended(delta)
	if !ok {
		return nil, ErrNotFloat
	}
	text, err := sumFloat(old, add)
	if err != nil {
		return nil, err
	}
	return text, told(s.Txn, EventIncrByFloat, s.Key, s.Txn.PutString(s.Key, text))
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
	sum, text, err := increment(h.Txn, record{h.Key, field, keydir.Hash, loc}, exists, delta, ErrHashNotInteger)
	if err != nil {
		return 0, err
	}
	return sum, told(h.Txn, EventHIncrBy, h.Key, v.replace(field, text))
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
	old, err := readFloat(h.Txn, record{h.Key, field, keydir.Hash, loc}, exists, ErrHashNotFloat)
	if err != nil {
		return nil, err
	}
	text, err := sumFloat(old, add)
	if err != nil {
		return nil, err
	}
	return text, told(h.Txn, EventHIncrByFloat, h.Key, v.replace(field, text))
}

// longestInt is the length of the longest decimal int64.
const longestInt = 20

// record is what it takes to read a value.
type record struct {
	key, elem string
	typ       keydir.Type
	loc       keydir.Loc
}

// increment adds delta to the integer in a record, 0 if there is none, and
// returns the sum also as text. notInteger is the refusal of anything else.
func increment(t Txn, r record, exists bool, delta int64, notInteger Error) (int64, []byte, error) {
	text := make([]byte, 0, longestInt)
	var old int64
	if exists {
		// A long value is no integer, and need not be read to see that.
		n, err := t.ValueLen(r.key, r.elem, r.typ, r.loc)
		if err != nil {
			return 0, nil, err
		}
		if n > longestInt {
			return 0, nil, notInteger
		}
		if text, err = t.Value(text, r.key, r.elem, r.typ, r.loc); err != nil {
			return 0, nil, err
		}
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

// readFloat returns the float in a record, 0 if there is none. notFloat is the
// refusal of anything else.
func readFloat(t Txn, r record, exists bool, notFloat Error) (*big.Float, error) {
	if !exists {
		return new(big.Float), nil
	}
	n, err := t.ValueLen(r.key, r.elem, r.typ, r.loc)
	if err != nil {
		return nil, err
	}
	if n > longestFloat {
		return nil, notFloat
	}
	text, err := t.Value(make([]byte, 0, n), r.key, r.elem, r.typ, r.loc)
	if err != nil {
		return nil, err
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
