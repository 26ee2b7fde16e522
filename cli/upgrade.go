package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask/dump"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
)

// What a newer program would change about a store. So far there is one version of segments and manifests, so nothing
// that holds data ever has to be rewritten. Hints, INDEX and TTL are made from the log and have had several: one of an
// older version is not read, or read as it is, and written anew.

// upgradeCommand describes stave upgrade. It changes nothing, whatever the name says, so it can be asked at any time,
// also alongside a server.
func upgradeCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:  "upgrade",
		Flags: []cli.Flag{dirFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: onDir(func(c *cli.Context, dir string) error {
			return runUpgrade(t, dir, c.Bool("json"))
		}),
	}
}

// A fileVersion counts the files of one kind and version. derived files are made from the log, so neither an old one
// nor a damaged one is a loss. Current is the version that this program writes.
type fileVersion struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	Current int    `json:"current"`
	Files   int    `json:"files"`
	Damaged bool   `json:"damaged,omitempty"` // the version, which is not what was written
	derived bool
}

// runUpgrade reads the versions, from the headers alone: it opens no store and takes no lock. Only a newer version of
// what holds data is an error, with the status of a store that cannot be opened.
func runUpgrade(t *terminal.Streams, dir string, asJSON bool) error {
	found, err := fileVersions(dir)
	if err != nil {
		return openError(dir, err)
	}
	if len(found) == 0 {
		return openError(dir, errors.New("there is no store in this directory"))
	}
	// A version that a damaged header says is not believed.
	newer := false
	for _, f := range found {
		newer = newer || f.Version > f.Current && !f.derived && !f.Damaged
	}
	if asJSON {
		err = json.NewEncoder(t.Out).Encode(struct {
			Files []fileVersion `json:"files"`
			Newer bool          `json:"newer"`
		}{found, newer})
	} else {
		err = printVersions(t, found)
	}
	if err == nil && newer {
		return failed(exitOpen, fmt.Errorf("%s was written by a newer Stave: use that one, or restore a backup from before", dir))
	}
	return failed(exitCommand, err)
}

// fileVersions reads the versions of all files of a directory that have one, sorted by kind and version. Files that are
// none of a store's are skipped. A file that a merge removes in between is an error: run it again.
func fileVersions(dir string) ([]fileVersion, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	// A fileVersion without its count is the key, so equal files are counted together.
	counts := map[fileVersion]int{}
	for _, e := range entries {
		v, err := dump.VersionOf(filepath.Join(dir, e.Name()))
		// LOCK, remains and files of others have no version.
		if errors.Is(err, dump.ErrUnknown) || e.IsDir() {
			continue
		}
		if err != nil {
			return nil, err
		}
		counts[fileVersion{Kind: v.Kind, Version: v.Version, Current: v.Current, Damaged: v.Damaged, derived: v.Derived}]++
	}
	var list []fileVersion
	for f, n := range counts {
		f.Files = n
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b fileVersion) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Version-b.Version) })
	return list, nil
}

// printVersions prints a row for each kind and version, with what will become of such files, and one sentence that says
// whether anything has to be done.
func printVersions(t *terminal.Streams, found []fileVersion) error {
	table := terminal.NewTable("files", "kind", "version", "")
	old, files, damaged := 0, 0, 0
	for _, f := range found {
		note := "current"
		switch {
		case f.Damaged && f.derived:
			note = "damaged: not read, made from the log"
		case f.Damaged:
			note = "damaged: stave check says more"
		case f.Version > f.Current && f.derived:
			note = fmt.Sprintf("newer than %d: not read, made from the log", f.Current)
		case f.Version > f.Current:
			note = fmt.Sprintf("newer than this program's %d", f.Current)
		case f.Version < f.Current && f.derived:
			note = fmt.Sprintf("older than %d: replaced by a writer", f.Current)
			old += f.Files
		case f.Version < f.Current:
			note = fmt.Sprintf("older than %d: read as it is", f.Current)
			old += f.Files
		}
		files += f.Files
		if f.Damaged {
			damaged += f.Files
		}
		table.Row(humanize.Count(int64(f.Files)), f.Kind, fmt.Sprint(f.Version), note)
	}
	if err := table.Write(t.Out); err != nil {
		return err
	}
	// Damage comes first, then what a writer will replace by itself.
	text := fmt.Sprintf("nothing to upgrade: %s of the present format", humanize.Plural(files, "file"))
	switch {
	case damaged > 0:
		text = fmt.Sprintf("%s with a damaged header", humanize.Plural(damaged, "file"))
	case old > 0:
		text = fmt.Sprintf("nothing to be done: %s of an older format, which the next writer replaces; "+
			"older versions may not open the store after that, so take a backup first (stave backup)", humanize.Plural(old, "file"))
	}
	_, err := fmt.Fprintln(t.Out, text)
	return err
}
