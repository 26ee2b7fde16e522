package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// Mass insertion: commands from the standard input, as clients send them or one a line, and of their replies only the
// errors. Unlike redis-cli's this one says which command failed, at which byte, and why, and works on a store in a
// directory too. Commands go out by batches: what one read of the input has brought.

// A pipeRun is a --pipe under way. replies counts commands that were answered, with an error or not; errors also counts
// what was no command.
type pipeRun struct {
	*session
	keepGoing bool
	batch     [][][]byte
	at        []int64 // the byte at which each command of the batch begins
	replies   int64
	errors    int64
	stop      error // the error that ends it
}

// runPipe runs commands until the end of the input. The first error ends it, with status 1, unless keepGoing is set; a
// server has been sent a few more by then, and runs them. A command that has no known end ends it at once. The last
// line says how many replies and errors there were, as redis-cli's does.
func (s *session) runPipe(ctx context.Context, in io.Reader, keepGoing bool) error {
	reading, done := context.WithCancel(ctx)
	defer done()
	input := terminal.NewReader(reading, in)
	p := &pipeRun{session: s, keepGoing: keepGoing}
	parser, buf, read := resp.NewParser(execute.Limits), make([]byte, terminal.ChunkSize), int64(0)
	var err error
	for ended := false; !ended && !s.closed && p.stop == nil && err == nil; {
		n, readErr := input.Read(buf)
		read += int64(n)
		parser.Feed(buf[:n])
		if ended = readErr != nil; ended && parser.Partial() {
			parser.Feed([]byte("\n")) // which the last line may lack
			read++
		}
		err = p.take(ctx, parser, read)
		switch {
		case err != nil || p.stop != nil:
		case ended && !errors.Is(readErr, io.EOF):
			err = fmt.Errorf("stdin: %w", readErr)
		case ended && parser.Partial():
			p.fail(read-int64(parser.Buffered()), errors.New("the input ends in the middle of a command"))
		}
	}
	if ctx.Err() != nil {
		s.Complain(fmt.Errorf("interrupted; %s run", humanize.Plural(p.replies, "command")))
		return ctx.Err()
	}
	// Nothing of a MULTI without EXEC has happened, and its commands were answered QUEUED: that must not look like
	// success.
	if err == nil && p.stop == nil && s.inMulti {
		p.fail(read, errors.New("the input ends within MULTI, so the commands since then did not run"))
	}
	if err == nil {
		_, err = fmt.Fprintf(s.Out, "errors: %d, replies: %d\n", p.errors, p.replies)
	}
	if err == nil && p.errors > 0 {
		return &exitError{status: exitCommand}
	}
	return err
}

// take runs the commands that have arrived. Lines that begin with # are none. read is how many bytes the parser has
// been given so far: with what it has not parsed yet, that tells where a command begins. A command that is refused
// here, as a SUBSCRIBE, does not stop those of its batch that came before it. The arguments of a batch point into the
// parser's buffer, which is not fed before the batch has run.
func (p *pipeRun) take(ctx context.Context, parser *resp.Parser, read int64) error {
	for p.stop == nil && !p.closed {
		p.batch, p.at = p.batch[:0], p.at[:0]
		at, bad := int64(0), error(nil)
		for bad == nil {
			var args [][]byte
			args, bad = parser.Next()
			at = read - int64(parser.Buffered())
			if args == nil || bad != nil {
				break
			}
			if len(args) == 0 || len(args[0]) > 0 && args[0][0] == '#' {
				continue
			}
			if bad = isNoReply(args); bad == nil {
				p.batch, p.at = append(p.batch, slices.Clone(args)), append(p.at, at)
			}
		}
		// What came before a bad command runs first, so that errors are reported in the order of the input.
		if err := p.run(ctx); err != nil {
			return err
		}
		if bad == nil || p.stop != nil || p.closed {
			return nil
		}
		p.fail(at, bad)
		if _, endless := errors.AsType[resp.RequestError](bad); endless { // nobody knows where the next command begins
			p.stop = bad
		}
	}
	return nil
}

// run runs the batch, and notes its errors. If the connection is lost the first command without a reply is named:
// whether it and those after it were executed is not known.
func (p *pipeRun) run(ctx context.Context) error {
	answered := 0
	err := p.many(ctx, p.batch, func(i int, r resp.Reply) bool {
		answered = i + 1
		p.track(p.batch[i], r)
		p.replies++
		if err := errors.Join(r.Err(), execute.NestedError(p.batch[i], r)); err != nil {
			p.fail(p.at[i], fmt.Errorf("%s: %w", execute.Shown(p.batch[i]), err))
		}
		return p.stop == nil && !p.closed
	})
	if err != nil && answered < len(p.batch) && ctx.Err() == nil {
		err = fmt.Errorf("byte %d: %s: no reply: %w; %s run before it", p.at[answered], execute.Shown(p.batch[answered]), err, humanize.Plural(p.replies, "command"))
	}
	return err
}

// maxComplaints is how many errors are named one by one, with --keep-going.
const maxComplaints = 100

// fail reports an error, which is the last one without keepGoing. at is the byte of the input at which the command
// begins, or where the input has ended. Errors beyond maxComplaints are counted only: a file of a million bad lines
// would bury the first of them, which is what helps.
func (p *pipeRun) fail(at int64, err error) {
	p.errors++
	if !p.keepGoing {
		p.stop = errors.Join(p.stop, err)
	}
	switch {
	case p.errors <= maxComplaints:
		p.Complain(fmt.Errorf("byte %d: %w", at, err))
	case p.errors == maxComplaints+1:
		p.Complain(errors.New("more errors follow; they are counted, not named"))
	}
}
