package server

import (
	"errors"
	"syscall"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// An error text is an interface: clients match its first word, and some the whole of it. So texts
// are constants, those of Redis are kept to the letter, oddities of grammar included, and a test
// compares them with a real server. A store that cannot write says so with the code MISCONF, as
// Redis does when it cannot save.

// The refusals that concern the session. The texts are Redis's where Redis has the case: clients
// compare them. Those of commands on keys are in package command.
const (
	errNestedMulti      command.Error = "ERR MULTI calls can not be nested"
	errExecNoMulti      command.Error = "ERR EXEC without MULTI"
	errDiscardNoMulti   command.Error = "ERR DISCARD without MULTI"
	errExecAbort        command.Error = "EXECABORT Transaction discarded because of previous errors."
	errNoProto          command.Error = "NOPROTO unsupported protocol version"
	errReplyTooLarge    command.Error = "ERR the reply is too large; ask for it in parts"
	errMessagesTooLarge command.Error = "ERR the messages of the transaction are too large; publish some of them outside of it"
	errQueueTooLarge    command.Error = "ERR the transaction is too large"
	errInvalidName      command.Error = "ERR Client names cannot contain spaces, newlines or special characters."
	errProtoNotInteger  command.Error = "ERR Protocol version is not an integer or out of range"
)

// errorText is the text of an error in a reply. Refusals carry their own text; anything else is a
// failure of the store, which the client must see as one. Only the last case shows an internal
// text; it may name a file of the store, which a client on this machine may know.
func errorText(err error) string {
	var reply command.Error
	var denied *deniedError
	switch {
	case errors.As(err, &denied):
		return "NOPERM " + denied.Error()
	case errors.As(err, &reply):
		return string(reply)
	case errors.Is(err, db.ErrNotFound):
		return string(command.ErrNoKey)
	case errors.Is(err, db.ErrNoSpace):
		return noSpaceText(err)
	case errors.Is(err, db.ErrReadOnly):
		return "READONLY You can't write against a read only replica: this store is open for reading only."
	case errors.Is(err, db.ErrFailed):
		return "MISCONF Stave refuses writes since a write or a sync has failed. Its log says which. Reads work; writes need a restart."
	case errors.Is(err, db.ErrRolledBack):
		return "TRYAGAIN The store that is followed has rolled back what was to be read, after a write that failed. Repeat the command."
	default:
		return "ERR " + err.Error()
	}
}

// noSpaceText says what a write lacks, in words of Redis's for a disk that cannot be written. It
// names no file. Where deletes find no space either it has the figures of that. A quota and a limit of file sizes are told apart from a full disk, because
// different people can help.
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
