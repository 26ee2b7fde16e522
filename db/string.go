package db

import (
	"errors"
	"time"

	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// ErrExists is returned by writes that were asked to make a key only if it is absent, and found it.
var ErrExists = errors.New("db: key already exists")

// String is a handle on a key that holds a byte string. Its methods return ErrWrongType if the key holds anything else,
// except for the unconditional forms of Put and Set, which replace a value of any type.
//
// A value of more than 64 KiB is kept in chunks of 8 KiB: to change or to read a part of it costs that part.
type String struct{ handle }

// String returns a handle on the string at key. It reads nothing.
func (s *Store) String(key string) String { return String{s.handle(key)} }

// String returns a handle on the string at key, inside the transaction. It reads nothing.
func (t *Tx) String(key string) String { return String{t.handle(key)} }

// PutOption is a condition or a deadline for String.Put and Hash.PutWith: TTL, ExpireAt, KeepTTL, IfAbsent or IfPresent.
type PutOption struct {
	apply int
	ms    int64
	d     time.Duration
}

const (
	putTTL = 1 + iota
	putExpireAt
	putKeepTTL
	putIfAbsent
	putIfPresent
)

// Options of String.Put and Hash.PutWith without a parameter.
var (
	// KeepTTL leaves the key's deadline as it is; without it a write clears the deadline.
	KeepTTL = PutOption{apply: putKeepTTL}
	// IfAbsent writes only if the key does not exist; the write fails with ErrExists otherwise.
	IfAbsent = PutOption{apply: putIfAbsent}
	// IfPresent writes only if the key exists; the write fails with ErrNotFound otherwise.
	IfPresent = PutOption{apply: putIfPresent}
)

// TTL lets the key expire after d, which is counted in whole milliseconds and must be at least one.
func TTL(d time.Duration) PutOption { return PutOption{apply: putTTL, d: d} }

// ExpireAt lets the key expire at a moment, with a precision of one millisecond.
func ExpireAt(at time.Time) PutOption { return PutOption{apply: putExpireAt, ms: at.UnixMilli()} }

// SetOptions are the conditions and the deadline of String.Set. The zero value writes unconditionally and clears the
// deadline.
type SetOptions = structures.SetOptions

// SetResult is what String.Set did and found.
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
		switch value, lookup := s.store.log.TryGet(dst, s.ns, s.key); lookup {
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

// Range appends the bytes from start to end, both inclusive, to dst. Negative positions count from the end, -1 being the
// last byte; positions beyond the value are cut to it. A key that does not exist is an empty string. O(length of the
// range), and of a value up to 64 KiB O(length).
func (s String) Range(dst []byte, start, end int64) ([]byte, error) {
	err := s.do(reading, func(t *Tx) (err error) {
		dst, err = s.on(t).Range(dst, start, end)
		return err
	})
	return dst, err
}

// Put makes the key hold value, whatever it held before. Without options the key has no deadline afterwards. With IfAbsent
// or IfPresent it may fail with ErrExists or ErrNotFound; a deadline that is not positive gives ErrExpireTime, contradicting
// options structures.ErrSyntax, and a value above 512 MB structures.ErrTooLong. O(length).
func (s String) Put(value []byte, options ...PutOption) error {
	var o SetOptions
	res, err := call(s.handle, writing, func(t *Tx) (_ SetResult, err error) {
		if len(options) > 0 {
			if o, err = putOptions(options, t.now()); err != nil {
				return SetResult{}, err
			}
		}
		return s.on(t).Set(value, o)
	})
	if err != nil || res.Done {
		return err
	}
	if o.IfAbsent {
		return ErrExists
	}
	return ErrNotFound
}

// putOptions folds the options of a Put into one value. They may come in any order; two deadlines contradict each other.
func putOptions(options []PutOption, now int64) (SetOptions, error) {
	var o SetOptions
	deadline := func(ms int64) error {
		if o.Deadline != 0 {
			return structures.ErrSyntax
		}
		if ms <= 0 {
			return structures.ErrExpireTime
		}
		o.Deadline = ms
		return nil
	}
	for _, option := range options {
		var err error
		switch option.apply {
		case putTTL:
			ms := option.d.Milliseconds()
			if ms <= 0 {
				return o, structures.ErrExpireTime
			}
			err = deadline(now + ms)
		case putExpireAt:
			err = deadline(option.ms)
		case putKeepTTL:
			o.KeepTTL = true
		case putIfAbsent:
			o.IfAbsent = true
		case putIfPresent:
			o.IfPresent = true
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

// Set is Put with everything that SET can say: it returns whether the write was done, and with o.Get the value that was
// there. A condition that does not hold is no error. O(length).
func (s String) Set(value []byte, o SetOptions) (SetResult, error) {
	return call(s.handle, writing, func(t *Tx) (SetResult, error) { return s.on(t).Set(value, o) })
}

// Append extends the value, an empty one if the key does not exist, and returns its new length. The deadline stays. It
// fails with structures.ErrTooLong above 512 MB. O(length of the added bytes), and of a value up to 64 KiB O(length): see
// [String].
func (s String) Append(value []byte) (int, error) {
	return call(s.handle, writing, func(t *Tx) (int, error) { return s.on(t).Append(value) })
}

// Incr adds delta, which may be negative, to the decimal integer that the key holds, 0 if it does not exist, and returns
// the sum. The deadline stays. It fails with structures.ErrNotInteger if the value is no int64, and with
// structures.ErrOverflow if the sum would not be one. O(1).
func (s String) Incr(delta int64) (int64, error) {
	return call(s.handle, writing, func(t *Tx) (int64, error) { return s.on(t).Incr(delta) })
}

func (s String) on(t *Tx) structures.String { return structures.String{Txn: t.txn(), Key: s.key} }
