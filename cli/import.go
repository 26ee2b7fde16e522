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
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/urfave/cli/v2"
)

// A batch of records becomes one commit. It ends at whichever limit comes
// first; a collection beyond chunkBytes takes several commits of its own.
const (
	batchRecords = 1000
	batchBytes   = 4 << 20
	chunkBytes   = 16 << 20
)

// maxComplaints is how many skipped lines are described one by one.
const maxComplaints = 100

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

// An importer feeds the lines of one file to a store, in order.
type importer struct {
	*terminal
	store     *db.Store
	session   *server.Session
	name      string // of the file, for messages
	db        int
	keepGoing bool
	lines     *lineReader
	bar       *progress
	result    importResult

	batch      []pendingRecord
	batchBytes int
	multiLine  int // where the open MULTI stands
}

// A pendingRecord waits for its batch to be committed.
type pendingRecord struct {
	record
	line int
}

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
	quiet := c.Bool("quiet")
	im := &importer{
		terminal: t, store: store, session: server.NewSession(store, nil), name: orDefault(strings.TrimPrefix(name, "-"), "stdin"),
		db: c.Int("db"), keepGoing: c.Bool("keep-going"), lines: newLineReader(newInterruptibleReader(reading, in)), bar: newProgress(t.bars(quiet), "import", size),
	}
	started := time.Now()
	err = im.run(ctx)
	im.bar.clear()
	if closeErr := store.Close(); closeErr != nil && err == nil {
		err = failed(exitCommand, fmt.Errorf("close: %w", closeErr))
	}
	im.result.Bytes, im.result.Seconds = im.lines.bytes, time.Since(started).Seconds()
	if err != nil {
		return err
	}
	if err := im.report(c.Bool("json"), quiet); err != nil {
		return failed(exitCommand, err)
	}
	if im.result.Skipped > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}

// run imports all lines. Before it returns, for whatever reason, every good
// line that came before is committed.
func (im *importer) run(ctx context.Context) error {
	if im.db != 0 {
		if err := im.command("SELECT", fmt.Sprint(im.db)); err != nil {
			return usagef("--db: %v", err)
		}
	}
	for {
		line, err := im.lines.next()
		if ctx.Err() != nil {
			if err := im.flush(); err != nil {
				return err
			}
			im.bar.clear()
			im.complain(fmt.Errorf("interrupted behind %s:%d; the lines up to there are stored", im.name, im.lines.number))
			return ctx.Err()
		}
		if err != nil {
			flushErr := im.flush()
			if !errors.Is(err, io.EOF) {
				return failed(exitCommand, fmt.Errorf("%s: %w", im.name, err))
			}
			return errors.Join(flushErr, im.unfinished())
		}
		if im.lines.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // some editors put a byte order mark there
		}
		if skipped(line) {
			continue
		}
		if err := im.add(bytes.TrimLeft(line, " \t")); err != nil {
			return err
		}
		im.bar.update(im.lines.bytes, im.lines.bytes, im.result.Keys)
	}
}

// unfinished complains about a MULTI without EXEC at the end.
func (im *importer) unfinished() error {
	if !im.session.InTransaction() {
		return nil
	}
	return im.bad(im.multiLine, errors.New("MULTI without EXEC: the commands behind it did not run"))
}

// add takes one line: a record joins the batch, a command runs at once, behind
// the batch.
func (im *importer) add(line []byte) error {
	if line[0] != '{' {
		if err := im.flush(); err != nil {
			return err
		}
		return im.runCommand(line)
	}
	if im.session.InTransaction() {
		return im.bad(im.lines.number, errors.New("a line of JSON between MULTI and EXEC"))
	}
	rec, err := parseRecord(line, im.session.Namespace(), time.Now().UnixMilli())
	if err != nil {
		if err := im.flush(); err != nil {
			return err
		}
		return im.bad(im.lines.number, err)
	}
	if len(line) > chunkBytes && rec.kind != "string" {
		if err := im.flush(); err != nil {
			return err
		}
		return im.storeLarge(pendingRecord{rec, im.lines.number})
	}
	im.batch = append(im.batch, pendingRecord{rec, im.lines.number})
	im.batchBytes += len(line)
	if len(im.batch) >= batchRecords || im.batchBytes >= batchBytes {
		return im.flush()
	}
	return nil
}

