package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
)

// A table with a header becomes keys, a row each: the template says how a row's key is made of its cells.

// csvBatch is how many rows become one commit.
const csvBatch = 1000

// csvFlags say how a table becomes keys.
func csvFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "key-template", Usage: "the file is CSV with a header: a row's key is `TEMPLATE`, such as user:{id}, with its cells in the place of {column}"},
		&cli.StringFlag{Name: "type", Value: "hash", Usage: "what a row of CSV becomes: `T` is hash (of all columns), string, list, set or zset; with --from: only keys of this type"},
		&cli.StringFlag{Name: "value", Usage: "the `COLUMN` that has the string, the element or the member"},
		&cli.StringFlag{Name: "score", Usage: "the `COLUMN` that has the score"},
		&cli.StringFlag{Name: "separator", Value: ",", Usage: "the `CHARACTER` between cells of CSV; tab for a tab"},
	}
}

// A tableImporter stores the rows of one file.
type tableImporter struct {
	*terminal.Streams
	in        *source
	rows      *csv.Reader
	store     *db.Store
	keepGoing bool

	template     []templatePart
	kind         string
	columns      []string
	value, score int // columns

	batch  []tableRow
	result importResult
}

// A templatePart is a text or, if that is "", a column.
type templatePart struct {
	text   string
	column int
}

// A tableRow waits for its batch to be committed.
type tableRow struct {
	line  int
	cells []string
}

// newTableImporter reads the options and the header, so that a wrong column is noticed before a store is made.
func newTableImporter(t *terminal.Streams, c *cli.Context, in *source) (*tableImporter, error) {
	im := &tableImporter{Streams: t, in: in, rows: csv.NewReader(in.in), keepGoing: c.Bool("keep-going"), kind: c.String("type")}
	separator := []rune(strings.ReplaceAll(c.String("separator"), "tab", "\t"))
	if len(separator) != 1 || strings.ContainsRune("\"\r\n\uFFFD", separator[0]) {
		return nil, usagef("--separator must be one character, or tab, not %q", c.String("separator"))
	}
	im.rows.Comma = separator[0]
	header, err := im.rows.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("there is no header: the first line names the columns")
	}
	if err != nil {
		return nil, failed(exitCommand, fmt.Errorf("%s: %w", in.name, err))
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	im.columns = header
	if err := im.parseTemplate(c.String("key-template")); err != nil {
		return nil, err
	}
	for _, o := range []struct {
		flag   string
		column *int
		kinds  []string
	}{{"value", &im.value, []string{"string", "list", "set", "zset"}}, {"score", &im.score, []string{"zset"}}} {
		switch name := c.String(o.flag); {
		case !slices.Contains([]string{"hash", "string", "list", "set", "zset"}, im.kind):
			return nil, usagef("--type must be hash, string, list, set or zset, not %q", im.kind)
		case slices.Contains(o.kinds, im.kind):
			if *o.column, err = im.column(name, "--"+o.flag); err != nil {
				return nil, err
			}
		case name != "":
			return nil, usagef("--%s does not go with --type %s", o.flag, im.kind)
		}
	}
	return im, nil
}

// column is the number of a column.
func (im *tableImporter) column(name, option string) (int, error) {
	if i := slices.Index(im.columns, name); i >= 0 {
		return i, nil
	}
	return 0, usagef("%s: %s has no column %q, but %q", option, im.in.name, name, im.columns)
}

// parseTemplate takes a template apart: text, and columns in braces.
func (im *tableImporter) parseTemplate(template string) error {
	columns := 0
	for rest := template; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if text != "" {
			im.template = append(im.template, templatePart{text: text})
		}
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}")
		if !found {
			return usagef("--key-template: %q has { without }", template)
		}
		column, err := im.column(name, "--key-template")
		if err != nil {
			return err
		}
		im.template = append(im.template, templatePart{column: column})
		columns++
		rest = after
	}
	if columns == 0 {
		return usagef("--key-template: %q has no {column}, so that all rows would have the same key", template)
	}
	return nil
}

