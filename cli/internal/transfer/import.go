package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/structures"
)

// An import goes through the databases by SCAN, gets a page of keys by DUMP, and stores the page in one transaction.
// What SCAN promises holds for it: a key that is there all the time is taken, and may be taken twice.

// pageKeys is how many keys are asked for at a time. A page is held in memory with all values, and its keys are locked
// while it is stored.
const pageKeys = 256

// An importer is an import, or a comparison, under way. Both go through the server's keys in the same way; compare
// decides what is done with a page. A comparison has no state, and begins from the beginning.
type importer struct {
	link
	store   *db.Store
	o       ImportOptions
	state   state
	loaded  bool // state is
	exact   bool // deadlines are
	compare bool
	Result
	started time.Time
	saved   time.Time
}

// Import takes the keys of a server into a store, and its libraries of functions if all of its keys are taken.
func Import(ctx context.Context, store *db.Store, conn *remote.Conn, o ImportOptions) (Result, error) {
	im := &importer{link: link{conn}, store: store, o: o, started: time.Now(), saved: time.Now()}
	err := im.run(ctx)
	if err == nil || ctx.Err() != nil { // what is stored is to be durable before the state says so
		err = errors.Join(err, im.saveState(true))
	}
	return im.Result, err
}

// run goes through the databases, from where the state says. Those without keys when it begins are not looked at. An
// import to a store with fewer namespaces fails at the first database that has none.
func (im *importer) run(ctx context.Context) error {
	only := im.o.Database
	databases, run, err := im.databases(ctx)
	if err == nil {
		im.exact, err = im.knowsExactDeadlines(ctx)
	}
	if err != nil {
		return err
	}
	if only >= 0 {
		databases = []int{only}
	}
	// What the state must agree with, so that it is not gone on with by another import.
	of := importOf{Store: fmt.Sprintf("%x", im.store.Log().StoreID()), Only: only, Match: im.o.Match, Type: im.o.Type}
	if err := im.loadState(run, of); err != nil {
		return err
	}
	im.loaded = true
	if im.o.Match == "" && im.o.Type == "" && only < 0 {
		if err := im.libraries(ctx); err != nil {
			return err
		}
	}
	// Databases before that of the state are done, and the cursor is of that one alone.
	for _, database := range databases {
		if database < im.state.Database {
			continue
		}
		cursor := "0"
		if database == im.state.Database && im.state.Cursor != "" {
			cursor = im.state.Cursor
		}
		if err := im.database(ctx, database, cursor); err != nil {
			return err
		}
	}
	if im.compare {
		return im.strangers(ctx)
	}
	im.state.Done = true
	return nil
}

// libraries takes the libraries of functions, or compares them. They come first, so that an import that is gone on with
// has them too: loading one again replaces it.
func (im *importer) libraries(ctx context.Context) error {
	theirs, err := im.link.libraries(ctx)
	if err != nil {
		return err
	}
	if im.compare {
		return im.compareLibraries(theirs)
	}
	session, err := server.NewSession(im.store, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if err := execute.Library(ctx, session, theirs[name]); err == nil {
			im.Libraries++
		} else if ctx.Err() != nil {
			return ctx.Err()
		} else if err := im.skip(fmt.Errorf("library %s: %w", humanize.Name(name, 60), err)); err != nil {
			return err
		}
	}
	return nil
}

// skip counts and names what cannot be stored, or ends the import, with a word on what is stored by then.
func (im *importer) skip(why error) error {
	return im.o.skip(&im.Result, why, fmt.Errorf("%w (the pages before it are stored; --keep-going skips such keys)", why))
}

// database goes through one database, from a cursor on. The state has the cursor after a page only when the page has
// been stored: an import that goes on repeats a page rather than leave one out.
func (im *importer) database(ctx context.Context, database int, cursor string) error {
	store, err := im.store.Use(database)
	if err != nil {
		return fmt.Errorf("database %d: %w", database, err)
	}
	if _, err := im.Call(ctx, "SELECT", fmt.Sprint(database)); err != nil {
		return err
	}
	for {
		page, err := im.scan(ctx, cursor, im.o.Match, im.o.Type, pageKeys)
		if err != nil {
			return err
		}
		if len(page.keys) > 0 {
			found, err := im.dump(ctx, page.keys, im.exact, func() int64 { return time.Now().UnixMilli() })
			if err != nil {
				return err
			}
			if im.compare {
				err = im.comparePage(store, page.keys, found)
			} else {
				err = im.storePage(store, page.keys, found)
			}
			if err != nil {
				return err
			}
		}
		cursor = page.next
		im.state.Database, im.state.Cursor = database, cursor
		if cursor == "0" {
			im.state.Database, im.state.Cursor = database+1, ""
			return nil
		}
		if err := im.saveState(false); err != nil {
			return err
		}
		if err := im.o.pace(ctx, im.started, &im.Result); err != nil {
			return err
		}
	}
}

// storePage stores a page of keys in one transaction. A key that has gone meanwhile is deleted: an earlier page may
// have had it. The transaction may be run more than once, so what it counts begins anew each time and is added only
// when it has been committed. A payload that cannot be stored skips its key; an error of the store ends the import, and
// nothing of the page is stored.
func (im *importer) storePage(store *db.Store, keys [][]byte, found []dumped) error {
	var refused []error
	var stored, bytes, expired int64
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = string(keys[i])
	}
	err := store.UpdateKeys(names, func(tx *db.Tx) error {
		now := time.Now().UnixMilli()
		refused, stored, bytes, expired = refused[:0], 0, 0, 0
		for i, d := range found {
			key := tx.Key(names[i])
			err := d.refused
			switch {
			case err != nil:
			case d.payload == nil || d.deadline > 0 && d.deadline <= now:
				_, err = key.Delete()
				if expired++; err != nil {
					return err
				}
			default:
				var options []db.WriteOption
				if d.deadline > 0 {
					options = append(options, db.ExpireAt(time.UnixMilli(d.deadline)))
				}
				if err = key.Restore(d.payload, options...); err == nil {
					stored, bytes = stored+1, bytes+int64(len(d.payload))
				}
			}
			if err != nil {
				if d.refused == nil && !isBadPayload(err) { // the store has failed, not the key
					return err
				}
				refused = append(refused, fmt.Errorf("key %s: %w", humanize.Name(names[i], 60), err))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	im.Keys, im.Bytes, im.Expired = im.Keys+stored, im.Bytes+bytes, im.Expired+expired
	for _, why := range refused {
		if err := im.skip(why); err != nil {
			return err
		}
	}
	return nil
}

// isBadPayload reports whether it is the payload that cannot be stored: a module's value, or one of a newer Redis, or
// one that is larger than the store's limits.
func isBadPayload(err error) bool {
	return errors.Is(err, db.ErrPayload) || errors.Is(err, db.ErrBadPayload) || errors.Is(err, structures.ErrTooLong) || errors.Is(err, structures.ErrNameTooLong)
}
