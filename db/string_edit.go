package db

import (
	"math"
	"strconv"
	"time"

	"github.com/stavedb/stave/structures"
)

// Methods of String that read and change the value, or its deadline, in one step.

// GetAndDelete returns the value and deletes the key. It returns ErrNotFound if the key does not exist. O(length).
func (s String) GetAndDelete() ([]byte, error) {
	return owned(callFound(s.handle, writing, func(t *Tx) ([]byte, bool, error) { return s.on(t).GetAndDelete() }))
}

// GetAndExpire returns the value and lets the key expire after d, which is counted in whole milliseconds and must be at
// least one: structures.ErrExpireTime otherwise. It returns ErrNotFound if the key does not exist. O(length).
func (s String) GetAndExpire(d time.Duration) ([]byte, error) {
	return s.getAndExpire(func(now int64) (int64, error) {
		if d < time.Millisecond {
			return 0, structures.ErrExpireTime
		}
		return now + d.Milliseconds(), nil
	})
}

// GetAndExpireAt is GetAndExpire with a moment, with a precision of one millisecond. The key is deleted at once if the
// moment has passed.
func (s String) GetAndExpireAt(at time.Time) ([]byte, error) {
	return s.getAndExpire(func(int64) (int64, error) { return at.UnixMilli(), nil })
}

func (s String) getAndExpire(when func(now int64) (ms int64, err error)) ([]byte, error) {
	return owned(callFound(s.handle, writing, func(t *Tx) ([]byte, bool, error) {
		ms, err := when(t.now())
		if err != nil {
			return nil, false, err
		}
		return s.on(t).GetAndExpire([]byte{}, ms, t.now())
	}))
}

// GetAndPersist returns the value and takes the deadline of the key away. It returns ErrNotFound if the key does not
// exist. O(length).
func (s String) GetAndPersist() ([]byte, error) {
	return owned(callFound(s.handle, writing, func(t *Tx) ([]byte, bool, error) { return s.on(t).GetAndPersist([]byte{}) }))
}

// SetRange overwrites the bytes from offset on, with zeros before them where the value was shorter, and returns the new
// length. An empty part changes nothing. The deadline stays. It fails with structures.ErrOffset if the offset is
// negative, and with structures.ErrTooLong above 512 MiB. O(length of the part), and of a value up to 64 KiB O(length):
// see [String].
func (s String) SetRange(offset int64, part []byte) (int, error) {
	return call(s.handle, writing, func(t *Tx) (int, error) { return s.on(t).SetRange(offset, part) })
}

// IncrFloat adds delta to the decimal float that the key holds, 0 if it does not exist, and returns the sum. The
// deadline stays. It fails with structures.ErrNotFloat if the value is no float, and with structures.ErrSumInfinite if
// the sum would be infinite or no number. O(1).
func (s String) IncrFloat(delta float64) (float64, error) {
	return floatSum(s.IncrDecimal(decimal(delta)))
}

// IncrDecimal is IncrFloat in decimal text: a stored float has 64 bits of mantissa and up to 17 digits after the point,
// of which a float64 would lose some.
func (s String) IncrDecimal(delta string) (string, error) {
	sum, err := call(s.handle, writing, func(t *Tx) ([]byte, error) { return s.on(t).IncrFloat([]byte(delta)) })
	return string(sum), err
}

// IncrFloat adds delta to the decimal float that the field holds, 0 if it does not exist, and returns the sum. It fails
// with structures.ErrHashNotFloat if the value is no float, and with structures.ErrSumInfinite if the sum would be
// infinite or no number. O(log n).
func (h Hash) IncrFloat(field string, delta float64) (float64, error) {
	return floatSum(h.IncrDecimal(field, decimal(delta)))
}

// IncrDecimal is IncrFloat in decimal text; see String.IncrDecimal.
func (h Hash) IncrDecimal(field, delta string) (string, error) {
	sum, err := call(h.handle, writing, func(t *Tx) ([]byte, error) { return h.on(t).IncrFloat(field, []byte(delta)) })
	return string(sum), err
}

// decimal is the shortest text of a float64. NaN has none that a store would take.
func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func floatSum(text string, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	sum, err := strconv.ParseFloat(text, 64)
	if math.IsInf(sum, 0) {
		return sum, nil // a sum that a long double holds and a float64 does not
	}
	return sum, err
}

// LCS is a longest common subsequence of two strings.
//
//	Text []byte
//	Matches []LCSMatch
type LCS = structures.LCS

// LCSMatch is a run of equal bytes that a common subsequence is made of.
//
//	A, B, Length int
type LCSMatch = structures.LCSMatch

// LongestCommonSubsequence compares the strings at two keys: the longest sequence of bytes that both have in the same
// order. A key that does not exist is an empty string. It fails with structures.ErrLCSType if a key holds no string,
// and with structures.ErrLCSTooLong if the product of the lengths is above 2^27. Time is O(length * length), memory a
// bit for each comparison; writers of the two keys wait for it.
func (k Keyspace) LongestCommonSubsequence(a, b string) (LCS, error) {
	return callKeys(k.handle, reading, []string{a, b}, func(t *Tx) (LCS, error) { return structures.LongestCommonSubsequence(t.txn(), a, b) })
}
