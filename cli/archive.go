package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// The place of an archive is a directory, or a URL with a scheme that the program has a driver for. A server keeps an archive
// up to date as long as it runs; stave archive does it once, for a store that no server has open.

// archiveCommand describes stave archive. Its arguments are the store, which --dir or the default may name instead, and the
// archive, in the order of backup. The statuses: 1 if the archive could not be written, 3 if the store could not be opened.
func archiveCommand(t *terminal.Streams, p *Program) *cli.Command {
	return &cli.Command{
		Name:  "archive",
		Flags: []cli.Flag{dirFlag(), &cli.BoolFlag{Name: "json", Usage: "print the result as JSON"}, quietFlag()},
		Action: func(c *cli.Context) error {
			place := ""
			if n := c.NArg(); n > 0 {
				place = c.Args().Get(n - 1)
			}
			if place == "" {
				return usagef("archive takes the place of the archive, and before it the directory of the store, unless --dir names it")
			}
			if err := takeDir(c, c.NArg()-1); err != nil {
				return err
			}
			return runArchive(t, p, chosenDir(c), place, c.Bool("json"), c.Bool("quiet"))
		},
	}
}

// archiveWithin is for how long an archive may refuse everything before the command gives up.
const archiveWithin = 5 * time.Second

// archiveReport is what --json prints.
type archiveReport struct {
	archive.Status
	Took time.Duration `json:"took_ns"`
}

// runArchive archives what the archive has not yet. Nothing is deleted from it: for how long it keeps what is a setting of
// the server. Interrupted, it leaves what the next run goes on with.
func runArchive(t *terminal.Streams, p *Program, dir, place string, asJSON, quiet bool) (err error) {
	to, err := p.archiveOf(place, dir)
	if err != nil {
		return err
	}
	ctx, stop := t.Interruptible()
	defer stop()
	started := time.Now()
	store, err := openExisting(ctx, t, dir, &db.Options{NoMerge: true, ExpireEvery: -1, Archive: &archive.Options{To: to}})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	st, err := waitArchived(ctx, store)
	if ctx.Err() != nil && err != nil {
		t.Complain(errors.New("interrupted; the next run goes on from here"))
		return err
	}
	if err != nil {
		return failed(exitCommand, fmt.Errorf("archive %s: %w", place, err))
	}
	took := time.Since(started)
	return report(t.Out, asJSON, quiet, archiveReport{st, took}, fmt.Sprintf("archived all up to sequence %d in %s: %s has %s (%s)",
		st.Sequence, humanize.Duration(took.Round(time.Microsecond)), place, humanize.Plural(st.Objects, "object"), humanize.Size(st.Bytes)))
}

// waitArchived waits until the archive has all of a store, or refuses it.
func waitArchived(ctx context.Context, store *db.Store) (st archive.Status, err error) {
	works := time.Now()
	for {
		st = *store.Stats().Archive
		switch {
		case st.Behind == 0 && st.Bases > 0 && st.Err == "":
			return st, nil
		case st.Err == "":
			works = time.Now()
		case time.Since(works) > archiveWithin:
			return st, errors.New(st.Err)
		}
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// isURL says whether a place is not a directory.
func isURL(place string) bool { return strings.Contains(place, "://") }

// driven opens the archive at a URL. Nothing is contacted, so all that can be wrong is the URL.
func (p *Program) driven(url string) (archive.Store, error) {
	scheme, _, _ := strings.Cut(url, "://")
	if open := p.Archives[scheme]; open != nil {
		to, err := open(url)
		return to, failed(exitUsage, err)
	}
	takes := "a directory"
	for _, scheme := range slices.Sorted(maps.Keys(p.Archives)) {
		takes += ", or " + scheme + "://..."
	}
	if len(p.Archives) == 0 {
		takes += "; stave-s3, the program in contrib/s3, takes s3://BUCKET/PREFIX as well"
	}
	return nil, usagef("archive %s: there is no driver for %s:// here. An archive is %s", withoutUser(url), scheme, takes)
}

// withoutUser is a URL without what is before an @: it may be a secret.
func withoutUser(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	if at := strings.LastIndexByte(url, '@'); at >= 0 {
		return scheme + "://" + url[at+1:]
	}
	return url
}

// archiveOptions are those of the archive of a store that is served; nil if it has none.
func (p *Program) archiveOptions(config *server.Config) (*archive.Options, error) {
	place := config.Get("archive")
	if place == "" {
		return nil, nil
	}
	to, err := p.archiveOf(place, config.Get("dir"))
	if err != nil {
		return nil, err
	}
	keep, err := strconv.ParseInt(config.Get("archive-keep"), 10, 64)
	bytes, err2 := strconv.ParseInt(config.Get("archive-keep-bytes"), 10, 64)
	return &archive.Options{To: to, Keep: time.Duration(keep) * time.Second, KeepBytes: bytes}, errors.Join(err, err2)
}

// archiveOf opens the archive for the store in dir.
func (p *Program) archiveOf(place, dir string) (archive.Store, error) {
	if isURL(place) {
		return p.driven(place)
	}
	if inside(place, dir) {
		return nil, usagef("the archive cannot be in the directory of the store: choose a place outside %s, best on another disk", dir)
	}
	to, err := archive.OpenDirectory(absolute(place))
	if err != nil {
		return nil, failed(exitOpen, err)
	}
	return to, nil
}

// existingArchive opens an archive that is to be read.
func (p *Program) existingArchive(place string) (archive.Store, error) {
	if isURL(place) {
		return p.driven(place)
	}
	if _, err := os.Stat(place); err != nil {
		return nil, failed(exitOpen, err)
	}
	from, err := archive.OpenDirectory(place)
	if err != nil {
		return nil, failed(exitOpen, err)
	}
	return from, nil
}
