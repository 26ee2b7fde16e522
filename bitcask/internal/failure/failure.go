// Package failure holds the errors that the rooms below a store return, and says which failures may pass by themselves.
//
// A CorruptError reports damaged bytes; a retryable failure has changed nothing, and may succeed later. The exported
// errors of package bitcask are these.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Errors of what the store is made of.
var (
	ErrTooLarge = errors.New("larger than the format allows")                     // key, element, value or commit over its limit
	ErrFull     = errors.New("no more numbers left")                              // segment ids, spaces or sequence numbers: copy the store with export and import, or repair
	ErrVersion  = errors.New("format version not supported")                      // written by a newer Stave; a hint or INDEX, by an older one, too
	ErrMissing  = errors.New("segment file missing")                              // the manifest names a file that is not there
	ErrForeign  = errors.New("file belongs to another store")                     // store id differs
	ErrClosed   = errors.New("stave: store is closed")                            // any call after Close
	ErrLocked   = errors.New("store is in use")                                   // Open: another process (or this one) has it
	ErrNotEmpty = errors.New("directory is not empty")                            // of a new store
	ErrFailed   = errors.New("store refuses writes until it is opened once more") // wrapped with the cause; reopen to write again
	ErrNoSpace  = errors.New("no space to write")                                 // the disk is full, a quota used up, a file at its limit; wrapped with the cause; passes by itself

	// ErrRolledBack is what a store that follows says of a commit that it has read, and that its writer has truncated.
	ErrRolledBack = errors.New("the writer has rolled back what was to be read: read again")

	// ErrReplaced is what a reader of another process's log says.
	ErrReplaced = errors.New("another directory, or another copy of the store, has taken the place of the one that is read: begin anew with an export of it")

	// ErrDirectoryGone comes with ErrFailed as well: what is written would be lost.
	ErrDirectoryGone = errors.New("the directory, or a file that is in use, has been removed or replaced")
)

// CorruptError reports stored bytes that differ from the written ones.
type CorruptError struct {
	File   string // base name
	Offset int64  // where in the file
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// IsDamage reports whether err is about the old bytes of a record: overwriting
// or deleting it is how a user gets rid of it.
func IsDamage(err error) bool {
	var c *CorruptError
	return errors.As(err, &c)
}

// retryable is a failure after which everything is as it was, and which may pass.
// A failed sync is never that.
type retryable struct{ error }

func (u retryable) Unwrap() error { return u.error }

// Is makes an ErrNoSpace of an error that means a full disk.
func (u retryable) Is(target error) bool { return target == ErrNoSpace && NoSpace(u.error) }

// NewRetryable says that a failure has changed nothing and may pass.
func NewRetryable(err error) error { return retryable{err} }

func IsRetryable(err error) bool {
	var u retryable
	return errors.As(err, &u)
}

// Retryable is err as a failure after which the same may be tried again, if it is transient.
func Retryable(err error) error {
	if err != nil && IsTransient(err) {
		return NewRetryable(err)
	}
	return err
}

// IsTransient reports whether what failed may work again later: the disk is full, or
// there are no more descriptors.
func IsTransient(err error) bool { return NoSpace(err) || NoDescriptors(err) }

// NoSpace reports whether something failed for lack of disk space, or because a
// quota or the longest that a file may be is reached. Of errors of the store
// that are about its own directory errors.Is(err, ErrNoSpace) says the same.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, ErrFileLimit) || diskFull(err) || errors.Is(err, ErrNoSpace)
}

// NoRoomError is why a delete is refused on a full disk, or a merge could do nothing: the segment with the least to copy
// needs more space than there is.
type NoRoomError struct {
	Live, Room int64 // bytes to be copied, at most, and bytes that there are for them
	Err        error
}

func (e *NoRoomError) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Figures()) }
func (e *NoRoomError) Unwrap() error { return e.Err }

// Figures says how much is missing, without the name of a file.
func (e *NoRoomError) Figures() string {
	return fmt.Sprintf("the segment with the least live data has %.1f MB of it, and a merge has room for %.1f MB", float64(e.Live)/1e6, float64(e.Room)/1e6)
}

// ErrFileLimit is the cause when a file would be longer than it may be.
var ErrFileLimit error = syscall.EFBIG

// NameNoSpace makes an error that is about disk space an ErrNoSpace.
func NameNoSpace(err error) error {
	if err == nil || !NoSpace(err) || errors.Is(err, ErrNoSpace) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoSpace, err)
}

// NoDescriptors reports whether the process or the system has no more of them. It also says that a directory was not
// even opened to be synced.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

var ErrCancelled = errors.New("cancelled")

// SegmentError reports that a merge could not read a segment, which is unchanged.
type SegmentError struct {
	File string // base name
	Err  error
}

func (e *SegmentError) Unwrap() error { return e.Err }

func (e *SegmentError) Error() string {
	return fmt.Sprintf("reading %s for a merge: %v", e.File, e.Err)
}
