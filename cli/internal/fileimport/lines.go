package fileimport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/lines"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// An import takes two languages from one file: lines of JSON, which package
// jsonl stores in batches, and commands, which a session runs one at a time.
// They keep their order: before a command runs, the batch is stored, since the
// command may read what a line before it wrote.

// A lineImporter feeds the lines of one file to a store, in order: keys to a
// [jsonl.Importer], commands to a session.
type lineImporter struct {
	keys      *jsonl.Importer
	session   *server.Session
	name      string // of the file, for messages
	o         Options
	lines     *lines.Reader
	commands  int64  // run
	writes    bool   // one of them is a command that writes
	skipped   Result // bad lines
	multiLine int    // of the open MULTI
}

// lines imports a file of lines.
func (s *Source) lines(ctx context.Context, store *db.Store, o Options) (Result, error) {
	im := &lineImporter{name: s.Name, o: o, lines: lines.NewReader(s.in), skipped: Result{Unit: "bad line"}}
	session, err := server.NewSession(store, nil)
	if err != nil {
		return im.skipped, err
	}
	defer session.Close()
	im.session = session
	im.keys = jsonl.NewImporter(store, jsonl.ImportOptions{BadLine: im.bad, Library: func(name, text string) error { return im.library(ctx, name, text) }})
	before := store.Stats().Sequence
	if err = im.run(ctx); err == nil && im.commands > 0 && !im.writes && store.Stats().Sequence == before {
		err = fmt.Errorf("%s: nothing in it is stored: a line is a key in JSON, as stave export writes it, or a command such as SET name value (see stave help import)", s.Name)
	}
	return im.result(), err
}

// result adds up what both halves did. It may be asked at any time.
func (im *lineImporter) result() Result {
	r, keys := im.skipped, im.keys.Result()
	r.Keys, r.Libraries, r.Expired, r.Commands, r.Bytes = keys.Keys, keys.Libraries, keys.Expired, im.commands, im.lines.Bytes()
	return r
}

// run imports all lines. Before it returns, for whatever reason, every good line that came before
// is committed. An interrupt is noticed at the next line; what has been read by then is stored
// first, so that the message names a line that is true.
func (im *lineImporter) run(ctx context.Context) error {
	if im.o.Namespace != 0 {
		if err := im.do(ctx, [][]byte{[]byte("SELECT"), fmt.Append(nil, im.o.Namespace)}); err != nil {
			return &OptionError{"db", err}
		}
	}
	for {
		imported := im.lines.Number()
		line, err := im.lines.Next()
		if ctx.Err() != nil { // the line that was read is not imported any more
			return im.interrupted(ctx, imported)
		}
		if err != nil {
			flushErr := im.flush()
			if !errors.Is(err, io.EOF) {
				return errors.Join(fmt.Errorf("%s: %w", im.name, err), flushErr)
			}
			return errors.Join(flushErr, im.unfinished())
		}
		if lines.Skip(line) {
			continue
		}
		if err := im.add(ctx, bytes.TrimLeft(line, " \t")); err != nil {
			if ctx.Err() != nil { // a command that was given up
				return im.interrupted(ctx, imported)
			}
			return err
		}
		im.o.progress(im.lines.Bytes(), im.keys.Result().Keys)
	}
}

// interrupted stores what has been read, up to a line, and says so.
func (im *lineImporter) interrupted(ctx context.Context, imported int) error {
	if err := im.flush(); err != nil {
		return err
	}
	im.o.warn(fmt.Errorf("interrupted after %s:%d; the lines up to there are stored", im.name, imported))
	return ctx.Err()
}

// unfinished complains about a MULTI without EXEC at the end.
func (im *lineImporter) unfinished() error {
	if !im.session.InTransaction() {
		return nil
	}
	return im.refuse(im.multiLine, errors.New("MULTI without EXEC: the commands after it did not run"))
}

// add takes one line: a key joins the importer's batch; a command runs at once,
// after the batch, since it may read what the lines before it stored.
func (im *lineImporter) add(ctx context.Context, line []byte) error {
	if line[0] != '{' {
		if err := im.flush(); err != nil {
			return err
		}
		return im.runCommand(ctx, line)
	}
	if im.session.InTransaction() {
		return im.refuse(im.lines.Number(), errors.New("a line of JSON between MULTI and EXEC"))
	}
	im.keys.SetNamespace(im.session.Namespace())
	return im.worded(im.keys.Add(im.lines.Number(), line))
}

// runCommand runs a line of the other form. MULTI notes its line, for the error if the file ends
// without EXEC.
func (im *lineImporter) runCommand(ctx context.Context, line []byte) error {
	args, err := terminal.SplitLine(line)
	if err == nil && len(args) > 0 {
		before := im.session.InTransaction()
		err = im.do(ctx, args)
		if !before && im.session.InTransaction() {
			im.multiLine = im.lines.Number()
		}
	}
	if ctx.Err() != nil && err != nil {
		return err
	}
	if err != nil {
		return im.refuse(im.lines.Number(), err)
	}
	if im.commands++; len(args) > 0 {
		c, err := server.Resolve(args)
		im.writes = im.writes || err == nil && c.Flags&command.Write != 0
	}
	return nil
}

// library loads a library as a client would: one that a server could not load is refused. The name in the line and the
// one in the source must agree, or the library would be found under another name than the file says.
func (im *lineImporter) library(ctx context.Context, name, text string) error {
	if stated := rdb.LibraryName(text); stated != name {
		return fmt.Errorf("the library %.40q has a first line that states the name %.40q", name, stated)
	}
	return execute.Library(ctx, im.session, text)
}

// do runs one command and returns its error reply, if there is one.
func (im *lineImporter) do(ctx context.Context, args [][]byte) error {
	return execute.Run(ctx, im.session, args)
}

// flush stores the keys that wait for their batch.
func (im *lineImporter) flush() error { return im.worded(im.keys.Flush()) }

// refuse treats a line with wrong content like one with wrong JSON. It goes through jsonl's
// Importer, which stores the lines before it first.
func (im *lineImporter) refuse(line int, reason error) error {
	return im.worded(im.keys.Refuse(line, reason))
}

// worded gives an error of the store, as opposed to one of a line that bad has
// dealt with, the name of the file and the place.
func (im *lineImporter) worded(err error) error {
	if e, ok := errors.AsType[*jsonl.LineError](err); ok {
		return fmt.Errorf("%s:%d: %w; the lines before it are stored", im.name, e.Line, e.Err)
	}
	return err
}

// bad decides about a line that cannot be imported: an error ends the import.
func (im *lineImporter) bad(e *jsonl.LineError) error {
	err := fmt.Errorf("%s:%d: %w", im.name, e.Line, e.Err)
	if !im.o.KeepGoing {
		return fmt.Errorf("%w (the lines before it are stored)", err)
	}
	im.o.skip(&im.skipped, err)
	return nil
}
