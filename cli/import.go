package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/lines"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/server"
	"github.com/urfave/cli/v2"
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

// importCommand describes stave import. Its help is also the description of the lines, for authors
// of such files.
func importCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "Reads keys or commands from a file into a store",
		ArgsUsage: "FILE",
		UsageText: "stave import [--dir DIR] [--keep-going] FILE    (- is the standard input)",
		Description: `A line that starts with { is one key, as stave export writes them:

   {"key":"greeting","type":"string","value":"hi","ttl_ms":60000}
   {"key":"user:1","type":"hash","value":{"name":"Ada","born":"1815"}}
   {"key":"jobs","type":"list","value":["first","second"]}
   {"key":"tags","type":"set","value":["a","b"]}
   {"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}

It replaces whatever the key held. "ttl_ms" counts from now, "expire_at_ms" is a
Unix time in milliseconds, "field_expire_at_ms" has those of the fields of a hash,
"db" is the namespace. Bytes that are not UTF-8 stand in "keyB64" and "valueB64",
or as {"b64":"..."} wherever a collection has a string; a hash, and the deadlines
of its fields, can be an array of pairs too.

Any other line is a command as in the shell: SET greeting "hello world". Blank
lines and lines that start with # are skipped.

The first bad line ends the import with status 1 and is named; every line before
it is stored. With --keep-going bad lines are named and skipped, and the status
is 5. The store is flushed to the disk once, at the end, unless --sync says
otherwise.`,
		Flags: []cli.Flag{
			dirFlag(),
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Usage: "import lines that name no namespace into `N`"},
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "skip bad lines and go on"},
			syncFlag("none"),
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("import needs one FILE, or - for the standard input")
			}
			return runImport(t, c, c.Args().First())
		},
	}
}

// An importResult is what an import did, and what --json prints.
type importResult struct {
	Keys     int64   `json:"keys"`     // lines of JSON stored
	Expired  int64   `json:"expired"`  // lines of JSON whose deadline had passed
	Commands int64   `json:"commands"` // command lines run
	Skipped  int64   `json:"skipped"`  // bad lines
	Bytes    int64   `json:"bytes"`    // read
	Seconds  float64 `json:"seconds"`
}

// An importer feeds the lines of one file to a store, in order: keys to a
// [jsonl.Importer], commands to a session.
type importer struct {
	*terminal
	keys      *jsonl.Importer
	session   *server.Session
	name      string // of the file, for messages
	db        int
	keepGoing bool
	lines     *lines.Reader
	bar       *progress
	commands  int64 // run
	skipped   int64 // bad lines
	multiLine int   // of the open MULTI
}

// Keys and commands go to the same store by two ways: the importer of package jsonl, and a session.
func newImporter(t *terminal, store *db.Store, in io.Reader) (*importer, error) {
	session, err := server.NewSession(store, nil)
	if err != nil {
		return nil, err
	}
	im := &importer{terminal: t, session: session, lines: lines.NewReader(in)}
	im.keys = jsonl.NewImporter(store, jsonl.ImportOptions{BadLine: im.bad})
	return im, nil
}

// runImport imports one file. The file is opened before the store, so that a misspelt name makes no
// store. The reader of the file ends when the command does, by the context reading, also if the
// import ends early.
func runImport(t *terminal, c *cli.Context, name string) (err error) {
	in, size, err := openInput(t, name)
	if err != nil {
		return failed(exitCommand, err)
	}
	defer in.Close()
	ctx, stop := t.interruptible()
	defer stop()
	reading, done := context.WithCancel(ctx)
	defer done()
	store, err := openStore(t, chosenDir(c), c.String("sync"))
	if err != nil {
		return err
	}
	im, err := newImporter(t, store, newInterruptibleReader(reading, in))
	if err != nil {
		return errors.Join(failed(exitCommand, err), store.Close())
	}
	quiet := c.Bool("quiet")
	im.name, im.db, im.keepGoing = orDefault(strings.TrimPrefix(name, "-"), "stdin"), c.Int("db"), c.Bool("keep-going")
	im.bar = newProgress(t.bars(quiet), "import", size)
	started := time.Now()
	err = im.run(ctx)
	im.bar.clear()
	if closeInto(&err, store.Close); err != nil {
		return err
	}
	result := im.result(time.Since(started))
	if err := im.report(result, c.Bool("json"), quiet); err != nil {
		return failed(exitCommand, err)
	}
	if result.Skipped > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}

// result adds up what both halves did.
func (im *importer) result(took time.Duration) importResult {
	r := im.keys.Result()
	return importResult{
		Keys: r.Keys, Expired: r.Expired, Commands: im.commands, Skipped: im.skipped,
		Bytes: im.lines.Bytes(), Seconds: took.Seconds(),
	}
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
			im.bar.clear()
			im.complain(fmt.Errorf("interrupted after %s:%d; the lines up to there are stored", im.name, im.lines.Number()))
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
		im.bar.update(im.lines.Bytes(), im.lines.Bytes(), im.keys.Result().Keys)
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
	args, err := splitLine(line)
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

// do runs one command and returns its error reply, if there is one. An EXEC that contains an error
// reply counts as one that failed.
func (im *importer) do(args [][]byte) error {
	rest := im.session.Do(args)
	for len(rest) > 0 {
		var r resp.Reply
		var err error
		if r, rest, err = resp.Decode(rest); err != nil {
			return err
		}
		if err := errors.Join(r.Err(), nestedError(args, r)); err != nil {
			return err
		}
	}
	if im.session.Closed() {
		return errors.New("the command ended the session")
	}
	return nil
}

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
	im.bar.clear()
	switch {
	case im.skipped <= maxComplaints:
		im.complain(err)
	case im.skipped == maxComplaints+1:
		im.complain(errors.New("more bad lines follow; they are counted, not named"))
	}
	return nil
}

// report prints the result. Counts that are zero are left out of the sentence; JSON has them all.
func (im *importer) report(r importResult, asJSON, quiet bool) error {
	if asJSON {
		return json.NewEncoder(im.out).Encode(r)
	}
	if quiet {
		return nil
	}
	text := "imported " + plural(r.Keys, "key")
	if r.Commands > 0 {
		text += " and ran " + plural(r.Commands, "command")
	}
	text += fmt.Sprintf(" from %s (%s) in %s", im.name, sizeText(r.Bytes), durationText(time.Duration(r.Seconds*float64(time.Second))))
	if r.Expired > 0 {
		text += fmt.Sprintf("; %s had expired", countText(r.Expired))
	}
	if r.Skipped > 0 {
		text += "; skipped " + plural(r.Skipped, "bad line")
	}
	_, err := fmt.Fprintln(im.out, text)
	return err
}
