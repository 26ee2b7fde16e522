package cli

import (
	"context"
	"errors"

	"github.com/stavedb/stave/internal/resp"
)

// shell and exec do not depend on what they talk to. A backend is a store opened by this process
// (backend_embedded.go) or a connection to a server (backend_remote.go), and both answer with the
// same replies: commands reach an embedded store through a session of package server, so that a
// command means and prints the same with a server and without.

// A backend runs commands: on a store opened by this process, or on a server.
type backend interface {
	// do runs one command and passes on its replies: one for nearly all commands, one a channel for
	// those that subscribe, and none before the context ends for those that only listen. An error
	// means that the outcome is unknown; error replies are replies.
	do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error
	close() error
}

// A lostError is an error of the connection, not of a command.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// isLost reports whether an error is one of the connection: then it is unknown whether the command
// ran, and the exit status is that of a server not reached.
func isLost(err error) bool {
	_, ok := errors.AsType[*lostError](err)
	return ok
}
