// Package locate finds, moves, puts and removes the location that the keydir has for a record, given what the record
// is about. Which calls of the keydir that takes is in the rows of package format.
//
// Move is the one place where a location moves. Callers hold the stripe lock of the key.
package locate
