package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLineBytes bounds one line of a script or of an import: 1 GiB, which is
// above the largest value a store takes.
const maxLineBytes = 1 << 30

// A lineReader reads lines and knows where it is, for messages and progress.
type lineReader struct {
	r      *bufio.Reader
	buf    []byte
	number int   // of the line returned last, from 1
	bytes  int64 // consumed so far
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 256<<10)}
}

// next returns the next line without its line break, valid until the next
// call. io.EOF follows the last line, whether or not that ended in a break.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		l.bytes += int64(len(part))
		if len(l.buf) > maxLineBytes {
			return nil, fmt.Errorf("line %d is longer than %s", l.number+1, sizeText(maxLineBytes))
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(l.buf) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		l.number++
		line := l.buf
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		return line, nil
	}
}

// waiting reports whether the next line has yet to arrive: the moment to show
// what has been printed so far.
func (l *lineReader) waiting() bool { return l.r.Buffered() == 0 }

// runScript runs the commands that stand on stdin, one a line. It stops at the
// first error unless keepGoing is set; either way an error means status 1.
func (s *session) runScript(ctx context.Context, in io.Reader, keepGoing bool) error {
	reading, done := context.WithCancel(ctx)
	defer done()
	lines := newLineReader(newInterruptibleReader(reading, in))
	out := bufio.NewWriterSize(s.out, 64<<10)
	defer out.Flush()
	failures := 0
	for ctx.Err() == nil && !s.closed {
		line, err := lines.next()
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			break
		}
		if err != nil {
			return failed(exitCommand, fmt.Errorf("stdin: %w", err))
		}
		if skipped(line) {
			continue
		}
		err = s.runLine(ctx, out, line)
		if lines.waiting() || err != nil {
			if err := out.Flush(); err != nil {
				return failed(exitCommand, err)
			}
		}
		if err == nil {
			continue
		}
		err = fmt.Errorf("stdin:%d: %w", lines.number, err)
		if !keepGoing || isLost(err) {
			return failed(statusOf(err), err)
		}
		s.complain(err)
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
// an error and is not printed: it belongs on the other stream.
func (s *session) runLine(ctx context.Context, out io.Writer, line []byte) error {
	args, err := splitLine(line)
	if err != nil || len(args) == 0 {
		return err
	}
	return s.runCommand(ctx, out, args)
}
