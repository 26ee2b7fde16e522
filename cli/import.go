package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/fileimport"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
)

// An import of files: package fileimport recognises the format and does it; here are the options, the opening of files
// and the report. import_redis.go is the import from a running server.
//
// The store is made if it is not there. Unless --sync says otherwise it is synced once, when it is closed: until then a
// power cut may take all of the import, which can be repeated.

// importCommand describes stave import. Its help is also the description of the lines, for authors
// of such files.
func importCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "import",
		Flags: append(append(csvFlags(), redisFlags()...),
			dirFlag(),
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Usage: "import lines that name no namespace into `N`"},
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "skip bad lines and keys, and go on"},
			syncFlag("none"),
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		),
		Action: func(c *cli.Context) error {
			// The forms: --from URL [DIR], FILE, and DIR FILE.
			switch {
			case c.String("from") != "" && c.NArg() <= 1:
				if err := takeDir(c, c.NArg()); err != nil {
					return err
				}
				return runRedisImport(t, c, chosenDir(c))
			case c.String("from") != "":
				return usagef("with --from there is no FILE")
			case checkRedisFlags(c) != nil:
				return checkRedisFlags(c)
			case c.NArg() == 1:
				return runImport(t, c, chosenDir(c), c.Args().First())
			case c.NArg() == 2 && !c.IsSet("dir"):
				return runImport(t, c, c.Args().Get(0), c.Args().Get(1))
			}
			return usagef("import needs one FILE, or - for the standard input")
		},
	}
}

// csvFlags say how a table becomes keys. --key-template alone makes a file a table; the others are about one that is.
// The option --type is shared with --from, where it is the type of keys.
func csvFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "key-template", Usage: "the file is CSV with a header: a row's key is `TEMPLATE`, such as user:{id}, with its cells in the place of {column}"},
		&cli.StringFlag{Name: "type", Value: "hash", Usage: "what a row of CSV becomes: `T` is hash (of all columns), string, list, set or zset; with --from: only keys of this type"},
		&cli.StringFlag{Name: "value", Usage: "the `COLUMN` that has the string, the element or the member"},
		&cli.StringFlag{Name: "score", Usage: "the `COLUMN` that has the score"},
		&cli.StringFlag{Name: "separator", Value: ",", Usage: "the `CHARACTER` between cells of CSV; tab for a tab"},
	}
}

// runImport imports one file. The file is opened, and its format recognised, before the store is, so that a misspelt
// name makes no store. The store is closed before the result is reported: what does not get to the disk was not
// imported. The time that is reported has the closing in it.
func runImport(t *terminal.Streams, c *cli.Context, dir, name string) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	in, err := openInput(ctx, t, manifestIn(name))
	if err != nil {
		return err
	}
	defer in.closing()
	table, err := tableOf(c, in)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, t, dir, c.String("sync"))
	if err != nil {
		return err
	}
	// A manifest has a bar for each of its files, a table reads its header before, anything else is one file.
	started := time.Now()
	var result fileimport.Result
	switch {
	case in.Format == fileimport.Manifest:
		result, err = importParts(ctx, t, c, store, in)
	case table != nil:
		o, bar := importOptions(t, c, in.size)
		result, err = table.Import(ctx, store, o)
		bar.Clear()
	default:
		o, bar := importOptions(t, c, in.size)
		result, err = in.Import(ctx, store, o)
		bar.Clear()
	}
	err = importError(err)
	if closeInto(&err, store.Close); err != nil {
		return err
	}
	result.Seconds = time.Since(started).Seconds()
	return reportImport(t, c, in.Name, result)
}

// importError gives an error of an import its status. That an option does not fit the file, such as a column that there
// is not, is found out by package fileimport, and is an error of usage all the same.
func importError(err error) error {
	if e, ok := errors.AsType[*fileimport.OptionError](err); ok {
		return usagef("--%s: %w", e.Option, e.Err)
	}
	return failed(statusOf(err), err)
}

// tableOf reads the header of a table, and checks the options that say what the file is. The table is nil if the file
// is none. CSV cannot be told from lines by its first bytes, so it is --key-template that says it.
func tableOf(c *cli.Context, in *input) (*fileimport.Table, error) {
	separator := []rune(strings.ReplaceAll(c.String("separator"), "tab", "\t"))
	o := fileimport.TableOptions{Key: c.String("key-template"), Type: c.String("type"), Value: c.String("value"), Score: c.String("score")}
	switch {
	case in.Format != fileimport.Lines && c.IsSet("db"):
		return nil, usagef("--db is for files of lines: %s names its databases", in.Name)
	case !c.IsSet("key-template"):
		return nil, nil
	case in.Format != fileimport.Lines:
		return nil, usagef("--key-template is for CSV, which %s is not", in.Name)
	case len(separator) != 1 || strings.ContainsRune("\"\r\n\uFFFD", separator[0]):
		return nil, usagef("--separator must be one character, or tab, not %q", c.String("separator"))
	case !slices.Contains([]string{"hash", "string", "list", "set", "zset"}, o.Type):
		return nil, usagef("--type must be hash, string, list, set or zset, not %q", o.Type)
	case o.Type == "hash" && o.Value != "":
		return nil, usagef("--value does not go with --type hash")
	case o.Type != "zset" && o.Score != "":
		return nil, usagef("--score does not go with --type %s", o.Type)
	}
	o.Separator = separator[0]
	table, err := in.Table(o)
	return table, importError(err)
}

