// Package execute runs commands in a session of package server, with an error reply as an error: what tools need that
// feed commands to a store.
package execute

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// Limits are those of a file of commands, which is trusted with more than a client: an AOF has whatever a Redis took.
var Limits = resp.Limits{Args: 1 << 26, Bulk: 512 << 20, Command: 1 << 30, Inline: 64 << 10}

// Run runs one command and returns its error reply, if there is one. An EXEC that contains an error
// reply counts as one that failed. A command that takes long ends with ctx, whose error is returned then. No command
// waits, such as BLPOP: nobody fills the keys that it would wait for. CLIENT REPLY, which a client may have sent that
// reads nothing, is left out: it would hide the errors of all that follows.
func Run(ctx context.Context, session *server.Session, args [][]byte) error {
	if cmd, err := server.Resolve(args); err == nil && cmd.Name == "client|reply" {
		return nil
	}
	session.NeverWait()
	rest := session.DoContext(ctx, args)
	for len(rest) > 0 {
		var r resp.Reply
		var err error
		if r, rest, err = resp.Decode(rest); err != nil {
			return err
		}
		if err := errors.Join(r.Err(), NestedError(args, r)); err != nil {
			return cmp.Or(ctx.Err(), err) // that the context has ended is why, most likely
		}
	}
	if session.Closed() {
		return errors.New("the command ended the session")
	}
	return nil
}

// Library replaces a library of functions, as a client would: one that a server could not load is refused.
func Library(ctx context.Context, session *server.Session, text string) error {
	return Run(ctx, session, [][]byte{[]byte("FUNCTION"), []byte("LOAD"), []byte("REPLACE"), []byte(text)})
}

// NestedError finds the first error among the results of a transaction: EXEC
// succeeds even when a command within it does not.
func NestedError(args [][]byte, r resp.Reply) error {
	if !strings.EqualFold(string(args[0]), "exec") {
		return nil
	}
	for i, item := range r.Items {
		if item.IsError() {
			return fmt.Errorf("command %d of the transaction: %w", i+1, item.Err())
		}
	}
	return nil
}

// Shown is the beginning of a command, for messages.
func Shown(args [][]byte) string {
	text := string(bytes.Join(args[:min(len(args), 2)], []byte(" ")))
	return fmt.Sprintf("%q", text[:min(len(text), 60)])
}
