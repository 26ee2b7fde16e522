package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/keyimport"
	"github.com/stavedb/stave/internal/lines"
	"github.com/stavedb/stave/internal/rdb"
)

// ImportOptions configure an import. The zero value works.
type ImportOptions struct {
	// Namespace is that of lines that name none. Default: 0.
	Namespace int
	// BadLine is called with each line that cannot be imported, in order, after all
	// lines before it have been stored. If it returns nil, the line is skipped;
	// otherwise the import ends with what it returns. Default: the import ends with the
	// *LineError.
	BadLine func(*LineError) error
	// Library is called with each library of functions, after all lines before it have been stored. An error means that
	// the line is a bad one. Default: the text is stored under its name as it is; a server that opens the store reports
	// what it cannot load.
	Library func(name, text string) error
	// Progress is called after each line with the bytes read and the keys stored so far. It must be
	// quick. Default: none.
	Progress func(bytes, keys int64)
}

// An ImportResult is what an import did.
type ImportResult struct {
	Keys      int64 // stored
	Libraries int64 // of functions, stored
	Expired   int64 // lines whose deadline had passed
	Skipped   int64 // lines that BadLine let pass
	Bytes     int64 // read; only Import counts them
}

// A LineError is a line that could not be imported.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// Import stores the lines of r in order. Each replaces whatever its key held. Blank
// lines and lines that start with # are skipped.
//
// Whatever the error, every good line before the one it names is stored. An import
// whose context ends stores the lines it has read and returns the context's error.
// An r that blocks is not interrupted.
func Import(ctx context.Context, store *db.Store, r io.Reader, o ImportOptions) (ImportResult, error) {
	im := NewImporter(store, o)
	in := lines.NewReader(r)
	err := im.readAll(ctx, in)
	result := im.Result()
	result.Bytes = in.Bytes()
	return result, err
}

func (im *Importer) readAll(ctx context.Context, in *lines.Reader) error {
	for {
		line, err := in.Next()
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), im.Flush())
		}
		if errors.Is(err, io.EOF) {
			return im.Flush()
		}
		if err != nil {
			return errors.Join(err, im.Flush())
		}
		if lines.Skip(line) {
			continue
		}
		if err := im.Add(in.Number(), line); err != nil {
			return err
		}
		if im.o.Progress != nil {
			im.o.Progress(in.Bytes(), im.engine.Result().Keys)
		}
	}
}

// An Importer stores lines of JSON in batches. Lines that were added and not yet
// flushed are not in the store. It is not safe for concurrent use.
type Importer struct {
	o      ImportOptions
	engine *keyimport.Importer
	parser parser
}

// NewImporter returns an importer into store. It calls o.BadLine, but not
// o.Progress.
func NewImporter(store *db.Store, o ImportOptions) *Importer {
	return &Importer{o: o, engine: keyimport.New(store, keyimport.Options{
		Refused: func(it *keyimport.Item, reason error) error {
			bad := &LineError{int(it.Offset), reason}
			if o.BadLine == nil {
				return bad
			}
			return o.BadLine(bad)
		},
		Failed: func(items []keyimport.Item, err error) error {
			first, last := items[0].Offset, items[len(items)-1].Offset
			return &LineError{int(first), fmt.Errorf("storing lines %d to %d: %w", first, last, err)}
		},
		Library: o.Library,
	})}
}

// Result returns the counts so far.
func (im *Importer) Result() ImportResult {
	r := im.engine.Result()
	return ImportResult{Keys: r.Keys, Libraries: r.Libraries, Expired: r.Expired, Skipped: r.Skipped}
}

// SetNamespace sets the namespace of the lines that are added from now on and name none.
func (im *Importer) SetNamespace(namespace int) { im.o.Namespace = namespace }

// Add adds a line, and flushes when a batch is full. The number is for messages. The
// line may be used again after Add returns. An error ends the import.
//
// A line that the store refuses is rolled back alone and treated like a bad line; the ones before it stay. Of a
// collection that takes several commits no part stays then, nor what the key held before.
func (im *Importer) Add(number int, line []byte) error {
	l, err := im.parser.parse(line, im.o.Namespace, time.Now().UnixMilli())
	if err != nil {
		return im.Refuse(number, err)
	}
	l.Offset = int64(number)
	return im.engine.Add(l.Item)
}

// Refuse treats a line that the caller found to be bad as Add treats one: it flushes
// and asks BadLine. An error ends the import.
func (im *Importer) Refuse(number int, reason error) error {
	return im.engine.Refuse(keyimport.Item{Entry: rdb.Entry{Offset: int64(number)}}, reason)
}

// Flush commits the lines added so far. If the commit itself
// fails, the error is a *LineError of the first line that is not stored, and BadLine
// is not asked: the lines after it would fare no better.
func (im *Importer) Flush() error { return im.engine.Flush() }
