// Package codec keeps values of a Go type in a store of package db: as JSON, as gob, or in any other form.
//
// # Types
//
// [String], [Hash] and [List] are db's handles with a type. They embed the handle, so that every method of it is there;
// the methods that this package has as well take and return a T in the place of bytes:
//
//	users := codec.HashOf[User](store.Hash("users"))
//	isNew, err := users.Put("ada", User{Name: "Ada"})
//	ada, err := users.Get("ada")
//
// A [Codec] turns values into bytes and back. Its bytes are what is stored: clients of a server see them, and a program
// of another language can read them.
//
// # Guarantees
//
// A handle of a store makes each call atomic, one of a transaction takes part in it, as in db. A codec that panics
// leaves nothing locked. Besides the errors of db there are two: an [*EncodeError] for a value that the codec refuses,
// and then nothing is written; and a [*DecodeError], with the stored bytes, for bytes that it cannot decode.
//
// # Locks
//
// As those of db. The methods of a codec are called from the goroutines of its callers, many at a time.
//
// # Caveats
//
// Members of sets and sorted sets, and names of fields, are strings: they have no codec.
package codec
