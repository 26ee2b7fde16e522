package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/lines"
)

// A script is what comes on the standard input when that is no terminal. It ends
// at the first error, as a shell with "set -e" does: what follows was written
// for a store in which the line before had succeeded.

// runScript runs the commands that stand on stdin, one a line. It stops at the first error unless keepGoing is set;
// either way an error means status 1. A broken connection, or a store that cannot be made, ends the script also with
// keepGoing: nothing would answer the rest.
//
// Replies are flushed before it waits for a line, so a program that sends one line and reads one
// reply through pipes is never stuck, and a file of a million lines is not a million writes. They
// are flushed before an error is printed too, so that both streams on a terminal are in order.
func (s *session) runScript(ctx context.Context, in io.Reader, keepGoing bool) (err error) {
	reading, done := context.WithCancel(ctx)
	defer done()
	input := lines.NewReader(terminal.NewReader(reading, in))
	out := bufio.NewWriterSize(s.Out, 64<<10)
	defer func() {
		if flushErr := out.Flush(); flushErr != nil {
			err = errors.Join(err, failed(exitCommand, flushErr))
		}
	}()
	failures := 0
	for ctx.Err() == nil && !s.closed {
		if input.Waiting() && out.Flush() != nil {
			return nil // a writer that has failed says so again: the deferred call returns it
		}
		line, err := input.Next()
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			break
		}
		if err != nil {
			return failed(exitCommand, fmt.Errorf("stdin: %w", err))
		}
		if lines.Skip(line) {
			continue
		}
		if err = s.runLine(ctx, out, line); err == nil {
			continue
		}
		if ctx.Err() != nil {
			break // the error is most often what came of the interrupt
		}
		if out.Flush() != nil {
			return nil
		}
		err = fmt.Errorf("stdin:%d: %w", input.Number(), err)
		if status := statusOf(err); !keepGoing || status == exitOpen {
			return failed(status, err)
		}
		s.Complain(err)
		failures++
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.inMulti {
		return failed(exitCommand, errors.New("stdin: ends within MULTI, so the commands since then did not run"))
	}
	if failures > 0 {
		return &exitError{status: exitCommand}
	}
	return nil
}

// runLine runs one line and prints its replies. An error reply comes back as
// an error and is not printed: it belongs on the other stream. A line is split
// as redis-cli splits it, quotes and escapes included; a count before the
// command is the interactive shell's alone.
func (s *session) runLine(ctx context.Context, out io.Writer, line []byte) error {
	args, err := terminal.SplitLine(line)
	if err != nil || len(args) == 0 {
		return err
	}
	return s.runCommand(ctx, out, args)
}
