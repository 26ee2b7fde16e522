package server

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// The refusals that concern the session. Those of commands on keys are in package command.
const (
	errNestedMulti     replyError = "ERR MULTI calls can not be nested"
	errExecNoMulti     replyError = "ERR EXEC without MULTI"
	errDiscardNoMulti  replyError = "ERR DISCARD without MULTI"
	errInMulti         replyError = "ERR Command not allowed inside a transaction"
	errExecAbort       replyError = "EXECABORT Transaction discarded because of previous errors."
	errNoProto         replyError = "NOPROTO unsupported protocol version"
	errReplyTooLarge   replyError = "ERR the reply is too large; ask for it in parts"
	errQueueTooLarge   replyError = "ERR the transaction is too large"
	errInvalidName     replyError = "ERR Client names cannot contain spaces, newlines or special characters."
	errProtoNotInteger replyError = "ERR Protocol version is not an integer or out of range"
)

// errorText is what a client is told about an error. Refusals carry their own text; anything else is a failure of the
// store, which the client must see as one.
func errorText(err error) string {
	var reply replyError
	var refusal structures.Error
	switch {
	case errors.As(err, &reply):
		return string(reply)
	case errors.As(err, &refusal):
		return string(refusal)
	case errors.Is(err, db.ErrNotFound):
		return string(errNoKey)
	case errors.Is(err, db.ErrNoSpace):
		return noSpaceText(err)
	case errors.Is(err, db.ErrFailed):
		return "MISCONF Stave refuses writes since a write or a sync has failed. Its log says which. Reads go on; writes do when it is started again."
	default:
		return "ERR " + err.Error()
	}
}

// noSpaceText says what a write lacks, in words of Redis's for a disk that cannot be written. It names no file.
func noSpaceText(err error) string {
	lack := "the disk is full"
	switch {
	case errors.Is(err, syscall.EDQUOT):
		lack = "the disk quota is used up"
	case errors.Is(err, syscall.EFBIG):
		lack = "a file has reached the size limit of the process or the file system"
	}
	return "MISCONF Stave cannot write: " + lack + ". Delete keys, MERGE, or free space; writes go on by themselves."
}

func errUnknownCommand(args [][]byte) replyError {
	var quoted strings.Builder
	for _, arg := range args[1:] {
		if quoted.Len() >= maxQuoted {
			break
		}
		fmt.Fprintf(&quoted, "'%s' ", clip(arg, maxQuoted-quoted.Len()))
	}
	return errorf("ERR unknown command '%s', with args beginning with: %s", clip(args[0], maxQuoted), quoted.String())
}

func errUnknownSubcommand(container string, name []byte) replyError {
	return errorf("ERR unknown subcommand '%s'. Try %s HELP.", clip(name, maxQuoted), strings.ToUpper(container))
}
