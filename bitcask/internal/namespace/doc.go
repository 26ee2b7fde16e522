// Package namespace says which space each namespace uses: a record carries the number of a space, a namespace is a name
// for one.
//
// A Table is the one owner of that. Its current Map is immutable and read without a lock; changes install a copy under
// Mu. Flush and swap also hold every stripe lock of the store, so under the lock of any stripe no space loses its name.
package namespace
