package codec

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/stavedb/stave/db"
)

// ValueField is the field of an entry that has its value: clients of a server see entries with this one field.
const ValueField = "value"

// Stream is a handle on a key that holds a stream of values of type T: a log of events, for one. An entry has its value
// in the field ValueField; what else it has is left alone.
type Stream[T any] struct {
	db.Stream
	Codec Codec // Default: JSON.
}

// StreamOf gives a handle a type, with JSON for the codec.
func StreamOf[T any](s db.Stream) Stream[T] { return Stream[T]{Stream: s} }

// Entry is an entry of a stream: its id and its value.
type Entry[T any] struct {
	ID    db.StreamID
	Value T
	// NoValue is set where the store has none to give: by StreamGroup.History for an entry that is gone, and where
	// JustID asks for ids.
	NoValue bool
}

// EntryError says which entry of a stream an error is about.
type EntryError struct {
	ID  db.StreamID
	Err error // a *DecodeError
}

func (e *EntryError) Error() string { return fmt.Sprintf("entry %v: %v", e.ID, e.Err) }

// Unwrap returns the error.
func (e *EntryError) Unwrap() error { return e.Err }

// errNoValue is of an entry that another program has added.
var errNoValue = errors.New("the entry has no field " + ValueField)

// Add appends an entry and returns its id: see db.Stream.Add. It fails with an *EncodeError. O(log n + length).
func (s Stream[T]) Add(v T) (db.StreamID, error) { return s.AddWith(db.StreamAddOptions{}, v) }

// AddWith is Add with the options and errors of db.Stream.AddWith. O(log n + length), and O(1) an entry trimmed.
func (s Stream[T]) AddWith(o db.StreamAddOptions, v T) (db.StreamID, error) {
	data, err := encode(s.Codec, v)
	if err != nil {
		return db.StreamID{}, err
	}
	return s.Stream.AddWith(o, db.Field{Name: ValueField, Value: data})
}

// Get returns an entry. It fails with db.ErrNotFound if there is none, and with an *EntryError if it holds something
// else. O(log n + length).
func (s Stream[T]) Get(id db.StreamID) (Entry[T], error) {
	e, err := s.Stream.Get(id)
	if err != nil {
		return Entry[T]{}, err
	}
	return entry[T](s.Codec, e)
}

// Range returns up to count entries, all if it is 0, from one id to another, both inclusive. It fails with an
// *EntryError if one of them holds something else. O(log n + number returned).
func (s Stream[T]) Range(from, to db.StreamID, count int) ([]Entry[T], error) {
	list, err := s.Stream.Range(from, to, count)
	return entries[T](s.Codec, list, err)
}

// RangeReverse is Range from the greatest id down. O(log n + number returned).
func (s Stream[T]) RangeReverse(from, to db.StreamID, count int) ([]Entry[T], error) {
	list, err := s.Stream.RangeReverse(from, to, count)
	return entries[T](s.Codec, list, err)
}

// ReadWait is Range of what comes after an id that waits while there is nothing, as db.Stream.ReadWait does.
func (s Stream[T]) ReadWait(ctx context.Context, after db.StreamID, count int) ([]Entry[T], error) {
	list, err := s.Stream.ReadWait(ctx, after, count)
	return entries[T](s.Codec, list, err)
}

// All ranges over the entries from an id on, in pages as db.Stream.All does. The first error, which may be an
// *EntryError, ends the loop.
func (s Stream[T]) All(from db.StreamID) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		for stored, err := range s.Stream.All(from) {
			var e Entry[T]
			if err == nil {
				e, err = entry[T](s.Codec, stored)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// entry decodes an entry.
func entry[T any](c Codec, stored db.StreamEntry) (Entry[T], error) {
	if len(stored.Fields) == 0 {
		return Entry[T]{ID: stored.ID, NoValue: true}, nil
	}
	for _, f := range stored.Fields {
		if f.Name != ValueField {
			continue
		}
		v, err := decode[T](c, f.Value)
		if err != nil {
			return Entry[T]{}, &EntryError{stored.ID, err}
		}
		return Entry[T]{ID: stored.ID, Value: v}, nil
	}
	return Entry[T]{}, &EntryError{stored.ID, &DecodeError{Type: reflect.TypeFor[T](), Err: errNoValue}}
}

// entries are all of them, or an error.
func entries[T any](c Codec, stored []db.StreamEntry, err error) ([]Entry[T], error) {
	list, err := delivered[T](c, stored, err)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// delivered are the entries that can be decoded, with an error for each other one.
func delivered[T any](c Codec, stored []db.StreamEntry, err error) ([]Entry[T], error) {
	if err != nil {
		return nil, err
	}
	list := make([]Entry[T], 0, len(stored))
	var errs []error
	for i := range stored {
		if e, err := entry[T](c, stored[i]); err != nil {
			errs = append(errs, err)
		} else {
			list = append(list, e)
		}
	}
	return list, errors.Join(errs...)
}
