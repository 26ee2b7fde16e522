package codec

import (
	"context"
	"fmt"
	"iter"

	"github.com/stavedb/stave/db"
)

// List is a handle on a key that holds a list of values of type T: a queue of jobs, for one. Positions are those of
// db.List.
type List[T any] struct {
	db.List
	Codec Codec // Default: JSON.
}

// ListOf gives a handle a type, with JSON for the codec.
func ListOf[T any](l db.List) List[T] { return List[T]{List: l} }

// PushFront puts values in front, one after the other, so that the last one comes first, and returns the new length. It
// fails with *EncodeError, and then puts none. O(length) a value.
func (l List[T]) PushFront(values ...T) (int, error) {
	all, err := encodeAll(l.Codec, values)
	if err != nil {
		return 0, err
	}
	return l.List.PushFront(all...)
}

// PushBack puts values at the back and returns the new length. It fails with an *EncodeError, and then puts none.
// O(length) a value.
func (l List[T]) PushBack(values ...T) (int, error) {
	all, err := encodeAll(l.Codec, values)
	if err != nil {
		return 0, err
	}
	return l.List.PushBack(all...)
}

// PopFront removes and returns the first element. It fails with db.ErrNotFound if there is none, and with a
// *DecodeError if it is no T: then it is removed nevertheless, unless that is within a transaction and this one fails.
// O(length).
func (l List[T]) PopFront() (T, error) {
	data, err := l.List.PopFront()
	return decoded[T](l.Codec, data, err)
}

// PopBack is PopFront for the last element. O(length).
func (l List[T]) PopBack() (T, error) {
	data, err := l.List.PopBack()
	return decoded[T](l.Codec, data, err)
}

// PopFrontWait is PopFront that waits for an element while the list does not exist, as db.List.PopFrontWait does.
func (l List[T]) PopFrontWait(ctx context.Context) (T, error) {
	data, err := l.List.PopFrontWait(ctx)
	return decoded[T](l.Codec, data, err)
}

// PopBackWait is PopBack that waits for an element while the list does not exist.
func (l List[T]) PopBackWait(ctx context.Context) (T, error) {
	data, err := l.List.PopBackWait(ctx)
	return decoded[T](l.Codec, data, err)
}

// At returns the element at a position. It fails with db.ErrNotFound if there is none, and with a *DecodeError if it is
// no T. O(length).
func (l List[T]) At(position int64) (T, error) {
	data, err := l.List.At(position)
	return decoded[T](l.Codec, data, err)
}

// Set replaces the element at a position; the errors are those of db.List.Set, and an *EncodeError. O(length).
func (l List[T]) Set(position int64, v T) error {
	data, err := encode(l.Codec, v)
	if err != nil {
		return err
	}
	return l.List.Set(position, data)
}

// Range returns the elements from start to stop, both inclusive. It fails with a *DecodeError if one of them is no T.
// O(length) an element.
func (l List[T]) Range(start, stop int64) ([]T, error) {
	all, err := l.List.Range(start, stop)
	if err != nil {
		return nil, err
	}
	values := make([]T, len(all))
	for i, data := range all {
		if values[i], err = decode[T](l.Codec, data); err != nil {
			return nil, fmt.Errorf("element %d of a range: %w", i, err)
		}
	}
	return values, nil
}

// All ranges over the elements, front to back, in pages as db.List.All does. The first error, which may be
// a *DecodeError, ends the loop.
func (l List[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		i := 0
		for data, err := range l.List.All() {
			v, err := decoded[T](l.Codec, data, err)
			if err != nil {
				err = fmt.Errorf("element %d: %w", i, err)
			}
			if !yield(v, err) || err != nil {
				return
			}
			i++
		}
	}
}
