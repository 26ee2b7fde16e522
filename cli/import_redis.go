package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/fileimport"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/structures"
)

// An import from a running Redis: SCAN finds the keys, DUMP and PEXPIRETIME have what they hold, a page at a time. It asks nothing else of the
// server, so it works with any that has these commands. The server goes on being written to: each key is as it was when its page was read,
// and --verify, once writing has stopped, says which ones have changed since.

// maxComplaints is how many keys, or commands, are named one by one.
const maxComplaints = 100

// redisPage is how many keys are asked for at a time.
const redisPage = 256

// redisFlags are the options about a running Redis that import has.
func redisFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "import from the running Redis at `URL`: redis://HOST:PORT/DB"},
		&cli.StringFlag{Name: "match", Usage: "with --from: only keys that match the glob `PATTERN`"},
		&cli.IntFlag{Name: "rate", Usage: "with --from: at most `N` keys a second", DefaultText: "no limit"},
		&cli.StringFlag{Name: "state", Usage: "with --from: note the progress in `FILE`, and go on from there"},
		&cli.BoolFlag{Name: "verify", Usage: "with --from: import nothing, compare every key with the store"},
	}
}

// checkRedisFlags refuses options that have nothing to do with each other.
func checkRedisFlags(c *cli.Context) error {
	if c.String("from") == "" {
		for _, name := range []string{"match", "rate", "state", "verify"} {
			if c.IsSet(name) {
				return usagef("--%s needs --from", name)
			}
		}
		return nil
	}
	switch {
	case c.IsSet("key-template"):
		return usagef("--key-template is for CSV, and --from for a running Redis")
	case c.Int("rate") < 0:
		return usagef("--rate must not be negative")
	case c.Bool("verify") && c.IsSet("state"):
		return usagef("--verify compares all keys: it has no --state")
	}
	return nil
}

// A redisState is where an import stands, as --state keeps it. A cursor of SCAN is one for a run of a server.
type redisState struct {
	Run string `json:"run"`
	importOf
	Database int    `json:"database"`
	Cursor   string `json:"cursor"`
	Done     bool   `json:"done"`
}

// importOf is what an import takes, and to where: another one cannot go on from its state.
type importOf struct {
	Store string `json:"store"` // its id
	Only  int    `json:"only"`  // database; -1: all
	Match string `json:"match"`
	Type  string `json:"type"`
}

// A redisImport is an import, or a comparison, under way.
type redisImport struct {
	*terminal.Streams
	link       *redisLink
	store      *db.Store
	match, typ string
	rate       int
	stateFile  string
	state      redisState
	loaded     bool // state is
	exact      bool // deadlines are
	keepGoing  bool
	compare    bool
	bar        *terminal.Progress
	result     fileimport.Result
	differ     int64
	started    time.Time
	saved      time.Time
}

// runRedisImport imports from a running Redis, or compares with it.
func runRedisImport(t *terminal.Streams, c *cli.Context, dir string) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	if err := checkRedisFlags(c); err != nil {
		return err
	}
	link, database, err := openLink(ctx, c.String("from"))
	if err != nil {
		return err
	}
	defer link.close()
	im := &redisImport{
		Streams: t, link: link, match: c.String("match"), rate: c.Int("rate"), stateFile: c.String("state"), keepGoing: c.Bool("keep-going"),
		compare: c.Bool("verify"), started: time.Now(), saved: time.Now(), bar: t.Progress(c.Bool("quiet"), "import", 0),
	}
	if c.IsSet("type") {
		im.typ = c.String("type")
	}
	im.result.Unit = "key"
	if im.compare {
		im.store, err = openExisting(ctx, t, dir, &db.Options{ReadOnly: true})
	} else {
		im.store, err = openStore(ctx, t, dir, c.String("sync"))
	}
	if err != nil {
		return err
	}
	err = im.run(ctx, database)
	im.bar.Clear()
	if ctx.Err() != nil { // what the connection says of it is no news
		err = ctx.Err()
		t.Complain(fmt.Errorf("interrupted after %s%s", humanize.Plural(im.result.Keys, "key"), im.resumeHint()))
	}
	if err == nil || ctx.Err() != nil { // what is stored is to be durable before the state says so
		err = errors.Join(err, im.saveState(true))
	}
	if closeInto(&err, im.store.Close); err != nil {
		return err
	}
	return im.report(c)
}

