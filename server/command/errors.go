package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// An error of a handler is one of two things. A refusal (Error, db.ErrNotFound) is an
// answer to the client: the command has failed and others continue. Anything else is a failure
// of the store: it ends the transaction, and what follows in it is not executed.

// Error is an error that goes to the client as it stands, code first.
type Error = structures.Error

// The refusals that are the server's own; those of the data types are in package structures.
const (
	ErrSyntax            = structures.ErrSyntax
	ErrNotInteger        = structures.ErrNotInteger
	errNotFloat          = structures.ErrNotFloat
	errNotPositive       = structures.ErrNegative
	ErrNoKey             = structures.ErrNoKey
	ErrDBIndex     Error = "ERR DB index is out of range"
	errCursor      Error = "ERR invalid cursor"
	ErrInMulti     Error = "ERR Command not allowed inside a transaction"
)

// Errorf formats an Error. The text starts with the code, which is ERR unless Redis has another.
func Errorf(format string, args ...any) Error { return Error(fmt.Sprintf(format, args...)) }

// IsRefusal says whether err is an answer to the client rather than a failure of the store.
func IsRefusal(err error) bool {
	var refusal Error
	return errors.As(err, &refusal) || errors.Is(err, db.ErrNotFound)
}

// ArityError refuses a number of arguments. name is in lower case, with a bar before a subcommand,
// as Redis writes it.
func ArityError(name string) Error {
	return Errorf("ERR wrong number of arguments for '%s' command", name)
}

// maxQuoted bounds what an error repeats of a request, in bytes.
const maxQuoted = 128

// Quoted is what an error repeats of an argument.
func Quoted(b []byte) string { return Clip(b, maxQuoted) }

// Clip is C's "%.*s": at most limit bytes, up to the first NUL.
func Clip(b []byte, limit int) string {
	if len(b) > limit {
		b = b[:limit]
	}
	s := string(b)
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}

// errBetween says what an integer has to be. The grammar is Redis's.
func errBetween(least, most int64) Error {
	return Errorf("ERR value is out of range, value must between %d and %d", least, most)
}

// errUnknownCommand repeats the beginning of the request, as Redis does, so that a client that sent
// it to the wrong port can tell.
func errUnknownCommand(args [][]byte) Error {
	var quoted strings.Builder
	for _, arg := range args[1:] {
		if quoted.Len() >= maxQuoted {
			break
		}
		fmt.Fprintf(&quoted, "'%s' ", Clip(arg, maxQuoted-quoted.Len()))
	}
	return Errorf("ERR unknown command '%s', with args beginning with: %s", Quoted(args[0]), quoted.String())
}

// errUnknownSubcommand refuses a subcommand and says where there is help.
func errUnknownSubcommand(container string, name []byte) Error {
	return Errorf("ERR unknown subcommand '%s'. Try %s HELP.", Quoted(name), strings.ToUpper(container))
}

// ErrUnknownOrArity is what Redis says of a subcommand with too many arguments for it.
func ErrUnknownOrArity(c *Call) Error {
	return Errorf("ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.", Quoted(c.Arg(1)), strings.ToUpper(c.Command.Container.Name))
}
