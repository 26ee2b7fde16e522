package jsonl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stavedb/stave/db"
)

// ExportOptions say what an export writes. The zero value is every key.
type ExportOptions struct {
	// Namespaces are those to be exported, in this order. Default: all that hold keys.
	Namespaces []int
	// Match is a glob pattern for keys. Default: every key.
	Match string
	// Sort puts the keys of a namespace in order, for which all their names are held in
	// memory. Default: the order of the store's hash, and memory for one page of names.
	Sort bool
	// Progress is called before each key with the bytes and keys written so far. It must be quick.
	// Default: none.
	Progress func(bytes, keys int64)
}

// An ExportResult is what an export wrote.
type ExportResult struct {
	Keys  int64
	Bytes int64
}

// Export writes the keys of a store to w, a line each. The fields of a hash and the
// members of a set are sorted, so that two exports of the same key are the same
// line. w gets large writes; an error of it ends the export.
//
// An export whose context ends returns the context's error; the last line it wrote
// is whole.
func Export(ctx context.Context, store *db.Store, w io.Writer, o ExportOptions) (ExportResult, error) {
	e := &exporter{out: bufio.NewWriterSize(w, outBytes), o: o}
	if o.Namespaces == nil {
		o.Namespaces = usedNamespaces(store)
	}
	err := e.all(ctx, store, o.Namespaces)
	if flushErr := e.out.Flush(); err == nil {
		err = flushErr
	}
	return e.result, err
}

// An exporter writes one store.
type exporter struct {
	o      ExportOptions
	out    *bufio.Writer
	store  *db.Store // in the namespace at work
	buf    []byte    // of the line at work, as far as it is not in out
	value  []byte    // scratch
	result ExportResult
}

const (
	outBytes   = 256 << 10 // gather for one write
	spillBytes = 64 << 10  // of one line gather before they go to out
	pageKeys   = 1000      // are read in one view
)

// usedNamespaces lists the namespaces that hold keys.
func usedNamespaces(store *db.Store) (list []int) {
	for _, ns := range store.Stats().Namespaces {
		if ns.Keys > 0 {
			list = append(list, ns.Namespace)
		}
	}
	slices.Sort(list)
	return list
}

func (e *exporter) all(ctx context.Context, store *db.Store, namespaces []int) (err error) {
	for _, ns := range namespaces {
		if e.store, err = store.Use(ns); err != nil {
			return fmt.Errorf("db %d: %w", ns, err)
		}
		if err = e.namespace(ctx); err != nil {
			return err
		}
	}
	return nil
}

// namespace exports the keys of one namespace.
func (e *exporter) namespace(ctx context.Context) error {
	if e.o.Sort {
		match := e.o.Match
		if match == "" {
			match = "*"
		}
		names, err := e.store.Keyspace().Keys(match)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for page := range slices.Chunk(names, pageKeys) {
			if err := e.page(ctx, page); err != nil {
				return err
			}
		}
		return nil
	}
	names := make([]string, 0, pageKeys)
	for cursor := uint64(0); ; {
		page, next, err := e.store.Keyspace().Scan(cursor, db.KeyScanOptions{Match: e.o.Match, Count: pageKeys})
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
			if e.o.Progress != nil {
				e.o.Progress(e.result.Bytes, e.result.Keys)
			}
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
	if err != nil || kind == db.TypeNone { // it has expired since
		return err
	}
	deadline, err := tx.Key(key).Deadline()
	if err != nil {
		return err
	}
	l := keyLine{namespace: tx.Namespace(), key: key, kind: kind.String()}
	if !deadline.IsZero() {
		l.expireAt = deadline.UnixMilli()
	}
	e.result.Keys++
	e.buf = l.appendHead(e.buf[:0])
	if err := e.content(tx, l.kind, key); err != nil {
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
	e.result.Bytes += int64(n)
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
		e.buf = append(appendElement(e.buf, field), between...)
		e.buf = appendElement(e.buf, e.value)
		if err := e.spill(spillBytes); err != nil {
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
	before, between, after, closing := `,"field_expire_at_ms":{`, ":", "", "}"
	if !object {
		before, between, after, closing = `,"field_expire_at_ms":[[`, ",", "]", "]"
	}
	some := false
	for i, d := range deadlines {
		if d.At.IsZero() {
			continue
		}
		e.buf = append(appendElement(append(e.buf, before...), fields[i]), between...)
		e.buf = append(strconv.AppendInt(e.buf, d.At.UnixMilli(), 10), after...)
		if err := e.spill(spillBytes); err != nil {
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
		err = e.element(&first, func(dst []byte) []byte { return appendElement(dst, value) })
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
		if err := e.element(&first, func(dst []byte) []byte { return appendElement(dst, member) }); err != nil {
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
			dst = append(appendElement(append(dst, '['), member), ',')
			return append(appendScore(dst, score), ']')
		})
		return err == nil
	})
	e.buf = append(e.buf, ']')
	return errors.Join(visitErr, err)
}

// element appends one element of an array, after a comma unless it is the
// first.
func (e *exporter) element(first *bool, write func(dst []byte) []byte) error {
	if !*first {
		e.buf = append(e.buf, ',')
	}
	*first = false
	e.buf = write(e.buf)
	return e.spill(spillBytes)
}
