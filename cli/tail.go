package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/structures"
)

// The commits of a store as lines of JSON, for programs that keep something else in step with it. What a line shows is
// on the disk, so no line is ever taken back; package feed says how that is known. Nothing here knows of a server: the
// directory is read.

// A line is an object {"sequence":N,"changes":[...]}: N is the last sequence number of the commit, and what --since
// takes to go on after it. A commit of which nothing is to be shown has no line. The forms of values are those of stave
// export, so that a reader of one can read the other.

// tailCommand describes stave tail. --since is what a program keeps of the last line that it has dealt with; without it
// the last commits are shown, for a person.
func tailCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "tail",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.Uint64Flag{Name: "since", Usage: "begin after the commit with sequence number `SEQ`; 0: with the first", DefaultText: "the last commits"},
			&cli.IntFlag{Name: "last", Value: 10, Usage: "without --since: begin with the last `N` commits"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with the commits that come"},
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Value: -1, Usage: "show changes of namespace `N` alone", DefaultText: "all"},
			&cli.StringFlag{Name: "match", Usage: "show changes of the keys that match the glob `PATTERN`, and of whole namespaces"},
		},
		Action: onDir(func(c *cli.Context, dir string) error {
			o := tailOptions{since: c.Uint64("since"), follow: c.Bool("follow"), db: c.Int("db"), match: c.String("match")}
			switch {
			case c.IsSet("db") && o.db < 0:
				return usagef("--db must not be negative")
			case c.IsSet("since") && c.IsSet("last"):
				return usagef("--since and --last both say where to begin")
			case c.Int("last") < 0:
				return usagef("--last must not be negative")
			case !c.IsSet("since"):
				o.last = max(c.Int("last"), 1)
				o.none = c.Int("last") == 0
			}
			return runTail(t, dir, o)
		}),
	}
}

// tailOptions say which commits to show, and of those which changes. since counts if last is 0; otherwise the last so
// many commits that are there are the first that are shown.
type tailOptions struct {
	since  uint64
	last   int
	none   bool // of the commits that are there
	follow bool
	db     int // below 0: all
	match  string
}

// runTail shows commits until there are no more, or it is interrupted. The output is flushed whenever there is nothing
// more to be shown for now: a reader at the other end of a pipe has everything before it waits. With --last 0 the
// newest commit is looked up, to know where to begin, and not shown.
func runTail(t *terminal.Streams, dir string, o tailOptions) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	if err := mustBeStore(dir); err != nil {
		return err
	}
	// The feed takes no lock: it reads what another process writes, as far as that is on disk.
	from, err := bitcask.OpenFeed(ctx, dir, bitcask.FeedOptions{After: o.since, Newest: o.last})
	if err != nil {
		return tailError(ctx, t, dir, o, err, true)
	}
	defer closeInto(&err, from.Close)
	out := bufio.NewWriterSize(t.Out, 64<<10)
	for {
		err := showCommits(ctx, from, out, o)
		if flushed := out.Flush(); flushed != nil {
			return failed(exitCommand, flushed)
		}
		// --last 0 leaves out what was there at the beginning, and nothing that comes.
		o.none = false
		if err == nil && o.follow {
			err = from.Wait(ctx)
		}
		if err != nil || !o.follow {
			return tailError(ctx, t, dir, o, err, false)
		}
	}
}

// showCommits shows what there is by now. One line's buffer is used for all, unless a large commit has made it so large
// that it is better given back.
func showCommits(ctx context.Context, from *feed.Feed, out *bufio.Writer, o tailOptions) error {
	var line []byte
	for {
		c, err := from.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var shown bool
		if line, shown = appendCommit(line[:0], c, o); !shown || o.none {
			continue
		}
		if _, err := out.Write(line); err != nil {
			return failed(exitCommand, err)
		}
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}

// tailError gives an error its status, and says what to do: each way in which commits can be missing has an answer that
// loses nothing, most often an export and the number to go on with. With --follow an interrupt is the usual end and no
// error. opening is whether the error is of the beginning.
func tailError(ctx context.Context, t *terminal.Streams, dir string, o tailOptions, err error, opening bool) error {
	missing, exit := (*feed.MissingCommitsError)(nil), (*exitError)(nil)
	future := (*feed.FutureError)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && o.follow:
		return nil // the way to end it
	case ctx.Err() != nil:
		t.Complain(errors.New("interrupted; to go on, use --since with the sequence number of the last line"))
		return ctx.Err()
	case errors.As(err, &exit):
		return err
	// Merges have removed records of commits after --since: what is left of those commits would be half of them.
	case errors.As(err, &missing):
		return failed(exitCommand, fmt.Errorf("tail %s: %w; take a stave export, then go on with --since %d", dir, missing, missing.From))
	// The number is larger than any of this store: it is of another one, or this one was restored from a backup.
	case errors.As(err, &future):
		return failed(exitCommand, fmt.Errorf("tail %s: %w; --since 0 begins with the first commit, or take a stave export", dir, future))
	case errors.Is(err, bitcask.ErrReplaced):
		return failed(exitCommand, fmt.Errorf("tail %s: %w: stave tail %s --last 1 shows its last number; take a stave export then, and go on with --since and that number",
			dir, bitcask.ErrReplaced, dir))
	case isDamage(err):
		return failed(exitDamage, fmt.Errorf("tail %s: %w; stave check DIR says how much is damaged, stave repair DIR --out NEW copies what is left", dir, err))
	case opening || errors.Is(err, bitcask.ErrVersion): // also of a segment that a newer program has made since
		return openError(dir, err)
	}
	return failed(exitCommand, fmt.Errorf("tail %s: %w", dir, err))
}