// run imports all rows. Before it returns, for whatever reason, every good row that came before is committed.
func (im *tableImporter) run(ctx context.Context) (importResult, error) {
	im.result.unit = "bad row"
	for {
		cells, err := im.rows.Read()
		at := im.rows.InputOffset()
		im.result.Bytes = at
		im.in.bar.Update(at, at, im.result.Keys)
		switch {
		case ctx.Err() != nil:
			if err := im.flush(); err != nil {
				return im.result, err
			}
			im.in.bar.Clear()
			im.Complain(fmt.Errorf("interrupted at byte %d of %s; the rows before it are stored", at, im.in.name))
			return im.result, ctx.Err()
		case errors.Is(err, io.EOF):
			return im.result, im.flush()
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := im.rows.FieldPos(0)
			err = im.refuse(line, fmt.Errorf("%d cells, and the header has %d", len(cells), len(im.columns)))
		case err != nil:
			return im.result, errors.Join(im.flush(), failed(exitCommand, fmt.Errorf("%s: %w; the rows before it are stored", im.in.name, err)))
		default:
			line, _ := im.rows.FieldPos(0)
			if im.batch = append(im.batch, tableRow{line, cells}); len(im.batch) >= csvBatch {
				err = im.flush()
			}
		}
		if err != nil {
			return im.result, err
		}
	}
}

// refuse treats a bad row, after those before it have been stored.
func (im *tableImporter) refuse(line int, reason error) error {
	if err := im.flush(); err != nil {
		return err
	}
	return im.bad(line, reason)
}

func (im *tableImporter) bad(line int, reason error) error {
	err := fmt.Errorf("%s:%d: %w", im.in.name, line, reason)
	if !im.keepGoing {
		return failed(exitCommand, fmt.Errorf("%w (the rows before it are stored; --keep-going skips such rows)", err))
	}
	im.in.skip(im.Streams, &im.result, err)
	return nil
}

// flush commits the rows that wait. One that the store refuses is rolled back alone.
func (im *tableImporter) flush() error {
	batch := im.batch
	im.batch = im.batch[:0]
	for len(batch) > 0 {
		stored := 0
		var refused error
		err := im.store.Update(func(tx *db.Tx) error {
			stored, refused = 0, nil
			for _, row := range batch {
				mark := tx.Savepoint()
				if refused = im.put(tx, row.cells); refused != nil {
					return tx.RollbackTo(mark)
				}
				stored++
			}
			return nil
		})
		if err != nil {
			return failed(exitCommand, fmt.Errorf("%s:%d: storing it and the %d rows after it: %w", im.in.name, batch[0].line, len(batch)-1, err))
		}
		im.result.Keys += int64(stored)
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

// put stores a row. A hash and a string replace what the key held; to the others an element is added.
func (im *tableImporter) put(tx *db.Tx, cells []string) (err error) {
	var key strings.Builder
	for _, part := range im.template {
		if part.text != "" {
			key.WriteString(part.text)
			continue
		}
		if cells[part.column] == "" {
			return fmt.Errorf("the column %q, which the key is made of, is empty", im.columns[part.column])
		}
		key.WriteString(cells[part.column])
	}
	switch name := key.String(); im.kind {
	case "string":
		err = tx.String(name).Put([]byte(cells[im.value]))
	case "list":
		_, err = tx.List(name).PushBack([]byte(cells[im.value]))
	case "set":
		_, err = tx.Set(name).Add(cells[im.value])
	case "zset":
		score, parseErr := strconv.ParseFloat(strings.TrimSpace(cells[im.score]), 64)
		if parseErr != nil || score != score {
			return fmt.Errorf("the column %q has %q, which is no number", im.columns[im.score], cells[im.score])
		}
		_, err = tx.SortedSet(name).Add(db.Scored{Member: cells[im.value], Score: score})
	default:
		if _, err = tx.Key(name).Delete(); err != nil {
			return err
		}
		fields := make([]db.Field, len(cells))
		for i, cell := range cells {
			fields[i] = db.Field{Name: im.columns[i], Value: []byte(cell)}
		}
		_, err = tx.Hash(name).PutAll(fields...)
	}
	return err
}
