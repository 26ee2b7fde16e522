package shared

import (
	"errors"
	"syscall"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/replication"
)

// An error text is an interface: clients match its first word, and some the whole of it. So texts
// are constants, those of Redis are kept to the letter, oddities of grammar included, and a test
// compares them with a real server. A store that cannot write says so with the code MISCONF, as
// Redis does when it cannot save.

// Refusals of a replica, in Redis's words.
const (
	ErrReplica    command.Error = "READONLY You can't write against a read only replica."
	ErrMasterDown command.Error = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
)

// DeniedError is a request that the session's user may not make.
type DeniedError struct{ acl.Denial }

// ErrorText is the text of an error in a reply. Refusals carry their own text; anything else is a
// failure of the store, which the client must see as one. What the system says of a file goes to the log, with
// the path; the reply has neither the path nor the file.
func (v *State) ErrorText(err error) string {
	var reply command.Error
	var denied *DeniedError
	switch {
	case errors.As(err, &denied):
		return "NOPERM " + denied.Error()
	case errors.As(err, &reply):
		return string(reply)
	case errors.Is(err, db.ErrNotFound):
		return string(command.ErrNoKey)
	case errors.Is(err, db.ErrNoSpace):
		return noSpaceText(err)
	case errors.Is(err, db.ErrBound):
		return string(ErrOutOfDisk)
	case errors.Is(err, replication.ErrNoMasterLink):
		return replication.ErrNoMasterLink.Error()
	case errors.Is(err, gate.ErrUnknown):
		return string(ErrUnknownOutcome)
	case errors.Is(err, db.ErrReplica):
		return string(ErrReplica)
	case errors.Is(err, db.ErrReadOnly):
		return "READONLY You can't write against a read only replica: this store is open for reading only."
	case errors.Is(err, db.ErrFailed):
		return "MISCONF Stave refuses writes since a write or a sync has failed. Its log says which. Reads work; writes need a restart."
	case errors.Is(err, db.ErrRolledBack):
		return "TRYAGAIN The store that is followed has rolled back what was to be read, after a write that failed. Repeat the command."
	case redact.IsSystem(err):
		v.logSystemError(err)
		return systemText(err)
	default:
		return "ERR " + redact.Error(err, v.Options.Dir)
	}
}

// systemText says what the system has refused: its own words, and what helps.
func systemText(err error) string {
	why, next := "a file could not be used", "Its log says which."
	var number syscall.Errno
	if errors.As(err, &number) {
		why = number.Error()
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		next = "Raise the limit of open files (ulimit -n); commands work again by themselves as soon as there is one."
	}
	return "MISCONF Stave cannot use its files: " + why + ". " + next
}

// systemErrorPause is the time between two lines of the log about errors that clients have got: they may send as many
// commands that fail as they like.
const systemErrorPause = time.Second

// logSystemError logs an error of the system, unless another one was logged a moment ago.
func (v *State) logSystemError(err error) {
	now := time.Since(v.Started).Nanoseconds()
	last := v.systemErrorAt.Load()
	if (last == 0 || now-last >= int64(systemErrorPause)) && v.systemErrorAt.CompareAndSwap(last, max(now, 1)) {
		v.Options.Logger.Error("a command failed, for a file of the store could not be used", "error", err)
	}
}

// noSpaceText says what a write lacks, in words of Redis's for a disk that cannot be written. It
// names no file. Where deletes find no space either it has the figures of that. A quota and a limit of file sizes are
// told apart from a full disk, because different people can help.
func noSpaceText(err error) string {
	lack := "the disk is full"
	switch {
	case errors.Is(err, syscall.EDQUOT):
		lack = "the disk quota is used up"
	case errors.Is(err, syscall.EFBIG):
		lack = "a file has reached the size limit of the process or the file system"
	}
	var room *db.NoRoomError
	if errors.As(err, &room) {
		return "MISCONF Stave cannot write: " + lack + ", also for deletes and merges: " + room.Figures() + ". Free space, or FLUSHDB; writes resume by themselves."
	}
	return "MISCONF Stave cannot write: " + lack + ". Delete keys, MERGE, or free space; writes resume by themselves."
}
