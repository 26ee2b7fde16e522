package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// replyError is an error that goes to the client as it stands, code first.
type replyError string

func (e replyError) Error() string { return string(e) }

// The refusals that are the server's own; those of the data types are in package structures.
const (
	errSyntax      replyError = "ERR syntax error"
	errNotInteger  replyError = "ERR value is not an integer or out of range"
	errNotFloat    replyError = "ERR value is not a valid float"
	errNotPositive replyError = "ERR value is out of range, must be positive"
	errNoKey       replyError = "ERR no such key"
	errDBIndex     replyError = "ERR DB index is out of range"
	errCursor      replyError = "ERR invalid cursor"
)

func errorf(format string, args ...any) replyError { return replyError(fmt.Sprintf(format, args...)) }

// isRefusal says whether err is an answer to the client rather than a failure of the store.
func isRefusal(err error) bool {
	var reply replyError
	var refusal structures.Error
	return errors.As(err, &reply) || errors.As(err, &refusal) || errors.Is(err, db.ErrNotFound)
}

func errArity(name string) replyError {
	return errorf("ERR wrong number of arguments for '%s' command", name)
}

// maxQuoted bounds what an error repeats of a request, in bytes.
const maxQuoted = 128

// clip is C's "%.*s": at most limit bytes, up to the first NUL.
func clip(b []byte, limit int) string {
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
func errBetween(least, most int64) replyError {
	return errorf("ERR value is out of range, value must between %d and %d", least, most)
}
