package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stavedb/stave/db"
	"github.com/urfave/cli/v2"
)

func exportCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "Writes the keys of a store as lines of JSON",
		UsageText: "stave export [--dir DIR] [--db N] [--match PATTERN] [--sort] > FILE",
		Description: `One line is one key with everything it holds, in the form that stave help import
describes. Importing the lines into another store makes the same keys: bytes that
are not UTF-8 are written in base64, deadlines as Unix times.

Hash fields and set members are sorted, so that two exports of the same key are
the same line; --sort puts the keys in order too, for which it holds all their
names in memory. Otherwise nothing but one key's field names is.

The store is opened for reading only: a server may go on working with it, and
the export has each key as it was when the export began.`,
		Flags: []cli.Flag{
			dirFlag(),
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Value: -1, Usage: "export namespace `N` alone", DefaultText: "all"},
			&cli.StringFlag{Name: "match", Usage: "export the keys that match the glob `PATTERN`"},
			&cli.BoolFlag{Name: "sort", Usage: "sort by key"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("export takes no arguments; it writes to the standard output")
			}
			return runExport(t, c)
		},
	}
}

// An exporter writes one store.
type exporter struct {
	out   *bufio.Writer
	store *db.Store // in the namespace at work
	buf   []byte    // of the line at work, as far as it is not in out
	value []byte    // scratch
	bytes int64
	keys  int64
	total int64 // keys in all namespaces
	bar   *progress
}

// flushBytes is how much of a line gathers before it goes to out.
const flushBytes = 64 << 10

// exportPage is how many keys are read in one go.
const exportPage = 1000

