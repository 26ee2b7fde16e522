package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/dump"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/ttl"
)

// The records of one file, for who wants to see what is really there. The store is not opened: the file may be the only
// one that is left. Package bitcask/dump reads segments, hints, the INDEX and the manifest; the TTL file is package
// ttl's and so it is read here. Damage is a line like the others and the walk goes on after it where it can; the status
// says in the end that there was some.

// dumpCommand describes stave dump. The argument is a file and not a store. Its status is 4 if there was damage in it,
// 3 if it could not be read or is of a newer version.
func dumpCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "dump",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "values", Value: 60, Usage: "show `N` bytes of each value"},
			&cli.BoolFlag{Name: "json", Usage: "print each line as JSON; bytes that are not text are escaped as in the shell"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("dump takes one file")
			}
			if c.Int("values") < 0 {
				return usagef("--values must not be negative")
			}
			return runDump(t, c.Args().First(), c.Int("values"), c.Bool("json"))
		},
	}
}

// A dumpLine is a line of --json. Key, Element and Value are nil where the item has none, which is not the same as
// empty: an empty value is "". Offset and Bytes are of the file; Length is that of the whole value, of which Value may
// be the beginning.
type dumpLine struct {
	Offset   int64   `json:"offset"`
	Bytes    int64   `json:"bytes"`
	What     string  `json:"what"`
	Sequence uint64  `json:"sequence,omitempty"`
	Space    uint32  `json:"space,omitempty"`
	Type     string  `json:"type,omitempty"`
	Key      *string `json:"key,omitempty"`
	Element  *string `json:"element,omitempty"`
	Value    *string `json:"value,omitempty"`
	Length   int     `json:"value_bytes,omitempty"`
	Text     string  `json:"text,omitempty"`
}

// runDump prints a file. Lines that are no longer wanted end it, as with head. The header says which kind of file it is,
// but for the TTL file, which is known by its name.
func runDump(t *terminal.Streams, file string, values int, asJSON bool) error {
	ctx, stop := t.Interruptible()
	defer stop()
	out := bufio.NewWriterSize(t.Out, 64<<10)
	// Damage is noted as it is shown, for it is no error of the walk.
	damaged := false
	show := func(i dump.Item) error {
		damaged = damaged || i.What == dump.Damage
		if asJSON {
			return json.NewEncoder(out).Encode(dumpJSON(i, values))
		}
		_, err := fmt.Fprintln(out, dumpText(i, values))
		return err
	}
	walk := dump.File
	if filepath.Base(file) == ttl.FileName {
		walk = dumpTTL
	}
	err := walk(ctx, file, show)
	if flushed := out.Flush(); err == nil && flushed != nil {
		return failed(exitCommand, flushed)
	}
	// The error of a file that cannot be opened names it already: the name is said once.
	path, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case ctx.Err() != nil:
		t.Complain(errors.New("interrupted"))
		return ctx.Err()
	case isPath && path.Path == file:
		return failed(exitOpen, fmt.Errorf("dump %s: %w", file, path.Err))
	case err != nil:
		return failed(exitOpen, fmt.Errorf("dump %s: %w", file, err))
	case damaged:
		return &exitError{status: exitDamage}
	}
	return nil
}

