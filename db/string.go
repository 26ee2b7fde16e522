package db

import (
	"math"
	"strconv"
	"time"

	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// String is a handle on a key that holds a byte string. Its methods return ErrWrongType if the key holds anything else,
// except for the unconditional forms of Put and Set, which replace a value of any type.
//
// A value of more than 64 KiB is kept in chunks of 8 KiB: to change or to read a part of it costs that part. The first
// edit of less than 8 KiB cuts one of more than 4 KiB, and up to 1 MiB, into chunks of 512 bytes.
type String struct{ handle }

// String returns a handle on the string at key. It reads nothing.
func (s *Store) String(key string) String { return String{s.handle(key)} }

// String returns a handle on the string at key, inside the transaction. It reads nothing.
func (t *Tx) String(key string) String { return String{t.handle(key)} }

// SetResult is what String.Set did and found.
//
//	Done bool
//	Existed bool
//	Old []byte
type SetResult = structures.SetResult

// Get returns a copy of the value. It returns ErrNotFound if the key does not exist. O(length).
func (s String) Get() ([]byte, error) { return owned(s.AppendTo([]byte{})) }

// AppendTo appends the value to dst and returns the extended buffer: Get without an allocation if dst has room. It
// returns dst unchanged and ErrNotFound if the key does not exist. O(length).
func (s String) AppendTo(dst []byte) ([]byte, error) {
	if s.store != nil && s.store.opts.Observe == nil {
		if err := s.store.guard.check(); err != nil {
			return dst, err
		}
		switch value, lookup := s.store.base.TryGet(dst, s.ns, s.key); lookup {
		case keydir.LookupHit:
			return value, nil
		case keydir.LookupMiss:
			return dst, ErrNotFound
		}
	}
	return s.appendLocked(dst)
}

// appendLocked is AppendTo for whatever it takes a lock to read.
func (s String) appendLocked(dst []byte) ([]byte, error) {
	var ok bool
	err := s.do(reading, func(t *Tx) (err error) {
		dst, ok, err = s.on(t).Get(dst)
		return err
	})
	return dst, found(ok, err)
}

// Len returns the length of the value in bytes, 0 if the key does not exist. O(1).
func (s String) Len() (int, error) {
	return call(s.handle, reading, func(t *Tx) (int, error) { return s.on(t).Len() })
}

// Range appends the bytes from start to end, both inclusive, to dst. Negative positions count from the end, -1 being
// the last byte; positions beyond the value are cut to it. A key that does not exist is an empty string. O(length of
// the range), and of a value up to 64 KiB O(length).
func (s String) Range(dst []byte, start, end int64) ([]byte, error) {
	err := s.do(reading, func(t *Tx) (err error) {
		dst, err = s.on(t).Range(dst, start, end)
		return err
	})
	return dst, err
}

// Put makes the key hold value, whatever it held before. Without options the key has no deadline afterwards. A condition
// is about the key, IfAbsent or IfPresent, or about its value, IfEqual or IfNotEqual, which fails with ErrMismatch if it
// does not hold. A deadline that is not positive gives structures.ErrExpireTime, and a value above 512 MiB
// structures.ErrTooLong. O(length).
func (s String) Put(value []byte, options ...WriteOption) error {
	res, err := s.Set(value, options...)
	return held(res.Done, options, err)
}

// Set is Put that returns whether it has written, and with ReturnOld the value that was there. A condition that does
// not hold is no error. O(length).
func (s String) Set(value []byte, options ...WriteOption) (SetResult, error) {
	return call(s.handle, writing, func(t *Tx) (SetResult, error) {
		o, err := t.setOptions(options)
		if err != nil {
			return SetResult{}, err
		}
		return s.on(t).Set(value, o)
	})
}

// Append extends the value, an empty one if the key does not exist, and returns its new length. The deadline stays. It
// fails with structures.ErrTooLong above 512 MiB. O(length of the added bytes), and of a value up to 64 KiB O(length):
// see [String].
func (s String) Append(value []byte) (int, error) {
	return call(s.handle, writing, func(t *Tx) (int, error) { return s.on(t).Append(value) })
}

// Incr adds delta, which may be negative, to the decimal integer that the key holds, 0 if it does not exist, and
// returns the sum. The deadline stays. It fails with structures.ErrNotInteger if the value is no int64, and with
// structures.ErrOverflow if the sum would not be one. O(1).
func (s String) Incr(delta int64) (int64, error) {
	return call(s.handle, writing, func(t *Tx) (int64, error) { return s.on(t).Incr(delta) })
}

// Bounds restrict the sum of String.IncrWithin.
//
//	Least, Most *int64
//	Saturate bool
type Bounds = structures.Bounds

// DecimalBounds restrict the sum of String.IncrDecimalWithin.
//
//	Least, Most string
//	Saturate bool
type DecimalBounds = structures.DecimalBounds

// IncrResult is what an increment within bounds did.
//
//	Done bool
//	Value, Added N
type IncrResult[N int64 | string] = structures.IncrResult[N]

// IncrWithin is Incr within bounds. A sum beyond a bound, or beyond an int64, is not written, and the value returned is the
// old one; with Saturate the bound is written instead. It fails with structures.ErrBounds if the bounds allow nothing.
// O(1).
func (s String) IncrWithin(delta int64, b Bounds) (IncrResult[int64], error) {
	return call(s.handle, writing, func(t *Tx) (IncrResult[int64], error) { return s.on(t).IncrWithin(delta, b) })
}

// IncrDecimalWithin is IncrDecimal within bounds, in decimal text, as IncrWithin has them. It fails with
// structures.ErrSumInfinite if the sum would be infinite and no bound prevents it. O(1).
func (s String) IncrDecimalWithin(delta string, b DecimalBounds) (IncrResult[string], error) {
	return call(s.handle, writing, func(t *Tx) (IncrResult[string], error) { return s.on(t).IncrFloatWithin(delta, b) })
}

func (s String) on(t *Tx) structures.String { return structures.String{Txn: t.txn(), Key: s.key} }

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
		return s.on(t).GetAndExpire([]byte{}, ms, t.passedFor())
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
