// Package keyimport stores the keys that an import reads, whatever the format of its source: in batches, each of them
// one commit, and a large collection in pieces. A source only decodes: it makes an [Item] of each key.
//
// A key replaces what the store had under its name, and is stored whole or not at all. One that the store refuses is
// rolled back alone, and the source decides whether the import goes on; a store that takes nothing ends it. An import
// that is killed in the middle of a large collection leaves a part of it, without its deadline.
package keyimport

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/serverside"
)

// A batch of items becomes one commit. It ends at whichever limit comes first; a collection beyond largeBytes takes
// several commits of its own.
const (
	batchItems = 1000
	batchBytes = 4 << 20
	largeBytes = 16 << 20

	// While others use the store, fewer items are stored at once: their keys are locked meanwhile.
	shadowItems = 128
	shadowBytes = 256 << 10
)

// An Item is a key to be stored, or a piece of one whose value is large, or a library of functions, whose text is its
// value. Its Offset is its place in the source: a byte, or a line.
type Item struct {
	rdb.Entry
	Library bool
}

// expired reports whether the deadline of a key has passed.
func (it *Item) expired(now int64) bool { return it.Deadline != 0 && it.Deadline <= now }

// Options are a source's part of an import.
type Options struct {
	// Refused is called with an item that is not stored, after all items before it have been, and why. If it returns
	// nil, the item is skipped; otherwise the import ends with what it returns.
	Refused func(it *Item, reason error) error
	// Failed words why a store takes nothing: err is of the commit of these items.
	Failed func(items []Item, err error) error
	// Library stores a library, after all items before it. Its error refuses the library. Default: it is stored as it
	// is.
	Library func(name, text string) error
	// Shadows stores the keys in the shadows of their namespaces (serverside.DB.BeginLoading), also those whose deadline
	// has passed, while others read the store: a batch is small, and locks its keys alone. Default: in the namespaces.
	Shadows bool
}

// A Result counts what an import did.
type Result struct {
	Keys      int64 // stored
	Libraries int64 // stored
	Expired   int64 // keys whose deadline had passed
	Skipped   int64 // items that Refused let pass
}

// An Importer stores items. Those that were added and not yet flushed are not in the store. It is not safe for
// concurrent use.
type Importer struct {
	target *db.Store
	o      Options
	result Result

	batch []Item
	bytes int // of the batch

	part     *Item // the key of which a part is stored; nil: none
	skipping bool  // the rest of a large value is not wanted
}

// New returns an importer into a store.
func New(store *db.Store, o Options) *Importer { return &Importer{target: store, o: o} }

// Result returns the counts so far.
func (im *Importer) Result() Result { return im.result }

// Add adds an item, and flushes when a batch is full. A large value is stored at once. An error ends the import.
func (im *Importer) Add(it Item) error {
	if it.Library && im.o.Library != nil || !it.First || !it.Last {
		return im.addAlone(it)
	}
	bytes := sizeOf(&it.Value)
	if pieces := cut(&it, bytes); len(pieces) > 1 {
		for i := range pieces {
			if err := im.addPiece(&pieces[i]); err != nil {
				return err
			}
		}
		return nil
	}
	im.batch = append(im.batch, it)
	most, mostBytes := batchItems, batchBytes
	if im.o.Shadows {
		most, mostBytes = shadowItems, shadowBytes
	}
	if im.bytes += bytes; len(im.batch) < most && im.bytes < mostBytes {
		return nil
	}
	return im.Flush()
}

// addAlone adds an item that is no part of a batch.
func (im *Importer) addAlone(it Item) error {
	if it.Library && im.o.Library != nil {
		return im.library(&it)
	}
	return im.addPiece(&it)
}

// update runs fn in a transaction that may touch the keys of the items, and gives it the moment up to which deadlines have
// passed.
func (im *Importer) update(items []Item, fn func(tx *db.Tx, now int64) error) error {
	if !im.o.Shadows {
		return im.target.Update(func(tx *db.Tx) error {
			serverside.DB.SetRollsBack(tx)
			return fn(tx, time.Now().UnixMilli())
		})
	}
	names := make([]string, len(items))
	for i := range items {
		names[i] = string(items[i].Name)
	}
	return im.target.UpdateKeys(names, func(tx *db.Tx) error {
		serverside.DB.Apply(tx)
		serverside.DB.SetRollsBack(tx)
		return fn(tx, 0)
	})
}

// in returns the transaction in the namespace of a database.
func (im *Importer) in(tx *db.Tx, database uint64) (_ *db.Tx, err error) {
	ns := int(min(database, math.MaxInt32))
	if im.o.Shadows {
		tx, err = serverside.DB.Shadow(tx, ns)
	} else {
		tx, err = tx.Use(ns)
	}
	if err != nil {
		return nil, fmt.Errorf("db %d: %w", database, err)
	}
	return tx, nil
}

// library has the source store a library.
func (im *Importer) library(it *Item) error {
	if err := im.Flush(); err != nil {
		return err
	}
	if err := im.o.Library(string(it.Name), string(it.Value.Elements[0])); err != nil {
		return im.refused(it, err)
	}
	im.result.Libraries++
	return nil
}

