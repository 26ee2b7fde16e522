package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/orphans"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
)

// The commits that only a demoted master had are in files of its store's directory (package orphans has their format). Nothing here
// changes a file: the user decides which of the commits to write again, and deletes the files.

// orphansCommand describes stave orphans. It does not open the store.
func orphansCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "orphans",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.BoolFlag{Name: "json", Usage: "print an object for each file"},
		},
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			if !c.IsSet("dir") && len(args) > 0 {
				if err := takeDir(c, 1); err != nil {
					return err
				}
				args = args[1:]
			}
			dir := chosenDir(c)
			switch {
			case len(args) > 1:
				return usagef("orphans takes a directory and the name of a file in it, or the beginning of one")
			case len(args) == 1 && c.Bool("json"):
				return usagef("--json is of the list: a file is printed as commands")
			case len(args) == 1:
				return orDefault(c, printOrphans(t, dir, args[0]))
			}
			return orDefault(c, listOrphans(t, dir, c.Bool("json")))
		},
	}
}

// orphanFiles are the names of the files of a store, sorted.
func orphanFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, serverside.OrphansDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if orphans.IsName(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// listedOrphan is what --json prints of a file.
type listedOrphan struct {
	Name string `json:"name"`
	orphans.Header
	Error string `json:"error,omitempty"`
}

// listOrphans prints a line for each file. It reads each file whole to verify its checksum. The exit status is 4 if one is damaged.
func listOrphans(t *terminal.Streams, dir string, asJSON bool) error {
	if err := mustBeStore(dir); err != nil && !isDamage(err) {
		return err
	}
	names, err := orphanFiles(dir)
	if err != nil {
		return openError(dir, err)
	}
	damaged := false
	for _, name := range names {
		header, err := readOrphans(dir, name, func([][]byte) error { return nil })
		o := listedOrphan{Name: name, Header: header}
		if err != nil {
			o.Error, damaged = err.Error(), true
		}
		if asJSON {
			err = json.NewEncoder(t.Out).Encode(o)
		} else {
			_, err = fmt.Fprintln(t.Out, o.line())
		}
		if err != nil {
			return failed(exitCommand, err)
		}
	}
	if damaged {
		return &exitError{status: exitDamage}
	}
	return nil
}

func (o *listedOrphan) line() string {
	if o.Error != "" {
		return o.Name + "  DAMAGED: " + string(terminal.Safe([]byte(o.Error)))
	}
	line := fmt.Sprintf("%s  %s  %s, %s", o.Name, o.Time.Format(time.RFC3339), humanize.Plural(o.Commands, "command"), humanize.Size(o.To-o.From))
	switch {
	case o.Before > 0:
		line += fmt.Sprintf("; %s before that are lost", humanize.Size(o.Before))
	case o.Before == orphans.Unknown:
		line += "; the new master may have a part of it"
	}
	return line
}

// readOrphans calls fn with each command of a file.
func readOrphans(dir, name string, fn func(args [][]byte) error) (header orphans.Header, err error) {
	f, err := os.Open(filepath.Join(dir, serverside.OrphansDir, name))
	if err != nil {
		return header, err
	}
	defer closeInto(&err, f.Close)
	r, err := orphans.NewReader(f)
	if err != nil {
		return header, err
	}
	for {
		args, err := r.Next()
		if err == io.EOF {
			return r.Header, nil
		}
		if err == nil {
			err = fn(args)
		}
		if err != nil {
			return r.Header, err
		}
	}
}

// printOrphans prints the commands of a file, each a line as redis-cli and stave exec read them. It prints nothing of a file that
// is damaged.
func printOrphans(t *terminal.Streams, dir, beginning string) error {
	names, err := orphanFiles(dir)
	if err != nil {
		return openError(dir, err)
	}
	found := ""
	for _, name := range names {
		switch {
		case !strings.HasPrefix(name, beginning):
		case found != "" && name != beginning:
			return usagef("%q is the beginning of %s and of %s", beginning, found, name)
		default:
			found = name
		}
	}
	if found == "" || beginning == "" {
		return failed(exitOpen, fmt.Errorf("orphans %s: no file begins with %q: stave orphans %s lists them", dir, beginning, dir))
	}
	if _, err := readOrphans(dir, found, func([][]byte) error { return nil }); err != nil {
		return failed(exitDamage, fmt.Errorf("orphans %s: %s: %w", dir, found, err))
	}
	out := bufio.NewWriterSize(t.Out, 64<<10)
	var line []byte
	_, err = readOrphans(dir, found, func(args [][]byte) error {
		line = line[:0]
		for i, arg := range args {
			if i > 0 {
				line = append(line, ' ')
			}
			if plainArgument.Match(arg) {
				line = append(line, arg...)
			} else {
				line = resp.AppendQuoted(line, arg)
			}
		}
		_, err := out.Write(append(line, '\n'))
		return err
	})
	return failed(exitCommand, errors.Join(err, out.Flush()))
}

// plainArgument is what needs no quotes.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_:.,/@+-]+$`)