// dumpText is the line of an item: offset, length, kind, and then only what the item has. Names and values are quoted
// as in the shell, and the whole line is made safe for a terminal, for texts may quote bytes of a damaged file. values
// is how many bytes of a value are shown.
func dumpText(i dump.Item, values int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10d %8d  %-9s", i.Offset, i.Bytes, i.What)
	if i.Sequence > 0 {
		fmt.Fprintf(&b, " seq %d", i.Sequence)
	}
	if i.Space > 0 {
		fmt.Fprintf(&b, " space %d", i.Space)
	}
	if i.Key != nil {
		// The type is left out where it says nothing, or no more than the kind.
		if i.Type != "none" && i.Type != i.What {
			b.WriteString(" " + i.Type)
		}
		b.WriteString(" " + string(resp.AppendQuoted(nil, i.Key)))
		if i.Element != nil {
			b.WriteString(" " + string(resp.AppendQuoted(nil, i.Element)))
		}
	}
	if len(i.Value) > 0 {
		b.WriteString(" = " + string(resp.AppendQuoted(nil, i.Value[:min(len(i.Value), values)])))
		if len(i.Value) > values {
			fmt.Fprintf(&b, "... %s", humanize.Plural(len(i.Value), "byte"))
		}
	}
	if i.Text != "" {
		b.WriteString(" " + i.Text)
	}
	return string(terminal.Safe([]byte(b.String())))
}

// dumpJSON is the object of an item. JSON has no bytes: what is not UTF-8 is written as the shell quotes it, and cannot
// be told from a text that looks so. A value may be cut within a character, and is then quoted too.
func dumpJSON(i dump.Item, values int) dumpLine {
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		if !utf8.Valid(b) {
			s = string(resp.AppendQuoted(nil, b))
		}
		return &s
	}
	line := dumpLine{Offset: i.Offset, Bytes: i.Bytes, What: i.What, Sequence: i.Sequence, Space: i.Space, Key: text(i.Key), Element: text(i.Element), Length: len(i.Value), Text: i.Text}
	if i.Key != nil {
		line.Type = i.Type
	}
	if i.Value != nil {
		line.Value = text(i.Value[:min(len(i.Value), values)])
	}
	return line
}

// dumpTTL shows a TTL file. Package ttl verifies all of it before it shows anything. The file names the store that it
// belongs to, which ttl.Read compares with the one that it is asked for: here that is the file's own, bytes 12 to 27 of
// the header. The mark of the log in the header is what the deadlines are up to.
func dumpTTL(ctx context.Context, file string, show func(dump.Item) error) error {
	head := make([]byte, 28)
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	n, err := f.ReadAt(head, 0)
	info, statErr := f.Stat()
	if err := errors.Join(statErr, f.Close()); err != nil {
		return err
	}
	if n < len(head) {
		return show(dump.Item{What: dump.Damage, Bytes: int64(n), Text: fmt.Sprintf("too short for a header: %v", err)})
	}
	mark, entries, err := ttl.Read(vfs.OS(), filepath.Dir(file), [16]byte(head[12:]))
	if corrupt, ok := errors.AsType[*ttl.CorruptError](err); ok {
		return show(dump.Item{What: dump.Damage, Offset: corrupt.Offset, Bytes: info.Size() - corrupt.Offset, Text: corrupt.Reason})
	}
	// An older version is no error: it is made again from the log. A newer one is, as for every other kind of file.
	if errors.Is(err, ttl.ErrVersion) {
		v, err := dump.VersionOf(file)
		text := fmt.Sprintf("TTL of version %d", v.Version)
		switch {
		case err != nil:
			return err
		case v.Version < v.Current:
			return show(dump.Item{What: "header", Bytes: info.Size(), Text: text + ": of an older version, which is made again"})
		}
		return errors.Join(show(dump.Item{What: dump.Newer, Bytes: info.Size(), Text: text}), fmt.Errorf("a newer version of Stave wrote it: %s: %w", text, bitcask.ErrVersion))
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("TTL of store %x: %s, up to sequence %d, in segment %d at %d", head[12:], humanize.Plural(len(entries), "deadline"), mark.Sequence, mark.Segment, mark.Length)
	if err := show(dump.Item{What: "header", Bytes: 80, Text: text}); err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := show(dump.Item{What: "deadline", Space: e.Namespace, Type: "deadline", Key: []byte(e.Key), Text: time.UnixMilli(e.Deadline).UTC().Format(time.RFC3339Nano)}); err != nil {
			return err
		}
	}
	return nil
}
