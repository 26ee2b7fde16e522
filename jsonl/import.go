package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/lines"
)

// A batch of lines becomes one commit. It ends at whichever limit comes first; a
// collection beyond largeBytes takes several commits of its own.
const (
	batchLines = 1000
	batchBytes = 4 << 20
	largeBytes = 16 << 20
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
	// Progress is called after each line with the bytes read and the keys stored so far. It must be
	// quick. Default: none.
	Progress func(bytes, keys int64)
}

// An ImportResult is what an import did.
type ImportResult struct {
	Keys    int64 // lines stored
	Expired int64 // lines whose deadline had passed
	Skipped int64 // lines that BadLine let pass
	Bytes   int64 // read; only Import counts them
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
			im.o.Progress(in.Bytes(), im.result.Keys)
		}
	}
}

// An Importer stores lines of JSON in batches. Lines that were added and not yet
// flushed are not in the store. It is not safe for concurrent use.
type Importer struct {
	target *db.Store
	o      ImportOptions
	parser parser
	result ImportResult

	batch      []pendingLine
	batchBytes int
}

// A pendingLine waits for its batch to be committed.
type pendingLine struct {
	keyLine
	number int
}

// NewImporter returns an importer into store. It calls o.BadLine, but not
// o.Progress.
func NewImporter(store *db.Store, o ImportOptions) *Importer {
	return &Importer{target: store, o: o}
}

// Result returns the counts so far.
func (im *Importer) Result() ImportResult { return im.result }

// SetNamespace sets the namespace of the lines that are added from now on and name none.
func (im *Importer) SetNamespace(namespace int) { im.o.Namespace = namespace }

// Add adds a line, and flushes when a batch is full. The number is for messages. The
// line may be used again after Add returns. An error ends the import.
func (im *Importer) Add(number int, line []byte) error {
	l, err := im.parser.parse(line, im.o.Namespace, time.Now().UnixMilli())
	if err != nil {
		return im.Refuse(number, err)
	}
	p := pendingLine{l, number}
	if len(line) > largeBytes && l.kind != "string" {
		if err := im.Flush(); err != nil {
			return err
		}
		return im.storeLarge(p)
	}
	im.batch = append(im.batch, p)
	im.batchBytes += len(line)
	if len(im.batch) >= batchLines || im.batchBytes >= batchBytes {
		return im.Flush()
	}
	return nil
}

// Refuse treats a line that the caller found to be bad as Add treats one: it flushes
// and asks BadLine. An error ends the import.
func (im *Importer) Refuse(number int, reason error) error {
	if err := im.Flush(); err != nil {
		return err
	}
	return im.bad(number, reason)
}

func (im *Importer) bad(number int, reason error) error {
	e := &LineError{number, reason}
	if im.o.BadLine == nil {
		return e
	}
	if err := im.o.BadLine(e); err != nil {
		return err
	}
	im.result.Skipped++
	return nil
}

// Flush commits the lines added so far. A line that the store refuses is rolled back
// alone and treated like a bad line; the ones before it stay. If the commit itself
// fails, the error is a *LineError of the first line that is not stored, and BadLine
// is not asked: the lines after it would fare no better.
func (im *Importer) Flush() error {
	batch := im.batch
	im.batch, im.batchBytes = im.batch[:0], 0
	for len(batch) > 0 {
		stored, refused, err := im.commit(batch)
		if err != nil {
			first, last := batch[0].number, batch[len(batch)-1].number
			return &LineError{first, fmt.Errorf("storing lines %d to %d: %w", first, last, err)}
		}
		if refused == nil {
			return nil
		}
		if err := im.bad(batch[stored].number, refused); err != nil {
			return err
		}
		batch = batch[stored+1:]
	}
	return nil
}

// commit stores lines in one commit, up to the first that is refused.
func (im *Importer) commit(batch []pendingLine) (stored int, refused, err error) {
	var keys, expired int64
	err = im.target.Update(func(tx *db.Tx) error {
		stored, refused, keys, expired = 0, nil, 0, 0
		now := time.Now().UnixMilli()
		for i := range batch {
			mark := tx.Savepoint()
			if refused = batch[i].store(tx, now); refused != nil {
				tx.RollbackTo(mark)
				return nil
			}
			stored++
			if batch[i].expired(now) {
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

// storeLarge stores a collection that is too large for one commit in pieces. If one of them is refused, or cannot be committed, those
// before it are deleted again; what the key held before is gone. An import that is killed in between leaves the key without
// its later elements and without its deadline; importing the line again replaces it.
func (im *Importer) storeLarge(p pendingLine) error {
	pieces := pieces(p.elements, largeBytes)
	if p.expired(time.Now().UnixMilli()) {
		pieces = [][]element{nil}
	}
	for i, piece := range pieces {
		refused, err := im.commitPiece(p, piece, i == 0, i == len(pieces)-1)
		if i > 0 && (refused != nil || err != nil) {
			err = errors.Join(err, im.target.Update(func(tx *db.Tx) error {
				_, err := p.clear(tx)
				return err
			}))
		}
		if err != nil {
			return &LineError{p.number, fmt.Errorf("storing it: %w", errors.Join(refused, err))}
		}
		if refused != nil {
			return im.bad(p.number, refused)
		}
	}
	if len(pieces[0]) == 0 {
		im.result.Expired++
	} else {
		im.result.Keys++
	}
	return nil
}

// commitPiece stores some elements of a large collection in one commit. refused is why the store does not take them, err why it takes
// nothing.
func (im *Importer) commitPiece(p pendingLine, piece []element, first, last bool) (refused, err error) {
	store := func(tx *db.Tx) (err error) {
		if first {
			tx, err = p.clear(tx)
		} else {
			tx, err = tx.Use(p.namespace)
		}
		if err != nil {
			return err
		}
		if err := p.storeElements(tx, piece); err != nil || !last {
			return err
		}
		return p.storeDeadlines(tx)
	}
	err = im.target.Update(func(tx *db.Tx) error {
		refused = store(tx)
		return refused
	})
	if refused != nil {
		return refused, nil
	}
	return nil, err
}
