package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/urfave/cli/v2"
)

// The figures of a store at rest or in use: it is opened for reading only.
// Segments first, since "why is the directory so large" is what most people come
// with.

// statsCommand describes stave stats.
func statsCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "stats",
		Usage:     "Shows what a store holds: segments, garbage, keys, deadlines, memory",
		ArgsUsage: "[DIR]",
		UsageText: "stave stats [DIR] [--json]",
		Description: `Opens the store for reading only, so it can run alongside a server; it then shows the
store as it was at that moment.`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print all figures as one JSON object"}},
		Action: onDir(func(c *cli.Context, dir string) error {
			return runStats(t, dir, c.Bool("json"))
		}),
	}
}

// runStats prints the present figures of a store. JSON has the figures under the names that
// db.Stats gives them, and more of them than the text.
func runStats(t *terminal, dir string, asJSON bool) (err error) {
	store, err := openExisting(t, dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	if asJSON {
		return failed(exitCommand, json.NewEncoder(t.out).Encode(store.Stats()))
	}
	return failed(exitCommand, printStats(t.out, store))
}

// printStats prints segments, namespaces and totals. Tables of one row are tables too: a script
// that reads columns need not know how many there are. The sum is the last line. A store without
// keys has no table of namespaces, and no share of live bytes if it has no record.
func printStats(w io.Writer, store *db.Store) error {
	st := store.Stats()
	segments := newTable("segment", "size", "live", "dead", "records", "")
	records := uint64(0)
	for _, s := range store.Log().Segments() {
		records += s.Records
		segments.row(fmt.Sprintf("%09d", s.ID), sizeText(s.Bytes), percentBar(s.LiveBytes, s.Bytes), deadText(s.LiveBytes, s.Bytes, s.Records),
			countText(int64(s.Records)), segmentNote(s))
	}
	if err := segments.write(w); err != nil {
		return err
	}
	keys := newTable("namespace", "keys", "with deadline", "average time left")
	for _, ns := range st.Namespaces {
		left := "-"
		if ns.Deadlines > 0 {
			left = durationText(time.Duration(ns.AverageTTLms) * time.Millisecond)
		}
		keys.row(fmt.Sprint(ns.Namespace), countText(int64(ns.Keys)), countText(int64(ns.Deadlines)), left)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	live := ""
	if len(st.Namespaces) > 0 {
		if err := keys.write(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	if records > 0 {
		live = fmt.Sprintf(", %s of it live", percentText(st.LiveBytes, st.Bytes))
	}
	_, err := fmt.Fprintf(w, "%s on disk%s; %s; index %s in memory%s; newest record %s; opened in %s\n", sizeText(st.Bytes), live,
		plural(st.Keys, "key"), sizeText(st.IndexBytes), perKey(st.IndexBytes, st.Keys), countText(int64(st.Sequence)),
		durationText(store.Log().Recovery().Took))
	return err
}

// deadText is the share of a segment that is garbage. One without records has none, whatever its
// header takes.
func deadText(live, bytes int64, records uint64) string {
	if records == 0 {
		return "-"
	}
	return percentText(bytes-live, bytes)
}

// perKey is the memory that a key takes on average: what a machine is chosen by. It is the index
// only; values are in the page cache of the system, which this figure cannot know.
func perKey(bytes int64, keys int) string {
	if keys == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f B a key)", float64(bytes)/float64(keys))
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
