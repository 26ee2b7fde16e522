package codec

import (
	"context"

	"github.com/stavedb/stave/db"
)

// StreamGroup is a handle on a consumer group of a stream of values of type T. What a call delivers is pending for the
// consumer also if it is no T: such a call returns the entries that are, and an *EntryError for each that is not, whose
// id can be acknowledged (errors.Join: several are in one error).
type StreamGroup[T any] struct {
	db.StreamGroup
	Codec Codec // Default: JSON.
}

// Group returns a handle on a consumer group of the stream. It reads nothing.
func (s Stream[T]) Group(name string) StreamGroup[T] {
	return StreamGroup[T]{StreamGroup: s.Stream.Group(name), Codec: s.Codec}
}

// Read delivers the next entries of the stream to a consumer: see db.StreamGroup.Read. O(log n + length) an entry.
func (g StreamGroup[T]) Read(consumer string, count int) ([]Entry[T], error) {
	list, err := g.StreamGroup.Read(consumer, count)
	return delivered[T](g.Codec, list, err)
}

// ReadWait is Read that waits while there is nothing new, as db.StreamGroup.ReadWait does.
func (g StreamGroup[T]) ReadWait(ctx context.Context, consumer string, count int) ([]Entry[T], error) {
	list, err := g.StreamGroup.ReadWait(ctx, consumer, count)
	return delivered[T](g.Codec, list, err)
}

// History returns what is pending for a consumer after an id: see db.StreamGroup.History. An entry that is gone has
// NoValue. O(log n + length) an entry.
func (g StreamGroup[T]) History(consumer string, after db.StreamID, count int) ([]Entry[T], error) {
	list, err := g.StreamGroup.History(consumer, after, count)
	return delivered[T](g.Codec, list, err)
}

// Claim makes pending entries those of another consumer, and returns them: see db.StreamGroup.Claim. O(log n + length)
// an id.
func (g StreamGroup[T]) Claim(c db.StreamClaim, ids ...db.StreamID) ([]Entry[T], error) {
	list, err := g.StreamGroup.Claim(c, ids...)
	return delivered[T](g.Codec, list, err)
}

// AutoClaim is Claim of entries that have been pending for long: see db.StreamGroup.AutoClaim. next and gone are
// returned with an *EntryError as well. O(log n + length) an entry looked at.
func (g StreamGroup[T]) AutoClaim(c db.StreamAutoClaim) (list []Entry[T], next db.StreamID, gone []db.StreamID, err error) {
	some, next, gone, err := g.StreamGroup.AutoClaim(c)
	list, err = delivered[T](g.Codec, some, err)
	return list, next, gone, err
}
