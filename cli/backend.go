package cli

import (
	"context"

	"github.com/stavedb/stave/internal/resp"
)

// shell and exec do not depend on what they talk to. A backend is a store opened by this process
// (backend_embedded.go) or a connection to a server (package remote), and both answer with the
// same replies: commands reach an embedded store through a session of package server, so that a
// command means and prints the same with a server and without.

// A backend runs commands: on a store opened by this process, or on a server.
type backend interface {
	// Do runs one command and passes on its replies: one for nearly all commands, one a channel for
	// those that subscribe, and none before the context ends for those that only listen. An error
	// means that the outcome is unknown; error replies are replies.
	//
	// args has a name at least, and is not kept. reply is called on the caller's goroutine, before Do returns. One
	// command is run at a time.
	Do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error
	// Close gives up the store or the connection. An error means that what was written may not be on disk.
	Close() error
}
