package codec

import (
	"errors"
	"fmt"
	"iter"
	"time"

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
	values, err := h.taken(fields, all, err)
	if err != nil {
		return nil, err
	}
	return values, nil
}

// taken are those of the fields that exist and can be decoded, with an error for each other one.
func (h Hash[T]) taken(fields []string, all [][]byte, err error) (map[string]T, error) {
	if err != nil {
		return nil, err
	}
	values := make(map[string]T, len(fields))
	var errs []error
	for i, data := range all {
		if data == nil {
			continue
		}
		if v, err := h.decode(fields[i], data); err != nil {
			errs = append(errs, err)
		} else {
			values[fields[i]] = v
		}
	}
	return values, errors.Join(errs...)
}

// GetAndDelete deletes fields and returns the values of those that existed. Besides these it returns a *DecodeError for
// each that held something else: it is deleted nevertheless, unless that is within a transaction and this one fails.
// O(log n + length) a field.
func (h Hash[T]) GetAndDelete(fields ...string) (map[string]T, error) {
	all, err := h.Hash.GetAndDelete(fields...)
	return h.taken(fields, all, err)
}

// GetAndExpire is GetMany that lets the fields expire after d, also those that hold no T: for each of these it returns a
// *DecodeError, besides the others. O(log n + length) a field.
func (h Hash[T]) GetAndExpire(d time.Duration, fields ...string) (map[string]T, error) {
	all, err := h.Hash.GetAndExpire(d, fields...)
	return h.taken(fields, all, err)
}

// GetAndExpireAt is GetAndExpire with the moment at which the fields expire. O(log n + length) a field.
func (h Hash[T]) GetAndExpireAt(at time.Time, fields ...string) (map[string]T, error) {
	all, err := h.Hash.GetAndExpireAt(at, fields...)
	return h.taken(fields, all, err)
}

// GetAndPersist is GetAndExpire that removes the deadlines of the fields. O(log n + length) a field.
func (h Hash[T]) GetAndPersist(fields ...string) (map[string]T, error) {
	all, err := h.Hash.GetAndPersist(fields...)
	return h.taken(fields, all, err)
}

// Put sets one field and says whether it is new. Without options it has no deadline afterwards. It fails with
// an *EncodeError. O(log n + length).
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
	fields, err := h.encodeAll(values)
	if err != nil {
		return 0, err
	}
	return h.Hash.PutAll(fields...)
}

// PutWith is PutAll with the options and errors of db.Hash.PutWith. O(log n + length) a field.
func (h Hash[T]) PutWith(values map[string]T, options ...db.WriteOption) error {
	fields, err := h.encodeAll(values)
	if err != nil {
		return err
	}
	return h.Hash.PutWith(fields, options...)
}

func (h Hash[T]) encodeAll(values map[string]T) ([]db.Field, error) {
	fields := make([]db.Field, 0, len(values))
	for name, v := range values {
		data, err := encode(h.Codec, v)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		fields = append(fields, db.Field{Name: name, Value: data})
	}
	return fields, nil
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

// Entries returns all fields, in no particular order, as of one moment. It fails with a *DecodeError if one of them holds
// something else. O(n + length).
func (h Hash[T]) Entries() ([]Field[T], error) {
	fields, err := h.Hash.Entries()
	return h.fields(fields, err)
}

// Random returns fields chosen at random: see db.Hash.Random. It fails with a *DecodeError if one of them holds
// something else.
func (h Hash[T]) Random(n int) ([]Field[T], error) {
	fields, err := h.Hash.Random(n)
	return h.fields(fields, err)
}

// Scan returns some fields and the cursor that continues the scan: see db.Hash.Scan. After a *DecodeError, for a field
// that holds something else, next is the cursor all the same.
func (h Hash[T]) Scan(cursor uint64, o db.ScanOptions) (fields []Field[T], next uint64, err error) {
	some, next, err := h.Hash.Scan(cursor, o)
	fields, err = h.fields(some, err)
	return fields, next, err
}

// fields are all of them, or the first error.
func (h Hash[T]) fields(list []db.Field, err error) ([]Field[T], error) {
	if err != nil {
		return nil, err
	}
	fields := make([]Field[T], len(list))
	for i, f := range list {
		fields[i].Name = f.Name
		if fields[i].Value, err = h.decode(f.Name, f.Value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func (h Hash[T]) decode(field string, data []byte) (T, error) {
	v, err := decode[T](h.Codec, data)
	if err != nil {
		err = fmt.Errorf("field %q: %w", field, err)
	}
	return v, err
}
