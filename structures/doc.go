// Package structures implements Redis's data types over a small transaction interface.
//
// # Types
//
// A type is a value struct that names one key inside one atomic unit:
//
//	n, err := structures.Hash{Txn: t, Key: "user:1"}.PutAll([]structures.Field{{Name: "name", Value: v}})
//
// String, Hash, List, Set, SortedSet and Stream are the six types; Bitmap and HyperLogLog are views of a string. Key
// holds what all types share (existence, deadline, name, copies, sorting). Besides them the package has Redis's glob
// patterns (Match). A [Txn] is all that the types need of a store.
//
// # Records
//
// A short string is one record; a long one, or one that is edited in small parts, is a record for each chunk. A hash
// has a record for each field, a set one for each member, a sorted set one for each member with its score, and a list
// one for each element, under an index that grows at the back and falls in front. A field's deadline is a record of its
// own. How they look is in docs/FORMAT.md.
//
// # Guarantees
//
// Semantics, including the order in which errors are found, are those of Redis 7.4. Nothing is written when a call
// returns one of the errors of type [Error]. Any other error comes from Txn, and its atomic unit has to be rolled back.
// Costs are stated at each method; "O(log n)" is in the size of the collection, and a size is always O(1).
//
// # Locks
//
// The package is pure: it does no I/O but through Txn, starts no goroutine, takes no lock, and reads neither a clock
// nor a source of randomness; both are arguments. The implementation of Txn makes a method call atomic and isolated.
//
// # Caveats
//
// A value struct is for one goroutine and for the life of its Txn. Slices passed to visitors are valid during the call
// only.
package structures
