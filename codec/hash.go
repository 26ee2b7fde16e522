package codec

import (
	"fmt"
	"iter"

	"github.com/stavedb/stave/db"
)

// Hash is a handle on a key that holds a map from field names to values of type T: a table of records by their name.
type Hash[T any] struct {
	db.Hash
	Codec Codec // Default: JSON.
}

// HashOf gives a handle a type, with JSON for the codec.
func HashOf[T any](h db.Hash) Hash[T] { return Hash[T]{Hash: h} }

// Get returns a field's value. It fails with db.ErrNotFound if the key or the field does not exist, and with a
// *DecodeError if the field holds something else. O(log n + length).
func (h Hash[T]) Get(field string) (T, error) {
	data, err := h.Hash.Get(field)
	if err != nil {
		var none T
		return none, err
	}
	return h.decode(field, data)
}

// GetMany returns the values of those of the fields that exist. It fails with a *DecodeError if one of them holds
// something else. O(log n + length) a field.
func (h Hash[T]) GetMany(fields ...string) (map[string]T, error) {
	all, err := h.Hash.GetMany(fields...)
	if err != nil {
		return nil, err
	}
	values := make(map[string]T, len(fields))
	for i, data := range all {
		if data == nil {
			continue
		}
		if values[fields[i]], err = h.decode(fields[i], data); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Put sets one field and says whether it is new. Without options it has no deadline afterwards. It fails with
// an *EncodeError. O(log n
// + length).
func (h Hash[T]) Put(field string, v T, options ...db.WriteOption) (bool, error) {
	data, err := encode(h.Codec, v)
	if err != nil {
		return false, err
	}
	return h.Hash.Put(field, data, options...)
}

// PutAll sets fields, all or none, and returns how many of them are new. They have no deadline afterwards. It fails
// with an *EncodeError. O(log n + length) a field.
func (h Hash[T]) PutAll(values map[string]T) (int, error) {
	fields := make([]db.Field, 0, len(values))
	for name, v := range values {
		data, err := encode(h.Codec, v)
		if err != nil {
			return 0, fmt.Errorf("field %q: %w", name, err)
		}
		fields = append(fields, db.Field{Name: name, Value: data})
	}
	return h.Hash.PutAll(fields...)
}

// Field is a field of a hash: its name and its value.
type Field[T any] struct {
	Name  string
	Value T
}

// All ranges over the fields, in no particular order, in pages as db.Hash.All does. The first error, which may be a
// *DecodeError, ends the loop.
func (h Hash[T]) All() iter.Seq2[Field[T], error] {
	return func(yield func(Field[T], error) bool) {
		for f, err := range h.Hash.All() {
			if err != nil {
				yield(Field[T]{}, err)
				return
			}
			v, err := h.decode(f.Name, f.Value)
			if err != nil {
				yield(Field[T]{}, err)
				return
			}
			if !yield(Field[T]{Name: f.Name, Value: v}, nil) {
				return
			}
		}
	}
}

func (h Hash[T]) decode(field string, data []byte) (T, error) {
	v, err := decode[T](h.Codec, data)
	if err != nil {
		err = fmt.Errorf("field %q: %w", field, err)
	}
	return v, err
}
