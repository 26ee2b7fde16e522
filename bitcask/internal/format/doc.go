// Package format is every byte that a store has in its segments: names of files, identities and records, frames with
// their checksums, header and footer of a segment. It encodes and parses; it does no input or output, takes no lock and
// keeps no state. docs/FORMAT.md describes the same bytes in prose.
//
// Identity is what a record is about, Record a parsed one, Frame one commit, Entry what loading needs of a record.
// Lengths that come from a file are checked against their limits before they are used. A parse error is one of package
// failure, which the caller completes with the name of the file. Parsed slices alias the bytes they were parsed from.
package format