func (im *redisImport) resumeHint() string {
	if im.stateFile == "" {
		return "; with --state FILE the next import would go on from there"
	}
	return "; the next import with --state " + im.stateFile + " goes on from there"
}

// report says what was done.
func (im *redisImport) report(c *cli.Context) error {
	im.result.Seconds = time.Since(im.started).Seconds()
	if !im.compare {
		return reportImport(im.Streams, c, "redis", im.result)
	}
	var err error
	switch {
	case c.Bool("json"):
		err = json.NewEncoder(im.Out).Encode(map[string]int64{"keys": im.result.Keys, "different": im.differ})
	case !c.Bool("quiet") || im.differ > 0:
		_, err = fmt.Fprintf(im.Out, "compared %s in %s: %d differ\n", humanize.Plural(im.result.Keys, "key"), humanize.Duration(time.Since(im.started)), im.differ)
	}
	if err == nil && im.differ > 0 {
		return &exitError{status: exitPartial}
	}
	return failed(exitCommand, err)
}

// run goes through the databases, from where the state says.
func (im *redisImport) run(ctx context.Context, only int) error {
	databases, run, err := im.link.databases(ctx)
	if err == nil {
		im.exact, err = im.link.knowsExactDeadlines(ctx)
	}
	if err != nil {
		return failed(statusOf(err), err)
	}
	if only >= 0 {
		databases = []int{only}
	}
	of := importOf{Store: fmt.Sprintf("%x", im.store.Log().StoreID()), Only: only, Match: im.match, Type: im.typ}
	if err := im.loadState(run, of); err != nil {
		return failed(exitCommand, err)
	}
	im.loaded = true
	if im.match == "" && im.typ == "" && only < 0 {
		if err := im.libraries(ctx); err != nil {
			return err
		}
	}
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
		return im.strangers(ctx, only)
	}
	im.state.Done = true
	return nil
}

// libraries takes the libraries of functions, or compares them.
func (im *redisImport) libraries(ctx context.Context) error {
	theirs, err := im.link.libraries(ctx)
	if err != nil {
		return failed(statusOf(err), err)
	}
	if im.compare {
		ours, err := im.store.Libraries()
		if err != nil {
			return failed(exitCommand, err)
		}
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			if _, ok := ours[name]; !ok {
				im.differs(fmt.Errorf("library %s is on one side only", humanize.Name(name, 60)))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			switch other, ok := theirs[name]; {
			case !ok:
				im.differs(fmt.Errorf("library %s is in the store only", humanize.Name(name, 60)))
			case other != ours[name]:
				im.differs(fmt.Errorf("library %s has another text", humanize.Name(name, 60)))
			}
		}
		return nil
	}
	session, err := server.NewSession(im.store, nil)
	if err != nil {
		return failed(exitCommand, err)
	}
	defer session.Close()
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if err := execute.Library(session, theirs[name]); err == nil {
			im.result.Libraries++
		} else if err := im.skip(fmt.Errorf("library %s: %w", humanize.Name(name, 60), err)); err != nil {
			return err
		}
	}
	return nil
}

// skip names what cannot be stored, and counts it; without --keep-going it ends the import.
func (im *redisImport) skip(why error) error {
	if !im.keepGoing {
		return failed(exitCommand, fmt.Errorf("%w (the pages before it are stored; --keep-going skips such keys)", why))
	}
	if im.result.Skipped++; im.result.Skipped <= maxComplaints {
		im.bar.Clear()
		im.Complain(why)
	}
	return nil
}

