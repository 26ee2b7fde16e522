package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
)

// The figures of a store at rest or in use: it is opened for reading only.
// Segments first, since "why is the directory so large" is what most people come
// with.

// statsCommand describes stave stats. --watch follows the store, so another process may have it open and write; without
// it the store is read once.
func statsCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "stats",
		Flags: append([]cli.Flag{
			dirFlag(), &cli.BoolFlag{Name: "json", Usage: "print all figures as one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on, and show what another process does to the store"},
		}, watchFlags()...),
		Action: onDir(func(c *cli.Context, dir string) error {
			every, count, err := readWatchFlags(c)
			switch {
			case err != nil:
				return err
			case c.Bool("watch"):
				return watchStats(t, dir, c.Bool("json"), every, count)
			case c.IsSet("every") || c.IsSet("count"):
				return usagef("--every and --count need --watch")
			}
			return runStats(t, dir, c.Bool("json"))
		}),
	}
}

// runStats prints the present figures of a store. JSON has the figures under the names that
// db.Stats gives them, and more of them than the text. The figures of a store that a server has open
// are those of its log as it was when it was opened here; what the server alone knows, such as
// merges under way, is in INFO and stave top.
func runStats(t *terminal.Streams, dir string, asJSON bool) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	if asJSON {
		return failed(exitCommand, json.NewEncoder(t.Out).Encode(store.Stats()))
	}
	return failed(exitCommand, printStats(t.Out, store))
}

// watchStats prints the figures of a store that it follows, count times or until it is interrupted. JSON has one object
// a line. An error of following is shown with the figures, which are the last ones that could be had: with JSON it ends
// the command instead, because an object has no place for it.
func watchStats(t *terminal.Streams, dir string, asJSON bool, every time.Duration, count int) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, dir, &db.Options{ReadOnly: true, Follow: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	// The store is brought up to date by itself; each picture asks only for what is known by then.
	return watch(ctx, t, !asJSON, every, count, func() ([]byte, error) {
		var b bytes.Buffer
		if asJSON {
			err := json.NewEncoder(&b).Encode(store.Stats())
			return b.Bytes(), errors.Join(err, store.FollowState().Err)
		}
		err := printStats(&b, store)
		if st := store.FollowState(); st.Err != nil {
			fmt.Fprintf(&b, "not followed any further, for %s: %v\n", humanize.Duration(time.Since(st.Since)), st.Err)
		}
		return b.Bytes(), err
	})
}

// printStats prints segments, namespaces and totals. Tables of one row are tables too: a script
// that reads columns need not know how many there are. The sum is the last line. A store without
// keys has no table of namespaces, and no share of live bytes if it has no record.
func printStats(w io.Writer, store *db.Store) error {
	st := store.Stats()
	segments := terminal.NewTable("segment", "size", "live", "dead", "records", "")
	records := uint64(0)
	for _, s := range store.Segments() {
		records += s.Records
		segments.Row(fmt.Sprintf("%09d", s.ID), humanize.Size(s.Bytes), humanize.PercentBar(s.LiveBytes, s.Bytes), humanize.Dead(s.LiveBytes, s.Bytes, s.Records),
			humanize.Count(int64(s.Records)), segmentNote(s))
	}
	if err := segments.Write(w); err != nil {
		return err
	}
	keys := terminal.NewTable("namespace", "keys", "with deadline", "average time left")
	for _, ns := range st.Namespaces {
		left := "-"
		if ns.Deadlines > 0 {
			left = humanize.Duration(time.Duration(ns.AverageTTLms) * time.Millisecond)
		}
		keys.Row(fmt.Sprint(ns.Namespace), humanize.Count(int64(ns.Keys)), humanize.Count(int64(ns.Deadlines)), left)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	// The rows are of namespaces that have keys.
	live := ""
	if len(st.Namespaces) > 0 {
		if err := keys.Write(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	if records > 0 {
		live = fmt.Sprintf(", %s of it live", humanize.Percent(st.LiveBytes, st.Bytes))
	}
	_, err := fmt.Fprintf(w, "%s on disk%s; %s; index %s in memory%s; newest record %s; opened in %s\n", humanize.Size(st.Bytes), live,
		humanize.Plural(st.Keys, "key"), humanize.Size(st.IndexBytes), humanize.PerKey(st.IndexBytes, st.Keys), humanize.Count(int64(st.Sequence)),
		humanize.Duration(store.Log().Recovery().Took))
	return err
}

// segmentNote says which segment is written to, and which ones merges have written. A segment that
// was sealed and not merged has no note: most are so.
func segmentNote(s bitcask.SegmentInfo) string {
	switch {
	case !s.Sealed:
		return "active"
	case s.Merged:
		return "merged"
	}
	return ""
}