func runExport(t *terminal, c *cli.Context) (err error) {
	ctx, stop := t.interruptible()
	defer stop()
	store, err := openExisting(t, chosenDir(c), &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	e := &exporter{out: bufio.NewWriterSize(t.out, 256<<10), total: int64(store.Stats().Keys)}
	e.bar = newProgress(t.bars(c.Bool("quiet")), "export", e.total)
	namespaces := exportNamespaces(store, c.Int("db"))
	for _, ns := range namespaces {
		if e.store, err = store.Use(ns); err != nil {
			return usagef("db %d: %v", ns, err)
		}
		if err = e.namespace(ctx, c.String("match"), c.Bool("sort")); err != nil {
			break
		}
	}
	e.bar.clear()
	if flushErr := e.out.Flush(); err == nil {
		err = flushErr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed(exitCommand, err)
}

// exportNamespaces lists the namespaces that hold keys, or the one asked for.
func exportNamespaces(store *db.Store, only int) []int {
	if only >= 0 {
		return []int{only}
	}
	var list []int
	for _, ns := range store.Stats().Namespaces {
		if ns.Keys > 0 {
			list = append(list, ns.Namespace)
		}
	}
	slices.Sort(list)
	return list
}

// namespace exports the keys of one namespace.
func (e *exporter) namespace(ctx context.Context, match string, sorted bool) error {
	if sorted {
		names, err := e.store.Keyspace().Keys(orDefault(match, "*"))
		if err != nil {
			return err
		}
		slices.Sort(names)
		for page := range slices.Chunk(names, exportPage) {
			if err := e.page(ctx, page); err != nil {
				return err
			}
		}
		return nil
	}
	names := make([]string, 0, exportPage)
	for cursor := uint64(0); ; {
		page, next, err := e.store.Keyspace().Scan(cursor, db.KeyScanOptions{Match: match, Count: exportPage})
		if err != nil {
			return err
		}
		names = names[:0]
		for _, info := range page {
			names = append(names, info.Key)
		}
		if err := e.page(ctx, names); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// page exports some keys.
func (e *exporter) page(ctx context.Context, names []string) error {
	return e.store.View(func(tx *db.Tx) error {
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			e.bar.update(e.keys, e.bytes, e.keys)
			if err := e.key(tx, name); err != nil {
				return fmt.Errorf("export %q: %w", name, err)
			}
		}
		return nil
	})
}

// key exports one key.
func (e *exporter) key(tx *db.Tx, key string) error {
	kind, err := tx.Key(key).Type()
	if err != nil || kind == db.TypeNone { // expired meanwhile
		return err
	}
	deadline, err := tx.Key(key).Deadline()
	if err != nil {
		return err
	}
	rec := record{db: tx.Namespace(), key: key, kind: kind.String()}
	if !deadline.IsZero() {
		rec.expireAt = deadline.UnixMilli()
	}
	e.keys++
	e.buf = rec.appendHead(e.buf[:0])
	if err := e.content(tx, rec.kind, key); err != nil {
		return err
	}
	e.buf = append(e.buf, "}\n"...)
	return e.spill(0)
}

// spill moves the gathered part of the line to out once it exceeds limit.
func (e *exporter) spill(limit int) error {
	if len(e.buf) <= limit {
		return nil
	}
	n, err := e.out.Write(e.buf)
	e.bytes += int64(n)
	e.buf = e.buf[:0]
	return err
}

// content writes the value member.
func (e *exporter) content(tx *db.Tx, kind, key string) (err error) {
	switch kind {
	case "string":
		if e.value, err = tx.String(key).AppendTo(e.value[:0]); err == nil {
			e.buf = appendStringValue(e.buf, e.value)
		}
		return err
	case "hash":
		return e.hash(tx.Hash(key))
	case "list":
		return e.list(tx.List(key))
	case "set":
		return e.set(tx.Set(key))
	case "zset":
		return e.sortedSet(tx.SortedSet(key))
	}
	return fmt.Errorf("type %s is not one that an export knows", kind)
}

// hash writes an object, or pairs if a field's name is not text.
func (e *exporter) hash(h db.Hash) error {
	fields, err := h.Fields()
	if err != nil {
		return err
	}
	slices.Sort(fields)
	opening, between, next, closing := `,"value":{`, ":", ",", "}"
	if slices.ContainsFunc(fields, func(f string) bool { return !utf8.ValidString(f) }) {
		opening, between, next, closing = `,"value":[[`, ",", "],[", "]]"
	}
	e.buf = append(e.buf, opening...)
	for i, field := range fields {
		if i > 0 {
			e.buf = append(e.buf, next...)
		}
		if e.value, err = h.AppendTo(e.value[:0], field); err != nil {
			return err
		}
		e.buf = append(appendBytes(e.buf, field), between...)
		e.buf = appendBytes(e.buf, e.value)
		if err := e.spill(flushBytes); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, closing...)
	return e.fieldDeadlines(h, fields, opening == `,"value":{`)
}

// fieldDeadlines writes those that there are, in the form of the value.
func (e *exporter) fieldDeadlines(h db.Hash, fields []string, object bool) error {
	deadlines, err := h.FieldDeadlines(fields...)
	if err != nil {
		return err
	}
	before, between, behind, closing := `,"field_expire_at_ms":{`, ":", "", "}"
	if !object {
		before, between, behind, closing = `,"field_expire_at_ms":[[`, ",", "]", "]"
	}
	some := false
	for i, d := range deadlines {
		if d.At.IsZero() {
			continue
		}
		e.buf = append(appendBytes(append(e.buf, before...), fields[i]), between...)
		e.buf = append(strconv.AppendInt(e.buf, d.At.UnixMilli(), 10), behind...)
		if err := e.spill(flushBytes); err != nil {
			return err
		}
		if some = true; object {
			before = ","
		} else {
			before = ",["
		}
	}
	if some {
		e.buf = append(e.buf, closing...)
	}
	return nil
}

func (e *exporter) list(l db.List) (err error) {
	e.buf = append(e.buf, `,"value":[`...)
	first := true
	visitErr := l.Visit(0, -1, func(int) {}, func(value []byte) bool {
		err = e.element(&first, func(dst []byte) []byte { return appendBytes(dst, value) })
		return err == nil
	})
	e.buf = append(e.buf, ']')
	return errors.Join(visitErr, err)
}

func (e *exporter) set(s db.Set) error {
	members, err := s.Members()
	if err != nil {
		return err
	}
	slices.Sort(members)
	e.buf = append(e.buf, `,"value":[`...)
	first := true
	for _, member := range members {
		if err := e.element(&first, func(dst []byte) []byte { return appendBytes(dst, member) }); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *exporter) sortedSet(z db.SortedSet) (err error) {
	e.buf = append(e.buf, `,"value":[`...)
	first := true
	visitErr := z.Visit(db.RankRange{Stop: -1}, func(int) {}, func(member []byte, score float64) bool {
		err = e.element(&first, func(dst []byte) []byte {
			dst = append(appendBytes(append(dst, '['), member), ',')
			return append(appendScore(dst, score), ']')
		})
		return err == nil
	})
	e.buf = append(e.buf, ']')
	return errors.Join(visitErr, err)
}

// element appends one element of an array, behind a comma unless it is the
// first.
func (e *exporter) element(first *bool, write func(dst []byte) []byte) error {
	if !*first {
		e.buf = append(e.buf, ',')
	}
	*first = false
	e.buf = write(e.buf)
	return e.spill(flushBytes)
}
