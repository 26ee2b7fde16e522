package fileimport

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// Commands as clients send them: the AOF of a Redis, or what redis-cli --pipe takes. A session runs them one at a time.
// An AOF may begin with an RDB file, have lines with times between its commands, and be in several parts that a
// manifest lists.

// commands runs the commands of rest, which begins at a byte of the file. Each is committed by itself, or with its
// MULTI, as in the Redis that wrote them; errors name the byte at which the command begins. What a parser cannot read
// ends the import also with KeepGoing, for nobody knows where the next command begins. A file that ends in the middle
// of something is what a crash leaves: a warning, and counted as one thing that was left out.
func (s *Source) commands(ctx context.Context, store *db.Store, rest io.Reader, base int64, o Options) (r Result, err error) {
	session, err := server.NewSession(store, nil)
	if err != nil {
		return r, err
	}
	defer session.Close()
	r.Unit = "bad command"
	parser, buf := resp.NewParser(execute.Limits), make([]byte, 256<<10)
	began := base // where the open transaction begins
	for {
		n, readErr := rest.Read(buf)
		parser.Feed(buf[:n])
		r.Bytes += int64(n)
		for {
			args, err := parser.Next()
			at := base + r.Bytes - int64(parser.Buffered())
			if err != nil {
				return r, fmt.Errorf("%s: byte %d: %w; %s run before it", s.Name, at, err, humanize.Plural(r.Commands, "command"))
			}
			if args == nil {
				break
			}
			if len(args) == 0 || len(args[0]) > 0 && args[0][0] == '#' { // a time
				continue
			}
			if !session.InTransaction() {
				began = at
			}
			if err := execute.Run(ctx, session, args); err != nil {
				if ctx.Err() != nil {
					return s.interrupted(ctx, o, r, at)
				}
				err = fmt.Errorf("%s: byte %d: %s: %w", s.Name, at, execute.Shown(args), err)
				if !o.KeepGoing {
					return r, fmt.Errorf("%w; %s run before it; --keep-going skips such commands", err, humanize.Plural(r.Commands, "command"))
				}
				o.skip(&r, err)
				continue
			}
			r.Commands++
		}
		o.progress(base+r.Bytes, r.Commands)
		switch {
		case ctx.Err() != nil:
			return s.interrupted(ctx, o, r, base+r.Bytes-int64(parser.Buffered()))
		case errors.Is(readErr, io.EOF):
			if session.InTransaction() {
				s.cut(o, &r, "between MULTI and EXEC", began)
			} else if parser.Partial() {
				s.cut(o, &r, "in the middle of a command", base+r.Bytes-int64(parser.Buffered()))
			}
			return r, nil
		case readErr != nil:
			return r, s.named(readErr)
		}
	}
}

// interrupted says where an interrupt has ended the import: the command that begins, or ends, at that byte has no effect,
// or all of it.
func (s *Source) interrupted(ctx context.Context, o Options, r Result, at int64) (Result, error) {
	o.warn(fmt.Errorf("interrupted at byte %d of %s; %s run before it", at, s.Name, humanize.Plural(r.Commands, "command")))
	return r, ctx.Err()
}

// cut says that the end is missing, which is what a crash leaves of an AOF. A Redis starts with such a file too.
func (s *Source) cut(o Options, r *Result, where string, at int64) {
	o.warn(fmt.Errorf("%s: the file ends %s, as after a crash; what is there from byte %d on was not run", s.Name, where, at))
	r.Skipped++
}