// database goes through one database.
func (im *redisImport) database(ctx context.Context, database int, cursor string) error {
	store, err := im.store.Use(database)
	if err != nil {
		return failed(exitCommand, fmt.Errorf("database %d: %w", database, err))
	}
	if _, err := im.link.call(ctx, "SELECT", fmt.Sprint(database)); err != nil {
		return failed(statusOf(err), err)
	}
	for {
		page, err := im.link.scan(ctx, cursor, im.match, im.typ, redisPage)
		if err != nil {
			return failed(statusOf(err), err)
		}
		if len(page.keys) > 0 {
			found, err := im.link.dump(ctx, page.keys, im.exact, func() int64 { return time.Now().UnixMilli() })
			if err != nil {
				return failed(statusOf(err), err)
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
			return failed(exitCommand, err)
		}
		im.bar.Update(0, im.result.Bytes, im.result.Keys)
		if err := im.pace(ctx); err != nil {
			return err
		}
	}
}

// pace waits until so many keys are due.
func (im *redisImport) pace(ctx context.Context) error {
	if im.rate <= 0 {
		return ctx.Err()
	}
	due := im.started.Add(time.Duration(float64(im.result.Keys) / float64(im.rate) * float64(time.Second)))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(due)):
		return nil
	}
}

// storePage stores a page of keys in one transaction. A key that has gone meanwhile is deleted: an earlier page may have had it.
func (im *redisImport) storePage(store *db.Store, keys [][]byte, found []dumped) error {
	type refusal struct {
		key string
		err error
	}
	var refused []refusal
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
				refused = append(refused, refusal{names[i], err})
			}
		}
		return nil
	})
	if err != nil {
		return failed(exitCommand, err)
	}
	im.result.Keys, im.result.Bytes, im.result.Expired = im.result.Keys+stored, im.result.Bytes+bytes, im.result.Expired+expired
	for _, r := range refused {
		if err := im.skip(fmt.Errorf("key %s: %w", humanize.Name(r.key, 60), r.err)); err != nil {
			return err
		}
	}
	return nil
}

// isBadPayload reports whether it is the payload that cannot be stored: a module's value, or one of a newer Redis.
func isBadPayload(err error) bool {
	return errors.Is(err, db.ErrPayload) || errors.Is(err, db.ErrBadPayload) || errors.Is(err, structures.ErrTooLong) || errors.Is(err, structures.ErrNameTooLong)
}

// loadState reads where an earlier import stopped. A cursor of another run of the server, or one that came to its end, is no use.
func (im *redisImport) loadState(run string, of importOf) error {
	im.state = redisState{Run: run, importOf: of}
	if im.stateFile == "" {
		return nil
	}
	text, err := os.ReadFile(im.stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var before redisState
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("%s is not the state of an import: %w", im.stateFile, err)
	}
	if before.Run != run || before.Done {
		im.Complain(fmt.Errorf("%s is of an import that has ended, or of another run of the server: starting from the beginning", im.stateFile))
		return nil
	}
	if before.importOf != of {
		return fmt.Errorf("%s is of an import to another store, or of other keys (database, --match, --type): give this one a file of its own", im.stateFile)
	}
	im.state = before
	return nil
}

// saveState notes where the import stands, every few seconds and at its end, after all of it is on disk.
func (im *redisImport) saveState(now bool) error {
	const interval = 2 * time.Second
	if im.stateFile == "" || !im.loaded || im.compare || !now && time.Since(im.saved) < interval {
		return nil
	}
	im.saved = time.Now()
	if err := im.store.Sync(); err != nil {
		return failed(exitCommand, err)
	}
	text, err := json.Marshal(im.state)
	if err == nil {
		err = os.WriteFile(im.stateFile+".new", append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(im.stateFile+".new", im.stateFile)
	}
	return failed(exitCommand, err)
}
