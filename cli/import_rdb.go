package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/redisfile"
	"github.com/stavedb/stave/server"
)

// importRDB imports an RDB file. What is left out is said on the standard error; it is no mistake of the file.
func importRDB(ctx context.Context, t *terminal.Streams, store *db.Store, in *source, keepGoing bool) (importResult, error) {
	complain := func(err error) {
		in.bar.Clear()
		t.Complain(err)
	}
	skipped := int64(0)
	session, err := server.NewSession(store, nil)
	if err != nil {
		return importResult{}, failed(exitCommand, err)
	}
	defer session.Close()
	o := redisfile.ImportOptions{
		Library:  func(text string) error { return loadLibrary(session, text) },
		Warn:     func(text string) { complain(fmt.Errorf("%s: %s", in.name, text)) },
		Progress: func(bytes, keys int64) { in.bar.Update(bytes, bytes, keys) },
	}
	if keepGoing {
		o.BadKey = func(e *redisfile.KeyError) error {
			switch skipped++; {
			case skipped <= maxComplaints:
				complain(fmt.Errorf("%s: %w", in.name, e))
			case skipped == maxComplaints+1:
				complain(errors.New("more bad keys follow; they are counted, not named"))
			}
			return nil
		}
	}
	r, rest, err := redisfile.ImportPreamble(ctx, store, in.in, o)
	for _, left := range r.Left() {
		complain(fmt.Errorf("%s: left out %s", in.name, left))
	}
	result := importResult{Keys: r.Keys, Libraries: r.Libraries, Expired: r.Expired, Skipped: r.Skipped, LeftOut: r.LeftOut, Bytes: r.Bytes, unit: "bad key"}
	if ctx.Err() != nil {
		complain(fmt.Errorf("interrupted at byte %d of %s; %s stored before it, and importing the file again replaces them", r.Bytes, in.name, humanize.Plural(r.Keys, "key")))
		return result, errors.Join(ctx.Err(), notCanceled(err))
	}
	if err != nil {
		return result, failed(exitCommand, fmt.Errorf("%s: %w; %s", in.name, err, nextStep(err, r.Keys)))
	}
	after := bufio.NewReader(rest)
	if head, _ := after.Peek(1); len(head) > 0 && (head[0] == '*' || head[0] == '#') { // an AOF that began with it
		commands, err := importCommands(ctx, t, store, in, after, r.Bytes, keepGoing)
		result.add(commands)
		return result, err
	}
	return result, nil
}

// nextStep says what the error of an import leaves, and what can be done.
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
		return stored + "; redis-check-rdb says more about the file"
	}
	return stored
}
