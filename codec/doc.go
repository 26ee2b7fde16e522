// Package codec keeps values of a Go type in a store of package db: as JSON, as gob, or in any other form.
//
// # Types
//
// [String], [Hash], [List], [Stream] and [StreamGroup] are db's handles with a type. They embed the handle, so that every
// method of it is there; those that take or return values have a T in the place of bytes:
//
//	users := codec.HashOf[User](store.Hash("users"))
//	isNew, err := users.Put("ada", User{Name: "Ada"})
//	ada, err := users.Get("ada")
//
// A [Codec] turns values into bytes and back. Its bytes are what is stored: clients of a server see them, and a program
// of another language can read them. An entry of a stream has them in one field, [ValueField].
//
// Some methods deal with the stored bytes on purpose, and are those of db: Append, AppendTo, Range and SetRange of a
// string, AppendTo of a hash, Append of a stream, and all whose names begin with Visit, which copy nothing.
//
// # Guarantees
//
// A handle of a store makes each call atomic, one of a transaction takes part in it, as in db. A codec that panics
// leaves nothing locked. Besides the errors of db there are two: an [*EncodeError] for a value that the codec refuses,
// and then nothing is written; and a [*DecodeError], with the stored bytes, for bytes that it cannot decode. A call that
// only reads returns nothing else then. One that has taken out several values, changed their deadlines or delivered them,
// such as List.PopFrontN and StreamGroup.Read, returns those that can be decoded, and a *DecodeError for each other one
// in one error (errors.Join). Of an entry of a stream the error says which: it is an [*EntryError].
//
// # Locks
//
// As those of db. The methods of a codec are called from the goroutines of its callers, many at a time.
//
// # Caveats
//
// Members of sets and sorted sets, and names of fields, are strings: they have no codec.
package codec
