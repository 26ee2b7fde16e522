// Package format is every byte that a store has in its segments: names of files, identities and records, frames with their
// checksums, header and footer of a segment. It encodes and parses; it does no input or output, takes no lock and keeps no
// state. docs/FORMAT.md is the same in prose.
//
// Identity is what a record is about, Record a parsed one, Frame one commit, Entry what loading needs to know of a record.
// Lengths that come from a file are checked against their limits before they are used; what does not parse is an error of
// package failure that the caller completes with the name of the file. Slices of what is parsed alias the bytes it was
// parsed from.
package format
