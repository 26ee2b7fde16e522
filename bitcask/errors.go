package bitcask

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors of the store. All that wrap one of these say which file and offset.
var (
	ErrNotFound  = errors.New("not found")                                         // Get: no such key
	ErrClosed    = errors.New("store is closed")                                   // any call after Close
	ErrReadOnly  = errors.New("store is open for reading only")                    // a write with Options.ReadOnly
	ErrIndexFull = errors.New("index is full")                                     // one collection, or a 256th of all, takes 16 GiB of RAM
	ErrTooLarge  = errors.New("larger than the format allows")                     // key, element, value or commit over its limit
	ErrFull      = errors.New("no more numbers left")                              // segment ids, spaces or sequence numbers: copy the store with export and import, or repair
	ErrVersion   = errors.New("format version not supported")                      // written by a newer Stave; a hint or INDEX, by an older one, too
	ErrLocked    = errors.New("store is in use")                                   // Open: another process (or this one) has it
	ErrManifest  = errors.New("manifest missing")                                  // segments without a manifest: repair, never an empty store
	ErrMissing   = errors.New("segment file missing")                              // the manifest names a file that is not there
	ErrForeign   = errors.New("file belongs to another store")                     // store id differs
	ErrMergeBusy = errors.New("a merge is running")                                // one merge at a time
	ErrNoSpace   = errors.New("no space to write")                                 // the disk is full, a quota used up, a file at its limit; wrapped with the cause; passes by itself
	ErrFailed    = errors.New("store refuses writes until it is opened once more") // wrapped with the cause; reopen to go on

	// These come with ErrFailed as well, but for a backup's directory.
	ErrDirectoryGone = errors.New("the directory, or a file that is in use, has been removed or replaced")          // what is written would be lost
	ErrLockLost      = errors.New("the file LOCK has been removed or replaced: another process may have the store") // Close, then look
)

// CorruptError says that stored bytes are not what was written.
type CorruptError struct {
	File   string // base name
	Offset int64  // where in the file
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// SegmentError says that a merge could not read a segment. What it holds is as
// it was.
type SegmentError struct {
	File string // base name
	Err  error
}

func (e *SegmentError) Error() string {
	return fmt.Sprintf("reading %s for a merge: %v", e.File, e.Err)
}

func (e *SegmentError) Unwrap() error { return e.Err }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
