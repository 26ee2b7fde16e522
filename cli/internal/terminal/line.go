package terminal

import (
	"bytes"
	"errors"

	"github.com/stavedb/stave/internal/resp"
)

// The rules by which a line becomes arguments. They are redis-cli's, down to the
// quotes, so that a script for one is a script for the other.

// SplitLine splits a typed line into arguments by redis-cli's quoting rules.
// A raw NUL would end the line there and lose the rest without a word, so it
// is refused; "\x00" within double quotes is how to write one.
func SplitLine(line []byte) ([][]byte, error) {
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, errors.New(`a NUL byte in the line: write it as "\x00"`)
	}
	args, err := resp.SplitLine(line)
	if err != nil {
		return nil, errors.New("unbalanced quotes")
	}
	return args, nil
}

// OpenQuote reports whether line ends inside a quoted word, so that another
// line could complete it. A quote closed in the middle of a word cannot be
// repaired by more text and is no open quote.
func OpenQuote(line []byte) bool {
	if _, err := resp.SplitLine(line); err == nil {
		return false
	}
	// After a trailing backslash the quote alone would be escaped.
	for _, ending := range []string{`"`, `'`, ` "`, ` '`} {
		if _, err := resp.SplitLine(append(bytes.Clone(line), ending...)); err == nil {
			return true
		}
	}
	return false
}

// IsRepeat reports whether a word is the count that may precede a command.
func IsRepeat(word string) bool {
	n, ok := resp.ParseInt([]byte(word))
	return ok && n > 0
}

// SplitPipe splits a typed line at the first word that is an unquoted bar alone: what comes before it is a command of
// the store, what comes after it one of the system's shell, "" if there is no bar.
func SplitPipe(line []byte) (command, shell []byte) {
	for i := range line {
		if line[i] != '|' || i > 0 && line[i-1] != ' ' && line[i-1] != '\t' || i+1 < len(line) && line[i+1] != ' ' && line[i+1] != '\t' {
			continue
		}
		if _, err := resp.SplitLine(line[:i]); err == nil { // not within quotes
			return line[:i], bytes.TrimSpace(line[i+1:])
		}
	}
	return line, nil
}
