package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/inspect"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
)

// Stats has the figures that cost nothing; inspect looks at every key. Package inspect looks and draws. The store is
// opened for reading only, as it is at this moment, so a server may write to it meanwhile.

// inspectCommand describes stave inspect. At most one of --json and --html chooses a form; without them it draws for a
// terminal, or plainly for a file.
func inspectCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "inspect",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.IntFlag{Name: "biggest", Value: 10, Usage: "list the `N` biggest keys, and as many groups"},
			&cli.BoolFlag{Name: "json", Usage: "print all of it as one JSON object"},
			&cli.StringFlag{Name: "html", Usage: "write the new file `FILE`, a page for a browser"},
			quietFlag(),
		},
		Action: onDir(func(c *cli.Context, dir string) error {
			switch n := c.Int("biggest"); {
			case n < 1 || n > 1000:
				return usagef("--biggest must be 1 to 1000, not %d", n)
			case c.Bool("json") && c.String("html") != "":
				return usagef("--json and --html exclude each other")
			}
			return runInspect(t, dir, c)
		}),
	}
}

// runInspect looks at a store and prints, or writes, what it found. Interrupted, it prints nothing: half of a report
// would be wrong in every line.
func runInspect(t *terminal.Streams, dir string, c *cli.Context) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	// The bar counts keys, of which the store knows how many there are.
	quiet := c.Bool("quiet")
	bar := t.Progress(quiet || c.Bool("json"), "inspect", int64(store.Stats().Keys))
	seen, err := inspect.Look(ctx, store, c.Int("biggest"), func(keys int) { bar.Update(int64(keys), 0, int64(keys)) })
	bar.Clear()
	switch {
	case ctx.Err() != nil:
		t.Complain(errors.New("interrupted"))
		return ctx.Err()
	case err != nil:
		return failed(exitCommand, fmt.Errorf("inspect %s: %w", dir, err))
	}
	// JSON is not cut to the screen and has no colours: it is the same wherever it goes.
	switch file := c.String("html"); {
	case c.Bool("json"):
		err = json.NewEncoder(t.Out).Encode(seen)
	case file == "":
		_, err = t.Out.Write(inspect.Picture{Width: t.Width(), Color: t.Color(), Plain: t.Dumb()}.Draw(seen))
	default:
		if err = writePage(file, seen); err == nil && !quiet {
			_, err = fmt.Fprintf(t.Out, "wrote %s\n", file)
		}
	}
	return failed(exitCommand, err)
}

// writePage writes the page as a new file: a report never replaces what is there. It is made in memory first, so a page
// that cannot be made leaves no file; one that cannot be written whole leaves what there is of it, with the error.
func writePage(file string, seen *inspect.Report) (err error) {
	page, err := inspect.Page(seen)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: choose another name, or delete it", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(page)
	return errors.Join(err, f.Close())
}
