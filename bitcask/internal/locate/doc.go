// Package locate finds and moves the location that the keydir has for a record, given what the record is about.
//
// Move is the one place where a location moves. Callers hold the stripe lock of the key.
package locate
