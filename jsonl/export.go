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
	"github.com/stavedb/stave/internal/keypages"
)

// ExportOptions say what an export writes. The zero value is everything.
type ExportOptions struct {
	// Namespaces are those to be exported, in this order, without libraries of functions, which are in none. Default:
	// all that hold keys, and the libraries.
	Namespaces []int
	// Match is a glob pattern for keys; libraries are not exported then. Default: every key.
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
	Keys      int64
	Libraries int64 // of functions
	Bytes     int64
	// Broken is db.ErrLibrary with the names of libraries that damage has left incomplete, which are left out; nil if
	// there are none.
	Broken error
}

// Export writes the libraries of functions and the keys of a store to w, a line each. The fields of a hash and the
// members of a set are sorted, so that two exports of the same key are the same
// line. w gets large writes; an error of it ends the export.
//
// An export whose context ends returns the context's error; the last line it wrote
// is whole.
func Export(ctx context.Context, store *db.Store, w io.Writer, o ExportOptions) (ExportResult, error) {
	e := &exporter{out: bufio.NewWriterSize(w, outBytes), o: o}
	pages := keypages.Options{Namespaces: o.Namespaces, Match: o.Match, Sort: o.Sort}
	err := e.libraries(pages.Libraries(store))
	if err == nil {
		err = keypages.Visit(ctx, store, pages, e.key)
	}
	if flushErr := e.out.Flush(); err == nil {
		err = flushErr
	}
	return e.result, err
}

// An exporter writes one store.
type exporter struct {
	o      ExportOptions
	out    *bufio.Writer
	buf    []byte // of the line at work, as far as it is not in out
	value  []byte // scratch
	result ExportResult
}

const (
	outBytes   = 256 << 10 // gather for one write
	spillBytes = 64 << 10  // of one line gather before they go to out
)

// libraries exports the libraries.
func (e *exporter) libraries(list []keypages.Library, broken error) error {
	e.result.Broken = broken
	for _, library := range list {
		e.buf = appendElement(append(e.buf[:0], `{"library":`...), library.Name)
		e.buf = append(appendStringValue(e.buf, []byte(library.Text)), "}\n"...)
		if err := e.spill(0); err != nil {
			return err
		}
		e.result.Libraries++
	}
	return nil
}

// key exports one key.
func (e *exporter) key(tx *db.Tx, key keypages.Key) error {
	if e.o.Progress != nil {
		e.o.Progress(e.result.Bytes, e.result.Keys)
	}
	e.result.Keys++
	e.buf = appendHead(e.buf[:0], tx.Namespace(), key.Name, key.Type.String(), key.Deadline)
	if err := e.content(tx, key.Type, key.Name); err != nil {
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
func (e *exporter) content(tx *db.Tx, kind db.Type, key string) (err error) {
	switch kind {
	case db.TypeString:
		if e.value, err = tx.String(key).AppendTo(e.value[:0]); err == nil {
			e.buf = appendStringValue(e.buf, e.value)
		}
		return err
	case db.TypeHash:
		return e.hash(tx.Hash(key))
	case db.TypeList:
		return e.list(tx.List(key))
	case db.TypeSet:
		return e.set(tx.Set(key))
	case db.TypeSortedSet:
		return e.sortedSet(tx.SortedSet(key))
	case db.TypeStream:
		return e.writeStream(tx.Stream(key))
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
			return append(AppendScore(dst, score), ']')
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
