// Package dump shows the records of one file of a store to people: a segment, a hint, a MANIFEST or an INDEX, without
// opening the store. It takes a file as it is: what does not verify is an [Item] of its own, with its offset, and the
// walk goes on after it. What the files hold is described in docs/FORMAT.md.
//
// The file may be one that a server is writing to: its last commit may then be shown as damage, since half of it was
// there.
package dump
