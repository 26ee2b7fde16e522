// Package manifest owns the file MANIFEST, the only truth about which segments make up a store.
//
// A Manifest is the decoded state and the open file. Read replays the file and changes nothing; MakeGood truncates the
// bytes after the last edit, once the store is known to open; Log appends one edit, durably, and applies it to the
// state. A crash leaves the state before an edit or after it. After a failure that leaves the file's content in doubt
// no further edit is written.
//
// A Manifest has no lock: its owner serializes the calls. It distinguishes a torn end from damage (judge), and damage
// from what a newer version has written (failure.ErrVersion).
package manifest
