package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/lines"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/server"
)

// An import takes two languages from one file: lines of JSON, which package
// jsonl stores in batches, and commands, which a session runs one at a time.
// They keep their order: before a command runs, the batch is stored, since the
// command may read what a line before it wrote.
//
// However an import ends, the lines before are stored and the message names the line. So the file
// can be corrected and imported again from there, or from the start: a line replaces the content of
// its key.

// maxComplaints is how many skipped lines are described one by one.
const maxComplaints = 100

// importHelp describes what can be imported.
const importHelp = `The first bytes of the file say what it is: an RDB file of a Redis, an AOF or other
commands in RESP, the manifest of an AOF or the directory where it is, or lines.

   stave import data dump.rdb
   redis-cli --rdb - | stave import data -
   stave import data keys.jsonl

   stave import data appendonlydir

A running Redis is read with SCAN and DUMP, while it goes on working; --verify then
compares every key.

   stave import data --from redis://127.0.0.1:6379 --match 'user:*' --state progress
   stave import data --from redis://127.0.0.1:6379 --verify

An RDB file may be of any version from 1 to 12. Its databases become namespaces, and
deadlines stay. What a store cannot hold, such as values of modules, is left out and
named, and the status is 5 then. So it is if an AOF ends within a command, as after
a crash: what comes before is imported.

With --key-template the file is a table whose first line names the columns. A row
becomes a hash of all its cells, or what --type says; lists, sets and sorted sets
get an element from each row.

   stave import data people.csv --key-template 'user:{id}'
   stave import data scores.csv --key-template 'board:{game}' --type zset --value player --score points

In a file of lines, one that starts with { is one key, as stave export writes them:

   {"key":"greeting","type":"string","value":"hi","ttl_ms":60000}
   {"key":"user:1","type":"hash","value":{"name":"Ada","born":"1815"}}
   {"key":"jobs","type":"list","value":["first","second"]}
   {"key":"tags","type":"set","value":["a","b"]}
   {"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}
   {"library":"mylib","value":"#!lua name=mylib\nredis.register_function(...)"}

It replaces whatever the key held, or the library of functions. "ttl_ms" counts
from now, "expire_at_ms" is a Unix time in milliseconds, "field_expire_at_ms" has
those of the fields of a hash, "db" is the namespace. Bytes that are not UTF-8
stand in "keyB64" and "valueB64", or as {"b64":"..."} wherever a collection has a
string; a hash, and the deadlines of its fields, can be an array of pairs too.

Any other line is a command as in the shell: SET greeting "hello world". Blank
lines and lines that start with # are skipped.

The first bad line or key ends the import with status 1 and is named; everything
before it is stored. With --keep-going bad ones are named and skipped, and the status
is 5. The store is flushed to the disk once, at the end, unless --sync says
otherwise.`

// importCommand describes stave import. Its help is also the description of the lines, for authors
// of such files.
func importCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:        "import",
		Usage:       "Reads keys or commands from a file into a store",
		ArgsUsage:   "[DIR] FILE",
		UsageText:   "stave import [DIR] FILE [--keep-going]    (- is the standard input)",
		Description: importHelp,
		Flags: append(append(csvFlags(), redisFlags()...),
			dirFlag(),
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Usage: "import lines that name no namespace into `N`"},
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "skip bad lines and keys, and go on"},
			syncFlag("none"),
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		),
		Action: func(c *cli.Context) error {
			switch {
			case c.String("from") != "" && c.NArg() <= 1:
				if err := takeDir(c, c.NArg()); err != nil {
					return err
				}
				return runRedisImport(t, c, chosenDir(c))
			case c.String("from") != "":
				return usagef("with --from there is no FILE")
			case checkRedisFlags(c) != nil:
				return checkRedisFlags(c)
			case c.NArg() == 1:
				return runImport(t, c, chosenDir(c), c.Args().First())
			case c.NArg() == 2 && !c.IsSet("dir"):
				return runImport(t, c, c.Args().Get(0), c.Args().Get(1))
			}
			return usagef("import needs one FILE, or - for the standard input")
		},
	}
}

