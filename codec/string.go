package codec

import "github.com/stavedb/stave/db"

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
