// Package keypages visits the keys of a store for an export: namespace by namespace and in pages, each of which is read
// at one moment.
package keypages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// Options say which keys are visited. The zero value is all of them.
type Options struct {
	// Namespaces are those to be visited, in this order. Default: all that hold keys.
	Namespaces []int
	// Match is a glob pattern for keys. Default: every key.
	Match string
	// Sort puts the keys of a namespace in order, for which all their names are held in memory. Default: the order of
	// the store's hash, and memory for one page of names.
	Sort bool
	// Begin is called before the first page of each namespace. Default: nothing.
	Begin func(store *db.Store) error
}

// pageKeys are read in one view.
const pageKeys = 1000

// A Key is a key that is visited.
type Key struct {
	Name     string
	Type     db.Type
	Deadline int64 // in Unix milliseconds; 0: none
}

// Visit calls visit for each key, with the transaction that it is to be read in. An error of visit, and the context's,
// ends it.
func Visit(ctx context.Context, store *db.Store, o Options, visit func(*db.Tx, Key) error) error {
	if o.Namespaces == nil {
		o.Namespaces = used(store)
	}
	for _, n := range o.Namespaces {
		ns, err := store.Use(n)
		if err != nil {
			return fmt.Errorf("db %d: %w", n, err)
		}
		if o.Begin != nil {
			if err := o.Begin(ns); err != nil {
				return err
			}
		}
		if err := namespace(ctx, ns, o, visit); err != nil {
			return err
		}
	}
	return nil
}

// A Library is a library of functions, which belongs to no namespace.
type Library struct{ Name, Text string }

// Libraries lists those that belong to an export, in order of their names: all if every key is, since a choice of keys
// is none of libraries. The error is db.ErrLibrary for those that damage has left incomplete; the others are listed.
func (o Options) Libraries(store *db.Store) (list []Library, broken error) {
	if o.Namespaces != nil || o.Match != "" {
		return nil, nil
	}
	texts, broken := serverside.DB.Libraries(store)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if texts[name] != "" {
			list = append(list, Library{name, texts[name]})
		}
	}
	return list, broken
}

// used lists the namespaces that hold keys.
func used(store *db.Store) (list []int) {
	for _, ns := range store.Stats().Namespaces {
		if ns.Keys > 0 {
			list = append(list, ns.Namespace)
		}
	}
	slices.Sort(list)
	return list
}

func namespace(ctx context.Context, store *db.Store, o Options, visit func(*db.Tx, Key) error) error {
	if o.Sort {
		return sorted(ctx, store, o, visit)
	}
	names := make([]string, 0, pageKeys)
	for cursor := uint64(0); ; {
		infos, next, err := store.Keyspace().Scan(cursor, db.KeyScanOptions{Match: o.Match, Count: pageKeys})
		if err != nil {
			return err
		}
		names = names[:0]
		for _, info := range infos {
			names = append(names, info.Key)
		}
		if err := page(ctx, store, names, visit); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func sorted(ctx context.Context, store *db.Store, o Options, visit func(*db.Tx, Key) error) error {
	names, err := store.Keyspace().Keys(cmp.Or(o.Match, "*"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for names := range slices.Chunk(names, pageKeys) {
		if err := page(ctx, store, names, visit); err != nil {
			return err
		}
	}
	return nil
}

func page(ctx context.Context, store *db.Store, names []string, visit func(*db.Tx, Key) error) error {
	return store.View(func(tx *db.Tx) error {
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := one(tx, name, visit); err != nil {
				return fmt.Errorf("export %q: %w", name, err)
			}
		}
		return nil
	})
}

// one visits a key, unless it has expired or gone since its name was read.
func one(tx *db.Tx, name string, visit func(*db.Tx, Key) error) error {
	k := Key{Name: name}
	var err error
	if k.Type, err = tx.Key(name).Type(); err != nil || k.Type == db.TypeNone {
		return err
	}
	at, err := tx.Key(name).Deadline()
	if err != nil {
		return err
	}
	if !at.IsZero() {
		k.Deadline = at.UnixMilli()
	}
	return visit(tx, k)
}