// An importResult is what an import did, and what --json prints.
type importResult struct {
	Keys      int64            `json:"keys"`               // stored
	Libraries int64            `json:"libraries"`          // of functions, stored
	Expired   int64            `json:"expired"`            // keys whose deadline had passed
	Commands  int64            `json:"commands"`           // command lines run
	Skipped   int64            `json:"skipped"`            // bad lines, or keys
	LeftOut   map[string]int64 `json:"left_out,omitempty"` // what a store cannot hold, by name
	Bytes     int64            `json:"bytes"`              // read
	Seconds   float64          `json:"seconds"`

	unit string // what Skipped counts
}

// add adds the result of a part.
func (r *importResult) add(part importResult) {
	r.Keys, r.Libraries, r.Expired = r.Keys+part.Keys, r.Libraries+part.Libraries, r.Expired+part.Expired
	r.Commands, r.Skipped, r.Bytes = r.Commands+part.Commands, r.Skipped+part.Skipped, r.Bytes+part.Bytes
	for name, n := range part.LeftOut {
		if r.LeftOut == nil {
			r.LeftOut = map[string]int64{}
		}
		r.LeftOut[name] += n
	}
	r.unit = part.unit
}

// An importer feeds the lines of one file to a store, in order: keys to a
// [jsonl.Importer], commands to a session.
type importer struct {
	*terminal.Streams
	keys      *jsonl.Importer
	session   *server.Session
	name      string // of the file, for messages
	db        int
	keepGoing bool
	lines     *lines.Reader
	bar       *terminal.Progress
	commands  int64 // run
	skipped   int64 // bad lines
	multiLine int   // of the open MULTI
}

// Keys and commands go to the same store by two ways: the importer of package jsonl, and a session.
func newImporter(t *terminal.Streams, store *db.Store, in io.Reader) (*importer, error) {
	session, err := server.NewSession(store, nil)
	if err != nil {
		return nil, err
	}
	im := &importer{Streams: t, session: session, lines: lines.NewReader(in)}
	im.keys = jsonl.NewImporter(store, jsonl.ImportOptions{BadLine: im.bad, Library: im.library})
	return im, nil
}

// A source is the file that is imported.
type source struct {
	name   string // for messages
	size   int64  // in bytes; 0: unknown
	in     *bufio.Reader
	format string
	bar    *terminal.Progress
}

// runImport imports one file. The file is opened, and its format recognised, before the store is, so that a misspelt name makes no
// store. The reader of the file ends when the command does, by the context reading, also if the
// import ends early.
func runImport(t *terminal.Streams, c *cli.Context, dir, name string) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	in, closing, err := openSource(ctx, t, manifestIn(name))
	if err != nil {
		return err
	}
	defer closing()
	if in.format != formatLines && c.IsSet("db") {
		return usagef("--db is for files of lines: %s names its databases", in.name)
	}
	var table *tableImporter
	if c.IsSet("key-template") {
		if in.format != formatLines {
			return usagef("--key-template is for CSV, which %s is not", in.name)
		}
		if table, err = newTableImporter(t, c, in); err != nil {
			return err
		}
	}
	store, err := openStore(ctx, t, dir, c.String("sync"))
	if err != nil {
		return err
	}
	quiet := c.Bool("quiet")
	in.bar = t.Progress(quiet, "import", in.size)
	started := time.Now()
	result, err := importInto(ctx, t, c, store, in, table)
	in.bar.Clear()
	if closeInto(&err, store.Close); err != nil {
		return err
	}
	result.Seconds = time.Since(started).Seconds()
	if err := reportImport(t, in.name, result, c.Bool("json"), quiet); err != nil {
		return failed(exitCommand, err)
	}
	if result.Skipped > 0 || len(result.LeftOut) > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}