// runCommand runs a line of the other form.
func (im *importer) runCommand(line []byte) error {
	args, err := splitLine(line)
	if err == nil && len(args) > 0 {
		before := im.session.InTransaction()
		err = im.do(args)
		if !before && im.session.InTransaction() {
			im.multiLine = im.lines.number
		}
	}
	if err != nil {
		return im.bad(im.lines.number, err)
	}
	im.result.Commands++
	return nil
}

func (im *importer) command(args ...string) error {
	var list [][]byte
	for _, arg := range args {
		list = append(list, []byte(arg))
	}
	return im.do(list)
}

// do runs one command and returns its error reply, if that is what it got.
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

// flush commits the batch. A record that the store refuses is taken back alone
// and treated like a bad line; the ones before it stay.
func (im *importer) flush() error {
	batch := im.batch
	im.batch, im.batchBytes = im.batch[:0], 0
	for len(batch) > 0 {
		stored, refused, err := im.commit(batch)
		if err != nil {
			first, last := batch[0].line, batch[len(batch)-1].line
			return failed(exitCommand, fmt.Errorf("%s:%d: storing lines %d to %d: %w; the lines before %d are stored",
				im.name, first, first, last, err, first))
		}
		if refused == nil {
			return nil
		}
		if err := im.bad(batch[stored].line, refused); err != nil {
			return err
		}
		batch = batch[stored+1:]
	}
	return nil
}

// commit stores records in one commit, up to the first that is refused.
func (im *importer) commit(batch []pendingRecord) (stored int, refused, err error) {
	var keys, expired int64
	err = im.store.Update(func(tx *db.Tx) error {
		stored, refused, keys, expired = 0, nil, 0, 0
		now := time.Now().UnixMilli()
		for i := range batch {
			mark := tx.Savepoint()
			if refused = applyRecord(tx, &batch[i].record, now); refused != nil {
				tx.RollbackTo(mark)
				return nil
			}
			stored++
			if batch[i].gone(now) {
				expired++
			} else {
				keys++
			}
		}
		return nil
	})
	if err == nil {
		im.result.Keys += keys
		im.result.Expired += expired
	}
	return stored, refused, err
}

// bad handles a line that cannot be imported: an error ends the import.
func (im *importer) bad(line int, reason error) error {
	err := fmt.Errorf("%s:%d: %w", im.name, line, reason)
	if !im.keepGoing {
		return failed(exitCommand, fmt.Errorf("%w (the lines before it are stored)", err))
	}
	im.result.Skipped++
	im.bar.clear()
	switch {
	case im.result.Skipped <= maxComplaints:
		im.complain(err)
	case im.result.Skipped == maxComplaints+1:
		im.complain(errors.New("more bad lines follow; they are counted, not named"))
	}
	return nil
}

// report says what was done.
func (im *importer) report(asJSON, quiet bool) error {
	r := im.result
	if asJSON {
		return json.NewEncoder(im.out).Encode(r)
	}
	if quiet {
		return nil
	}
	text := fmt.Sprintf("imported %s keys", countText(r.Keys))
	if r.Commands > 0 {
		text += fmt.Sprintf(" and ran %s commands", countText(r.Commands))
	}
	text += fmt.Sprintf(" from %s (%s) in %s", im.name, sizeText(r.Bytes), durationText(time.Duration(r.Seconds*float64(time.Second))))
	if r.Expired > 0 {
		text += fmt.Sprintf("; %s had expired", countText(r.Expired))
	}
	if r.Skipped > 0 {
		text += fmt.Sprintf("; skipped %s bad lines", countText(r.Skipped))
	}
	_, err := fmt.Fprintln(im.out, text)
	return err
}
