package bitcask

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
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

// damaged reports whether err is about the old bytes of a record: overwriting
// or deleting it is how a user gets rid of it.
func damaged(err error) bool {
	var c *CorruptError
	return errors.As(err, &c)
}

// retryable is a failure after which everything is as it was, and which may pass.
// A failed sync is never that.
type retryable struct{ error }

func (u retryable) Unwrap() error { return u.error }

// Is makes ErrNoSpace of what it is.
func (u retryable) Is(target error) bool { return target == ErrNoSpace && NoSpace(u.error) }

func isRetryable(err error) bool {
	var u retryable
	return errors.As(err, &u)
}

// isTransient reports whether what failed may work again later: the disk is full, or
// there are no more descriptors.
func isTransient(err error) bool { return NoSpace(err) || noDescriptors(err) }

// NoSpace reports whether something failed for want of disk space, or because a
// quota or the longest that a file may be is reached. Of errors of the store
// that are about its own directory errors.Is(err, ErrNoSpace) says the same.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errFileLimit) || diskFull(err) || errors.Is(err, ErrNoSpace)
}

// errFileLimit is the cause when a file would be longer than it may be.
var errFileLimit error = syscall.EFBIG

// lacking makes an error that is about disk space an ErrNoSpace.
func lacking(err error) error {
	if err == nil || !NoSpace(err) || errors.Is(err, ErrNoSpace) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoSpace, err)
}

// noDescriptors also tells that a directory was not even opened to be synced.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

var errCancelled = errors.New("cancelled")

func ignoreNotExist(err error) error {
	if isNotExist(err) {
		return nil
	}
	return err
}

// ignoreEnd returns an error that is not about where the bytes end.
func ignoreEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return ignoreBad(err)
}

// ignoreBad returns an error that is not about the bytes.
func ignoreBad(err error) error {
	var bad *badFrame
	if errors.As(err, &bad) {
		return nil
	}
	return err
}