// importInto imports a table, if there is one, or what the source is.
func importInto(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, in *source, table *tableImporter) (r importResult, err error) {
	if table == nil {
		return importFrom(ctx, t, c, store, in)
	}
	if table.store, err = store.Use(c.Int("db")); err != nil {
		return r, usagef("--db: %v", err)
	}
	return table.run(ctx)
}

// openSource opens a file and recognises its format. Its reader ends with closing, or with the context.
func openSource(ctx context.Context, t *terminal.Streams, name string) (in *source, closing func(), err error) {
	file, size, err := terminal.OpenInput(t, name)
	if err != nil {
		return nil, nil, failed(exitCommand, err)
	}
	reading, done := context.WithCancel(ctx)
	closing = func() {
		done()
		file.Close()
	}
	in = &source{name: cmp.Or(strings.TrimPrefix(name, "-"), "stdin"), size: size}
	in.in = bufio.NewReaderSize(terminal.NewReader(reading, file), terminal.ChunkSize)
	if err := in.recognise(); err != nil {
		closing()
		return nil, nil, err
	}
	return in, closing, nil
}

// importParts imports the files that a manifest lists.
func importParts(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, in *source) (sum importResult, err error) {
	names, err := in.manifestParts(in.name)
	if err != nil {
		return sum, failed(exitCommand, fmt.Errorf("%s: %w", in.name, err))
	}
	for _, name := range names {
		part, closing, err := openSource(ctx, t, name)
		if err != nil {
			return sum, err
		}
		if part.format != formatRDB && part.format != formatRESP && part.size > 0 {
			closing()
			return sum, failed(exitCommand, fmt.Errorf("%s: neither an RDB file nor commands", name))
		}
		part.bar = t.Progress(c.Bool("quiet"), "import", part.size)
		result, err := importFrom(ctx, t, c, store, part)
		part.bar.Clear()
		closing()
		if sum.add(result); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// importFrom imports what the source is.
func importFrom(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, in *source) (importResult, error) {
	switch keepGoing := c.Bool("keep-going"); in.format {
	case formatRDB:
		return importRDB(ctx, t, store, in, keepGoing)
	case formatRESP:
		return importCommands(ctx, t, store, in, in.in, 0, keepGoing)
	case formatManifest:
		return importParts(ctx, t, c, store, in)
	}
	im, err := newImporter(t, store, in.in)
	if err != nil {
		return importResult{}, failed(exitCommand, err)
	}
	im.name, im.db, im.keepGoing, im.bar = in.name, c.Int("db"), c.Bool("keep-going"), in.bar
	err = im.run(ctx)
	return im.result(), err
}

// result adds up what both halves did.
func (im *importer) result() importResult {
	r := im.keys.Result()
	return importResult{Keys: r.Keys, Libraries: r.Libraries, Expired: r.Expired, Commands: im.commands, Skipped: im.skipped, Bytes: im.lines.Bytes(), unit: "bad line"}
}

// run imports all lines. Before it returns, for whatever reason, every good line that came before
// is committed. An interrupt is noticed at the next line; what has been read by then is stored
// first, so that the message names a line that is true.
func (im *importer) run(ctx context.Context) error {
	if im.db != 0 {
		if err := im.do([][]byte{[]byte("SELECT"), fmt.Append(nil, im.db)}); err != nil {
			return usagef("--db: %v", err)
		}
	}
	for {
		line, err := im.lines.Next()
		if ctx.Err() != nil {
			if err := im.flush(); err != nil {
				return err
			}
			im.bar.Clear()
			im.Complain(fmt.Errorf("interrupted after %s:%d; the lines up to there are stored", im.name, im.lines.Number()))
			return ctx.Err()
		}
		if err != nil {
			flushErr := im.flush()
			if !errors.Is(err, io.EOF) {
				return errors.Join(failed(exitCommand, fmt.Errorf("%s: %w", im.name, err)), flushErr)
			}
			return errors.Join(flushErr, im.unfinished())
		}
		if lines.Skip(line) {
			continue
		}
		if err := im.add(bytes.TrimLeft(line, " \t")); err != nil {
			return err
		}
		im.bar.Update(im.lines.Bytes(), im.lines.Bytes(), im.keys.Result().Keys)
	}
}

// unfinished complains about a MULTI without EXEC at the end.
func (im *importer) unfinished() error {
	if !im.session.InTransaction() {
		return nil
	}
	return im.refuse(im.multiLine, errors.New("MULTI without EXEC: the commands after it did not run"))
}

// add takes one line: a key joins the importer's batch; a command runs at once,
// after the batch, since it may read what the lines before it stored.
func (im *importer) add(line []byte) error {
	if line[0] != '{' {
		if err := im.flush(); err != nil {
			return err
		}
		return im.runCommand(line)
	}
	if im.session.InTransaction() {
		return im.refuse(im.lines.Number(), errors.New("a line of JSON between MULTI and EXEC"))
	}
	im.keys.SetNamespace(im.session.Namespace())
	return im.worded(im.keys.Add(im.lines.Number(), line))
}

// runCommand runs a line of the other form. MULTI notes its line, for the error if the file ends
// without EXEC.
func (im *importer) runCommand(line []byte) error {
	args, err := terminal.SplitLine(line)
	if err == nil && len(args) > 0 {
		before := im.session.InTransaction()
		err = im.do(args)
		if !before && im.session.InTransaction() {
			im.multiLine = im.lines.Number()
		}
	}
	if err != nil {
		return im.refuse(im.lines.Number(), err)
	}
	im.commands++
	return nil
}

// library loads a library as a client would: one that a server could not load is refused.
func (im *importer) library(name, text string) error {
	if stated := rdb.LibraryName(text); stated != name {
		return fmt.Errorf("the library %.40q has a first line that states the name %.40q", name, stated)
	}
	return loadLibrary(im.session, text)
}

// loadLibrary replaces a library of functions.
func loadLibrary(session *server.Session, text string) error {
	return runCommand(session, [][]byte{[]byte("FUNCTION"), []byte("LOAD"), []byte("REPLACE"), []byte(text)})
}

// do runs one command and returns its error reply, if there is one.
func (im *importer) do(args [][]byte) error { return runCommand(im.session, args) }

// flush stores the keys that wait for their batch.
func (im *importer) flush() error { return im.worded(im.keys.Flush()) }

// refuse treats a line with wrong content like one with wrong JSON. It goes through jsonl's
// Importer, which stores the lines before it first.
func (im *importer) refuse(line int, reason error) error {
	return im.worded(im.keys.Refuse(line, reason))
}

// worded gives an error of the store, as opposed to one of a line that bad has
// dealt with, the name of the file and its status.
func (im *importer) worded(err error) error {
	if e, ok := errors.AsType[*jsonl.LineError](err); ok {
		return failed(exitCommand, fmt.Errorf("%s:%d: %w; the lines before it are stored", im.name, e.Line, e.Err))
	}
	return err
}

// bad decides about a line that cannot be imported: an error ends the import. With keepGoing the
// first complaints are printed one by one and the rest is counted: a file of the wrong kind would
// flood the terminal.
func (im *importer) bad(e *jsonl.LineError) error {
	err := fmt.Errorf("%s:%d: %w", im.name, e.Line, e.Err)
	if !im.keepGoing {
		return failed(exitCommand, fmt.Errorf("%w (the lines before it are stored)", err))
	}
	im.skipped++
	im.bar.Clear()
	switch {
	case im.skipped <= maxComplaints:
		im.Complain(err)
	case im.skipped == maxComplaints+1:
		im.Complain(errors.New("more bad lines follow; they are counted, not named"))
	}
	return nil
}
