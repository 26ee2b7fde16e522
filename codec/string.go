package codec

import (
	"slices"
	"time"

	"github.com/stavedb/stave/db"
)

// String is a handle on a key that holds one value of type T.
type String[T any] struct {
	db.String
	Codec Codec // Default: JSON.
}

// StringOf gives a handle a type, with JSON for the codec.
func StringOf[T any](s db.String) String[T] { return String[T]{String: s} }

// Get returns the value. It fails with db.ErrNotFound if the key does not exist, and with a *DecodeError if it holds
// something else. O(length).
func (s String[T]) Get() (T, error) {
	data, err := s.String.Get()
	return decoded[T](s.Codec, data, err)
}

// Put makes the key hold v; the options and errors are those of db.String.Put, and an *EncodeError. O(length).
func (s String[T]) Put(v T, options ...db.WriteOption) error {
	data, err := encode(s.Codec, v)
	if err != nil {
		return err
	}
	return s.String.Put(data, options...)
}

// SetResult is what String.Set did and found.
type SetResult[T any] struct {
	Done    bool // v was written
	Existed bool // there was a value before
	Old     T    // with db.ReturnOld, the value that was there
}

// Set is Put that returns whether it has written, and with db.ReturnOld the value that was there. A condition that does
// not hold is no error. If the old value is no T it fails with a *DecodeError, and the result says what it has done.
// O(length).
func (s String[T]) Set(v T, options ...db.WriteOption) (SetResult[T], error) {
	data, err := encode(s.Codec, v)
	if err != nil {
		return SetResult[T]{}, err
	}
	res, err := s.String.Set(data, options...)
	r := SetResult[T]{Done: res.Done, Existed: res.Existed}
	if err == nil && res.Existed && slices.Contains(options, db.ReturnOld) {
		r.Old, err = decode[T](s.Codec, res.Old)
	}
	return r, err
}

// GetAndDelete returns the value and deletes the key. The errors are those of Get; after a *DecodeError the key is
// deleted nevertheless, unless that is within a transaction and this one fails. O(length).
func (s String[T]) GetAndDelete() (T, error) {
	data, err := s.String.GetAndDelete()
	return decoded[T](s.Codec, data, err)
}

// GetAndExpire is Get that lets the key expire after d, as that of a session which is used; a key that holds no T gets
// that deadline as well. O(length).
func (s String[T]) GetAndExpire(d time.Duration) (T, error) {
	data, err := s.String.GetAndExpire(d)
	return decoded[T](s.Codec, data, err)
}

// GetAndExpireAt is GetAndExpire with the moment at which the key expires. O(length).
func (s String[T]) GetAndExpireAt(at time.Time) (T, error) {
	data, err := s.String.GetAndExpireAt(at)
	return decoded[T](s.Codec, data, err)
}

// GetAndPersist is Get that removes the deadline of the key, also of one that holds no T. O(length).
func (s String[T]) GetAndPersist() (T, error) {
	data, err := s.String.GetAndPersist()
	return decoded[T](s.Codec, data, err)
}
