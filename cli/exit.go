package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Errors carry the exit status on their way up, so that it is decided where it
// is known what went wrong, and Run only reads it.

// The exit statuses, as the package's comment has them. Scripts depend on them: a status keeps its meaning, and what a
// new case is most like is the one to use. 130 is what a shell says of a program that SIGINT has ended.
const (
	exitOK          = 0
	exitCommand     = 1
	exitUsage       = 2
	exitOpen        = 3
	exitDamage      = 4
	exitPartial     = 5
	exitInterrupted = 130
)

// An exitError ends the program with a status of its own. A nil err means that
// everything there is to say has been said. It wraps the error that it is about,
// so errors.Is and isDamage look through it.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed gives err an exit status; nil stays nil. Of two statuses in one error the outer one counts: the function that
// knows more of what was to be done decides last.
func failed(status int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{status: status, err: err}
}

// usagef is an error in how the program was called. It is for what a person can put right without looking at a store,
// and nothing has been opened or changed when it is returned.
func usagef(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

// notCanceled is what is joined in err and does not come of an interrupt: nil if nothing else went wrong. An error that
// wraps a cancellation is one, whatever text it has put around it.
func notCanceled(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	// Here something in err is a cancellation: either one of a list, or what a chain leads to.
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return notCanceled(errors.Unwrap(err))
	}
	var rest error
	for _, e := range list.Unwrap() {
		rest = errors.Join(rest, notCanceled(e))
	}
	return rest
}

// report prints the result of a command, as JSON or as a sentence. Quiet silences the sentence and not JSON, which a
// program has asked for. An output that cannot be written is a failure of the command, though its work is done.
func report(w io.Writer, asJSON, quiet bool, result any, sentence string) (err error) {
	switch {
	case asJSON:
		err = json.NewEncoder(w).Encode(result)
	case !quiet:
		_, err = fmt.Fprintln(w, sentence)
	}
	return failed(exitCommand, err)
}
