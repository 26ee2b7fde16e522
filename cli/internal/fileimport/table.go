package fileimport

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
)

// A table with a header becomes keys, a row each: the template says how a row's key is made of its cells. Rows of the
// same key work on it one after the other, in the order of the file: of hashes and strings the last one stays.

// tableBatch is how many rows become one commit. Their cells are held in memory until then.
const tableBatch = 1000

// TableOptions say how rows become keys.
type TableOptions struct {
	Key       string // the template: a text with {column} in the place of a cell
	Type      string // hash, of all columns, string, list, set or zset
	Value     string // the column of the string, the element or the member
	Score     string // the column of the score
	Separator rune   // between cells
}

// A Table is a file with a header whose rows become keys. It is made by [Source.Table], before there is a store, and
// used once.
type Table struct {
	name  string // of the file
	rows  *csv.Reader
	store *db.Store
	o     Options

	template     []templatePart
	kind         string
	columns      []string
	value, score int // columns

	batch  []tableRow
	result Result
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

// Table reads the header, so that a wrong column is noticed before a store is made: it is an *[OptionError].
func (s *Source) Table(o TableOptions) (*Table, error) {
	im := &Table{name: s.Name, rows: csv.NewReader(s.in), kind: o.Type}
	im.rows.Comma = o.Separator
	header, err := im.rows.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("there is no header: the first line names the columns")
	}
	if err != nil {
		return nil, s.named(err)
	}
	// Spreadsheets begin a file with a mark of its byte order, which is no part of a name.
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	im.columns = header
	if err = im.parseTemplate(o.Key); err == nil && o.Type != "hash" {
		im.value, err = im.column(o.Value, "value")
	}
	if err == nil && o.Type == "zset" {
		im.score, err = im.column(o.Score, "score")
	}
	return im, err
}

// column is the number of a column, by its name as the header has it, of two equal names the first. option is whose
// mistake it is if there is none.
func (im *Table) column(name, option string) (int, error) {
	if i := slices.Index(im.columns, name); i >= 0 {
		return i, nil
	}
	return 0, &OptionError{option, fmt.Errorf("%s has no column %q, but %q", im.name, name, im.columns)}
}

// parseTemplate takes a template apart: text, and columns in braces. There is no way to write a brace itself. A
// template without a column is an error, since all rows would overwrite one key.
func (im *Table) parseTemplate(template string) error {
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
			return &OptionError{"key-template", fmt.Errorf("%q has { without }", template)}
		}
		column, err := im.column(name, "key-template")
		if err != nil {
			return err
		}
		im.template = append(im.template, templatePart{column: column})
		columns++
		rest = after
	}
	if columns == 0 {
		return &OptionError{"key-template", fmt.Errorf("%q has no {column}, so that all rows would have the same key", template)}
	}
	return nil
}

// Import imports all rows, once. Before it returns, for whatever reason, every good row that came before is committed.
func (im *Table) Import(ctx context.Context, store *db.Store, o Options) (_ Result, err error) {
	im.o, im.result.Unit = o, "bad row"
	if im.store, err = store.Use(o.Namespace); err != nil {
		return im.result, &OptionError{"db", err}
	}
	for {
		imported := im.rows.InputOffset() // so far: where the next row begins
		cells, err := im.rows.Read()
		at := im.rows.InputOffset()
		im.result.Bytes = at
		im.o.progress(at, im.result.Keys)
		switch {
		case ctx.Err() != nil:
			if err := im.flush(); err != nil {
				return im.result, err
			}
			im.o.warn(fmt.Errorf("interrupted at byte %d of %s; the rows before it are stored", imported, im.name))
			return im.result, ctx.Err()
		case errors.Is(err, io.EOF):
			return im.result, im.flush()
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := im.rows.FieldPos(0)
			err = im.refuse(line, fmt.Errorf("%d cells, and the header has %d", len(cells), len(im.columns)))
		case err != nil:
			return im.result, errors.Join(im.flush(), fmt.Errorf("%s: %w; the rows before it are stored", im.name, err))
		default:
			line, _ := im.rows.FieldPos(0)
			if im.batch = append(im.batch, tableRow{line, cells}); len(im.batch) >= tableBatch {
				err = im.flush()
			}
		}
		if err != nil {
			return im.result, err
		}
	}
}

// refuse treats a bad row, after those before it have been stored: what an error says of them must be true.
func (im *Table) refuse(line int, reason error) error {
	if err := im.flush(); err != nil {
		return err
	}
	return im.bad(line, reason)
}

// bad decides about a row that cannot be imported: nil skips it, an error ends the import.
func (im *Table) bad(line int, reason error) error {
	err := fmt.Errorf("%s:%d: %w", im.name, line, reason)
	if !im.o.KeepGoing {
		return fmt.Errorf("%w (the rows before it are stored; --keep-going skips such rows)", err)
	}
	im.o.skip(&im.result, err)
	return nil
}

// flush commits the rows that wait. One that the store refuses is rolled back alone: the transaction ends before it,
// and the rest is committed by another one. A failure of the store is no refusal: nothing of that transaction is stored.
func (im *Table) flush() error {
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
			return fmt.Errorf("%s:%d: storing it and the %d rows after it: %w", im.name, batch[0].line, len(batch)-1, err)
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

// put stores a row. A hash and a string replace what the key held; to the others an element is added, so importing a
// table twice makes a list twice as long. A cell of the key must not be empty: many rows would share a key by a lack of
// data.
func (im *Table) put(tx *db.Tx, cells []string) (err error) {
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