// Refuse treats an item that the source found to be bad as one that the store refuses. An error ends the import.
func (im *Importer) Refuse(it Item, reason error) error {
	if err := im.Flush(); err != nil {
		return err
	}
	return im.refused(&it, reason)
}

func (im *Importer) refused(it *Item, reason error) error {
	if err := im.o.Refused(it, reason); err != nil {
		return err
	}
	im.result.Skipped++
	return nil
}

// Flush commits the items added so far. Of a large value whose last piece has not been added nothing stays. If a commit
// fails, Refused is not asked: the items after it would fare no better.
func (im *Importer) Flush() error {
	if err := im.drop(); err != nil {
		return err
	}
	batch := im.batch
	im.batch, im.bytes = im.batch[:0], 0
	defer clear(batch)
	for len(batch) > 0 {
		stored, refused, err := im.commit(batch)
		if err != nil {
			return im.o.Failed(batch, err)
		}
		if refused == nil {
			return nil
		}
		if err := im.refused(&batch[stored], refused); err != nil {
			return err
		}
		batch = batch[stored+1:]
	}
	return nil
}

// commit stores items in one commit, up to the first that is refused.
func (im *Importer) commit(batch []Item) (stored int, refused, err error) {
	var sum Result
	err = im.update(batch, func(tx *db.Tx, now int64) error {
		stored, refused, sum = 0, nil, im.result
		for i := range batch {
			mark := tx.Savepoint()
			if refused = im.put(tx, &batch[i], now); refused != nil {
				return tx.RollbackTo(mark)
			}
			stored++
			switch {
			case batch[i].Library:
				sum.Libraries++
			case batch[i].expired(now):
				sum.Expired++
			default:
				sum.Keys++
			}
		}
		return nil
	})
	if err == nil {
		im.result = sum
	}
	return stored, refused, err
}

// addPiece stores a piece of a large value in a commit of its own. If one is refused, or cannot be committed, those
// before it are deleted again; what the key held before is gone.
func (im *Importer) addPiece(it *Item) error {
	if it.First {
		if err := im.Flush(); err != nil {
			return err
		}
		im.skipping = false
	}
	if im.skipping {
		return nil
	}
	var refused error
	var moment int64
	err := im.update([]Item{*it}, func(tx *db.Tx, now int64) error {
		moment = now
		refused = im.put(tx, it, now)
		return refused
	})
	switch {
	case err != nil:
		im.skipping = true
		if dropped := im.drop(); refused == nil || dropped != nil {
			return im.o.Failed([]Item{*it}, errors.Join(err, dropped))
		}
		return im.refused(it, refused)
	case it.First && it.expired(moment):
		im.skipping = true
		im.result.Expired++
	case it.Last:
		im.part = nil
		im.result.Keys++
	default:
		im.part = it
	}
	return nil
}

// drop deletes the key of which a part is stored.
func (im *Importer) drop() error {
	part := im.part
	if im.part = nil; part == nil {
		return nil
	}
	return im.update([]Item{*part}, func(tx *db.Tx, _ int64) error {
		tx, err := im.in(tx, part.Database)
		if err != nil {
			return err
		}
		_, err = tx.Key(string(part.Name)).Delete()
		return err
	})
}

// each is about how much memory a string takes besides its bytes.
const each = 24

// elements calls visit with about how much memory each element of a value takes.
func elements(v *rdb.Value, visit func(bytes int)) {
	if v.Kind == rdb.StreamKind {
		for _, e := range v.Stream.Entries {
			bytes := each
			for _, field := range e.Fields {
				bytes += len(field) + each
			}
			visit(bytes)
		}
		return
	}
	for element := range slices.Chunk(v.Elements, width(v)) {
		bytes := 0
		for _, s := range element {
			bytes += len(s) + each
		}
		visit(bytes)
	}
}

// width is how many of a value's strings are one element.
func width(v *rdb.Value) int {
	if v.Kind == rdb.Hash {
		return 2
	}
	return 1
}

func sizeOf(v *rdb.Value) (bytes int) {
	elements(v, func(n int) { bytes += n })
	return bytes
}

// cut divides an item of so many bytes into pieces of about largeBytes, if it is larger and has several elements.
func cut(it *Item, bytes int) (pieces []Item) {
	if bytes <= largeBytes {
		return nil
	}
	start, end, size := 0, 0, 0
	add := func() {
		piece := *it
		piece.Value = part(it.Value, start, end)
		piece.First, piece.Last = start == 0, false
		pieces = append(pieces, piece)
		start, size = end, 0
	}
	elements(&it.Value, func(n int) {
		if end++; size+n >= largeBytes {
			add()
			return
		}
		size += n
	})
	if start < end {
		add()
	}
	pieces[len(pieces)-1].Last = true
	return pieces
}

// part is some elements of a value.
func part(v rdb.Value, from, to int) rdb.Value {
	if v.Kind == rdb.StreamKind {
		s := *v.Stream
		s.Entries = s.Entries[from:to]
		v.Stream = &s
		return v
	}
	n := width(&v)
	v.Elements = v.Elements[from*n : to*n]
	if v.Scores != nil {
		v.Scores = v.Scores[from:to]
	}
	if v.Deadlines != nil {
		v.Deadlines = v.Deadlines[from:to]
	}
	return v
}
