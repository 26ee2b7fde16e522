package bitcask

import (
	"errors"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// Errors of the store. All that wrap one of these say which file and offset.
var (
	ErrNotFound  = errors.New("stave: not found")                      // Get: no such key
	ErrClosed    = failure.ErrClosed                                   // any call after Close
	ErrReadOnly  = errors.New("stave: store is open for reading only") // a write with Options.ReadOnly
	ErrIndexFull = errors.New("index is full")                         // one collection, or a 256th of all, takes 16 GiB of RAM
	ErrTooLarge  = failure.ErrTooLarge                                 // key, element, value or commit over its limit
	ErrOption    = errors.New("stave: invalid option")                 // Open, OpenMemory, repair.Salvage, merge.New, db.Open; names the field
	ErrLocked    = failure.ErrLocked                                   // Open: another process (or this one) has it
	ErrManifest  = errors.New("manifest missing")                      // segments without a manifest: repair, never an empty store
	ErrMergeBusy = errors.New("stave: a merge is running")             // one merge at a time
	ErrFailed    = failure.ErrFailed                                   // wrapped with the cause; reopen to go on

	ErrFull    = failure.ErrFull    // segment ids, spaces or sequence numbers: copy the store with export and import, or repair
	ErrVersion = failure.ErrVersion // written by a newer Stave; a hint or INDEX, by an older one, too
	ErrMissing = failure.ErrMissing // the manifest names a file that is not there
	ErrForeign = failure.ErrForeign // store id differs
	ErrNoSpace = failure.ErrNoSpace // the disk is full, a quota used up, a file at its limit; wrapped with the cause; passes by itself

	// ErrRolledBack is the error of a read in a store that follows another: the writer has rolled back the record,
	// after a write that failed half way. The next read finds the record that holds now.
	ErrRolledBack = failure.ErrRolledBack

	// ErrReplaced is the error of a store that follows, and of a feed, when a directory was put in the place of the one
	// that they read; of a feed also when an older copy was put into it, whose writer has given sequence numbers again.
	ErrReplaced = failure.ErrReplaced

	// These come with ErrFailed as well, but for a backup's directory.
	ErrDirectoryGone = failure.ErrDirectoryGone                                                                     // writes would be lost
	ErrLockLost      = errors.New("the file LOCK has been removed or replaced: another process may have the store") // Close, then look
)

// CorruptError reports damaged bytes: in which file, by its base name, at which offset, and why.
type CorruptError = failure.CorruptError

// NoSpace reports whether something failed for lack of disk space, or because a quota or the longest that a file may be
// is reached. Of errors of the store that are about its own directory errors.Is(err, ErrNoSpace) says the same.
func NoSpace(err error) bool { return failure.NoSpace(err) }

// NoRoomError says how much space is missing where the reserve does not suffice: the error of a delete or merge on a full
// disk. It is an ErrNoSpace, too.
type NoRoomError = failure.NoRoomError

// ErrNotEmpty is returned by Salvage and Backup if the directory for the new store has files in it.
var ErrNotEmpty = failure.ErrNotEmpty

// SegmentError says that a merge could not read a segment, named by File, and why (Err). What the segment
// holds is as it was.
type SegmentError = failure.SegmentError
