package codec

import (
	"context"
	"errors"
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
// fails with an *EncodeError, and then puts none. O(length) a value.
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

// PopFrontN removes and returns up to n elements from the front. Besides these it returns a *DecodeError for each that is
// no T: it is removed nevertheless, unless that is within a transaction and this one fails. O(length) an element.
func (l List[T]) PopFrontN(n int) ([]T, error) {
	all, err := l.List.PopFrontN(n)
	return l.taken(all, err)
}

// PopBackN is PopFrontN for the last elements, the last one first. O(length) an element.
func (l List[T]) PopBackN(n int) ([]T, error) {
	all, err := l.List.PopBackN(n)
	return l.taken(all, err)
}

// taken are the values that can be decoded, with an error for each other one.
func (l List[T]) taken(all [][]byte, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	values := make([]T, 0, len(all))
	var errs []error
	for _, data := range all {
		if v, err := decode[T](l.Codec, data); err != nil {
			errs = append(errs, err)
		} else {
			values = append(values, v)
		}
	}
	return values, errors.Join(errs...)
}

// Move moves an element from one end of the list to one end of the list at to, and returns it: a job from the queue to
// those that are being done. The errors are those of db.List.Move; one that is no T is moved nevertheless, and a
// *DecodeError returned. O(length).
func (l List[T]) Move(to string, from, into db.End) (T, error) {
	data, err := l.List.Move(to, from, into)
	return decoded[T](l.Codec, data, err)
}

// MoveMany is Move of several elements, in the order in which they stand then. Besides these it returns a *DecodeError for each
// that is no T and was moved nevertheless. The other errors are those of db.List.MoveMany. O(length) an element.
func (l List[T]) MoveMany(to string, from, into db.End, m db.ListMove) ([]T, error) {
	all, err := l.List.MoveMany(to, from, into, m)
	return l.taken(all, err)
}

// MoveWait is Move that waits for an element while the list does not exist, as db.List.MoveWait does.
func (l List[T]) MoveWait(ctx context.Context, to string, from, into db.End) (T, error) {
	data, err := l.List.MoveWait(ctx, to, from, into)
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

// PushWith is PushFront or PushBack with the conditions of db.List.PushWith. O(length) a value.
func (l List[T]) PushWith(end db.End, values []T, options ...db.WriteOption) (int, error) {
	all, err := encodeAll(l.Codec, values)
	if err != nil {
		return 0, err
	}
	return l.List.PushWith(end, all, options...)
}

// Remove deletes elements that equal v: see db.List.Remove. Elements are equal if their bytes are, so the codec must make
// the same ones of equal values; gob does not of maps. It fails with an *EncodeError. O(n).
func (l List[T]) Remove(count int64, v T) (int, error) {
	data, err := encode(l.Codec, v)
	if err != nil {
		return 0, err
	}
	return l.List.Remove(count, data)
}

// Positions returns the positions of the elements that equal v, as Remove compares them: see db.List.Positions. O(n).
func (l List[T]) Positions(v T, o db.PositionOptions) ([]int64, error) {
	data, err := encode(l.Codec, v)
	if err != nil {
		return nil, err
	}
	return l.List.Positions(data, o)
}

// InsertBefore puts v before the first element that equals pivot, as Remove compares them: see db.List.InsertBefore.
// O(n).
func (l List[T]) InsertBefore(pivot, v T) (int, error) {
	both, err := encodeAll(l.Codec, []T{pivot, v})
	if err != nil {
		return 0, err
	}
	return l.List.InsertBefore(both[0], both[1])
}

// InsertAfter is InsertBefore that puts v after the element. O(n).
func (l List[T]) InsertAfter(pivot, v T) (int, error) {
	both, err := encodeAll(l.Codec, []T{pivot, v})
	if err != nil {
		return 0, err
	}
	return l.List.InsertAfter(both[0], both[1])
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