// appendCommit appends the line of a commit, if any of its changes is to be shown. If not, the line is of no use but for
// its memory.
func appendCommit(dst []byte, c *feed.Commit, o tailOptions) (line []byte, shown bool) {
	dst = strconv.AppendUint(append(dst, `{"sequence":`...), c.Last, 10)
	dst = append(dst, `,"changes":[`...)
	for i := range c.Changes {
		ch := &c.Changes[i]
		if !o.shows(ch) {
			continue
		}
		if shown {
			dst = append(dst, ',')
		}
		shown = true
		dst = appendChange(dst, ch)
	}
	return append(dst, "]}\n"...), shown
}

// shows reports whether a change is to be shown. One of a whole namespace concerns its keys, whatever their names are,
// and a swap concerns both namespaces. Libraries belong to none, so a choice of keys leaves them out.
func (o *tailOptions) shows(ch *feed.Change) bool {
	in := o.db < 0 || ch.Namespace == o.db
	switch ch.Op {
	case feed.OpFlush:
		return in
	case feed.OpSwap:
		return in || ch.With == o.db
	case feed.OpLibrary: // in none of the namespaces
		return o.db < 0 && o.match == ""
	}
	return in && (o.match == "" || structures.Match(o.match, ch.Key))
}

// appendChange appends a change as an object. Members that are the same for nearly all changes are left out: db is
// there only if it is not 0, but always where a whole namespace is meant. expire_at_ms is Unix time in milliseconds.
func appendChange(dst []byte, ch *feed.Change) []byte {
	dst = append(append(append(dst, `{"op":"`...), ch.Op...), '"')
	number := func(name string, n int64) {
		dst = strconv.AppendInt(append(append(append(dst, ',', '"'), name...), '"', ':'), n, 10)
	}
	text := func(name string, value []byte) { dst = appendMember(append(dst, ','), name, value) }
	if ch.Op == feed.OpLibrary {
		text("library", ch.Key)
		if len(ch.Value) > 0 {
			text("value", ch.Value)
		}
		return append(dst, '}')
	}
	// A change of a whole namespace has no key, and so says which namespace even if it is 0.
	whole := ch.Op == feed.OpFlush || ch.Op == feed.OpSwap
	if ch.Namespace != 0 || whole {
		number("db", int64(ch.Namespace))
	}
	switch ch.Op {
	case feed.OpFlush:
		return append(dst, '}')
	case feed.OpSwap:
		number("with", int64(ch.With))
		return append(dst, '}')
	}
	text("key", ch.Key)
	if ch.Type != "" {
		text("type", []byte(ch.Type))
	}
	switch ch.Op {
	case feed.OpPut, feed.OpRemove, feed.OpRemoveRange:
		dst = appendElement(dst, ch)
	case feed.OpExpire, feed.OpPersist:
		if ch.Element != nil {
			text("field", ch.Element)
		}
		if ch.Op == feed.OpExpire {
			number("expire_at_ms", ch.ExpireAt)
		}
	case feed.OpLength:
		number("length", ch.Length)
	case feed.OpStream:
		text("first", []byte(ch.First))
		text("last", []byte(ch.Last))
		text("deleted", []byte(ch.Deleted))
		dst = strconv.AppendUint(append(dst, `,"added":`...), ch.Added, 10)
	}
	return append(dst, '}')
}

// appendPlace appends where an element of a list is: its index, and the sub-index of one that was inserted.
func appendPlace(dst []byte, name string, index int64, sub uint64) []byte {
	dst = strconv.AppendInt(append(append(append(dst, `,"`...), name...), `":`...), index, 10)
	if sub > 0 {
		dst = strconv.AppendUint(append(append(append(dst, `,"`...), name...), `_sub":`...), sub, 10)
	}
	return dst
}

// appendElement appends which element it is, and what it holds; of one that is removed only the former. An index of a
// list is the element's place in the store, which stays when others come and go, and not what LINDEX takes. A long
// string comes by chunks: offset and chunk_size are in bytes.
func appendElement(dst []byte, ch *feed.Change) []byte {
	put := ch.Op == feed.OpPut
	text := func(name string, value []byte) { dst = appendMember(append(dst, ','), name, value) }
	switch ch.Type {
	case "hash":
		text("field", ch.Element)
	case "list":
		dst = appendPlace(dst, "index", ch.Index, ch.Sub)
		if ch.Op == feed.OpRemoveRange {
			dst = appendPlace(dst, "to", ch.To, ch.ToSub)
		}
	case "set":
		text("member", ch.Element)
		return dst
	case "zset":
		text("member", ch.Element)
		if put {
			dst = jsonl.AppendScore(append(dst, `,"score":`...), ch.Score)
		}
		return dst
	case "stream":
		text("id", []byte(ch.ID))
		if !put {
			return dst
		}
		dst = append(dst, `,"fields":[`...)
		for i, field := range ch.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonl.AppendBytes(dst, field)
		}
		return append(dst, ']')
	case feed.GroupsType:
		text("element", ch.Element)
	case "string":
		if ch.ChunkSize > 0 {
			dst = strconv.AppendInt(append(dst, `,"offset":`...), ch.Offset, 10)
			dst = strconv.AppendInt(append(dst, `,"chunk_size":`...), int64(ch.ChunkSize), 10)
		}
	}
	if put {
		text("value", ch.Value)
	}
	return dst
}

// appendMember appends a member of an object, as package jsonl has those of a key: bytes that are not UTF-8 are in
// base64.
func appendMember(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, '"'), name...)
	if utf8.Valid(value) {
		return jsonl.AppendBytes(append(dst, '"', ':'), value)
	}
	dst = append(dst, `B64":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, value), '"')
}