// importOptions are those of one file, with its bar, which counts the bytes of the file; size is 0 where there is no
// end to be known, as of a pipe.
func importOptions(t *terminal.Streams, c *cli.Context, size int64) (fileimport.Options, *terminal.Progress) {
	bar := t.Progress(c.Bool("quiet"), "import", size)
	return fileimport.Options{
		Namespace: c.Int("db"), KeepGoing: c.Bool("keep-going"), Warn: t.Complain,
		Progress: func(bytes, keys int64) { bar.Update(bytes, bytes, keys) },
	}, bar
}

// An input is a file that is open to be imported. Its reader ends with closing, or with the context: also if the import
// ends early. The goroutine of a reader that waits for a terminal stays until the process ends, for such a read cannot
// be interrupted.
type input struct {
	*fileimport.Source
	size    int64 // in bytes; 0: unknown
	closing func()
}

// openInput opens a file, or the standard input for "-", and recognises its format, which reads its beginning. The
// caller must call closing. A read that waits, as of a pipe or a terminal, ends when ctx does.
func openInput(ctx context.Context, t *terminal.Streams, name string) (*input, error) {
	file, size, err := terminal.OpenInput(t, name)
	if err != nil {
		return nil, failed(exitCommand, err)
	}
	// The reader has a goroutine, which ends with this context: a read of a pipe cannot be interrupted otherwise.
	reading, done := context.WithCancel(ctx)
	in := &input{size: size, closing: func() {
		done()
		file.Close()
	}}
	if in.Source, err = fileimport.Open(cmp.Or(strings.TrimPrefix(name, "-"), "stdin"), terminal.NewReader(reading, file)); err != nil {
		in.closing()
		return nil, failed(exitCommand, err)
	}
	return in, nil
}

// importParts imports the files that a manifest lists, in the order in which Redis would load them. The first that
// fails ends it; the sum is of what was imported until then.
func importParts(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, manifest *input) (sum fileimport.Result, err error) {
	names, err := manifest.Parts()
	for _, name := range names {
		result, err := importPart(ctx, t, c, store, name)
		if sum.Add(result); err != nil {
			return sum, err
		}
	}
	return sum, err
}

// importPart imports one of them. An empty file of commands has no format to be recognised and is imported as nothing.
func importPart(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, name string) (r fileimport.Result, err error) {
	part, err := openInput(ctx, t, name)
	if err != nil {
		return r, err
	}
	defer part.closing()
	if part.Format != fileimport.RDB && part.Format != fileimport.Commands && part.size > 0 {
		return r, fmt.Errorf("%s: neither an RDB file nor commands", name)
	}
	o, bar := importOptions(t, c, part.size)
	defer bar.Clear()
	return part.Import(ctx, store, o)
}

// manifestIn returns the path of the manifest in a directory of an AOF, and any other path as it is. Redis keeps one
// manifest there; with several nobody but the operator knows which one counts, and the error is that of opening a
// directory.
func manifestIn(path string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path
	}
	if found, err := filepath.Glob(filepath.Join(path, "*.manifest")); err == nil && len(found) == 1 {
		return found[0]
	}
	return path
}

// librariesText is what a sentence that counts keys goes on with; nothing without libraries, which most stores have
// none of.
func librariesText(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 library"
	}
	return ", " + humanize.Count(n) + " libraries"
}

// reportImport prints the result, and is an error if something was skipped: the status says so then, and what was
// skipped has been named on the standard error.
func reportImport(t *terminal.Streams, c *cli.Context, name string, r fileimport.Result) error {
	if err := report(t.Out, c.Bool("json"), c.Bool("quiet"), r, importedText(name, r)); err != nil {
		return err
	}
	if r.Skipped > 0 || len(r.LeftOut) > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}

// importedText says what an import did. Counts that are zero are left out; JSON has them all. Bytes are those of the
// file, not of the store.
func importedText(name string, r fileimport.Result) string {
	var text strings.Builder
	text.WriteString("imported " + humanize.Plural(r.Keys, "key"))
	text.WriteString(librariesText(r.Libraries))
	if r.Commands > 0 {
		text.WriteString(" and ran " + humanize.Plural(r.Commands, "command"))
	}
	fmt.Fprintf(&text, " from %s (%s) in %s", name, humanize.Size(r.Bytes), humanize.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if r.Expired > 0 {
		fmt.Fprintf(&text, "; %s had expired", humanize.Count(r.Expired))
	}
	if r.Skipped > 0 {
		text.WriteString("; skipped " + humanize.Plural(r.Skipped, r.Unit))
	}
	return text.String()
}
