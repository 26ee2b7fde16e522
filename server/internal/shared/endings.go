package shared

import (
	"errors"

	"github.com/stavedb/stave/server/command"
)

// The errors by which a command ends without its reply. No client sees one: the session acts on it.

// ErrPanicked rolls a transaction back whose command panicked. It reaches no client.
var ErrPanicked = errors.New("server: command panicked")

// ErrWouldWait ends a command of a session that must not wait for a lock that somebody holds. The
// session leaves the event loop and executes it again.
var ErrWouldWait = errors.New("server: command would wait for a lock")

// ErrLong ends a command of a session in an event loop that turns out to take long. It has changed
// nothing. The session leaves the event loop and executes it again.
var ErrLong = errors.New("server: command takes long")

// ErrOnDisk is ErrLong for one that has to read from the disk, and takes little time otherwise.
var ErrOnDisk = errors.New("server: command waits for the disk")

// ErrRestart ends a run whose locks are too few. It has changed nothing, and begins again.
var ErrRestart = errors.New("server: the script needs more locks")

// ErrBlocked ends a handler whose command waits. It has not replied; what it has changed is committed.
var ErrBlocked = errors.New("the command waits")

// ErrNoRoom ends a command whose reply the budget has no room for. It has changed nothing, and is executed again.
var ErrNoRoom = errors.New("server: no memory for the reply")

// ErrNoReply ends a command that must not be answered.
var ErrNoReply = errors.New("no reply")

// ErrRepliesTooLarge is the reply when that cannot be, or has been in vain for too long.
const ErrRepliesTooLarge command.Error = "ERR no memory for the reply: replies that other clients have not read take it; try again later, or ask for it in parts"

// ErrReplyTooLarge is the reply instead of one that is longer than any may be.
const ErrReplyTooLarge command.Error = "ERR the reply is too large; ask for it in parts"
