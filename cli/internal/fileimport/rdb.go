package fileimport

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/redisfile"
	"github.com/stavedb/stave/server"
)

// rdb imports an RDB file. What is left out is a warning; it is no mistake of the file. A checksum stands at the end of
// such a file, so what it finds wrong has been stored by then: nextStep says so. An AOF that begins with an RDB file
// goes on with commands.
func (s *Source) rdb(ctx context.Context, store *db.Store, o Options) (Result, error) {
	result := Result{Unit: "bad key"}
	session, err := server.NewSession(store, nil)
	if err != nil {
		return result, err
	}
	defer session.Close()
	options := redisfile.ImportOptions{
		Library:  func(text string) error { return execute.Library(session, text) },
		Warn:     func(text string) { o.warn(fmt.Errorf("%s: %s", s.Name, text)) },
		Progress: o.progress,
	}
	if o.KeepGoing {
		options.BadKey = func(e *redisfile.KeyError) error {
			var why error = e
			if bad, ok := errors.AsType[*redisfile.FileError](e.Err); ok { // it names byte and key itself
				why = bad
			}
			o.skip(&result, fmt.Errorf("%s: %w", s.Name, why))
			return nil
		}
	}
	r, rest, err := redisfile.ImportPreamble(ctx, store, s.in, options)
	for _, left := range r.Left() {
		o.warn(fmt.Errorf("%s: left out %s", s.Name, left))
	}
	result.Keys, result.Libraries, result.Expired, result.LeftOut, result.Bytes = r.Keys, r.Libraries, r.Expired, r.LeftOut, r.Bytes
	if ctx.Err() != nil {
		o.warn(fmt.Errorf("interrupted at byte %d of %s; %s stored before it, and importing the file again replaces them", r.Bytes, s.Name, humanize.Plural(r.Keys, "key")))
		return result, errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return result, fmt.Errorf("%s: %w; %s", s.Name, err, nextStep(err, r.Keys))
	}
	after := bufio.NewReader(rest)
	if head, _ := after.Peek(1); len(head) > 0 && (head[0] == '*' || head[0] == '#') { // an AOF that began with it
		commands, err := s.commands(ctx, store, after, r.Bytes, o)
		result.Add(commands)
		return result, err
	}
	return result, nil
}

// nextStep says what the error of an import leaves, and what can be done. keys is how many were stored. An error of the
// store, which is none of the file, has no advice.
func nextStep(err error, keys int64) string {
	stored := humanize.Plural(keys, "key") + " stored before it"
	_, refused := errors.AsType[*redisfile.KeyError](err)
	_, damaged := errors.AsType[*redisfile.FileError](err)
	switch {
	case errors.Is(err, redisfile.ErrChecksum):
		return fmt.Sprintf("%s stored, of which any may be wrong: import a good copy of the file, which replaces them", humanize.Plural(keys, "key"))
	case errors.Is(err, redisfile.ErrTruncated):
		return stored + ": import a copy of the file that is whole"
	case refused:
		return stored + "; --keep-going skips such keys"
	case damaged:
		return stored + "; --keep-going skips keys whose value cannot be decoded, and redis-check-rdb says more about the file"
	}
	return stored
}
