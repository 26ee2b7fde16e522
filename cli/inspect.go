package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
)

// The picture of a store: what each segment holds, what would go with the next merge, what the keys are. Stats has the
// figures that cost nothing; inspect looks at every key. inspect_picture.go draws for a terminal, inspect_page.go for a browser.

// inspectCommand describes stave inspect.
func inspectCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "Draws a store: its segments, types, deadlines, sizes and biggest keys",
		ArgsUsage: "[DIR]",
		UsageText: "stave inspect [DIR] [--json | --html FILE]",
		Description: `   stave inspect data
   stave inspect data --html report.html

Draws each segment as a bar, to scale: what is live, what has been overwritten or
deleted, and what has expired and is still there. Next to it stand how many records
it has and how old it is, whether its hint file is there, and whether the next
merge would take it. Below that are the types, the time that keys have to live, the
sizes, and the biggest keys and groups of keys; a group is what stands before the
first colon of a name.

--html writes the same as one page that needs nothing else, for a report.

It looks at every key, without reading values. The store is opened for reading only,
so a server may go on working with it.`,
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

// An inspection is what --json prints, and what the pictures are drawn from.
type inspection struct {
	Dir        string           `json:"dir"`
	StoreID    string           `json:"store_id"`
	Time       time.Time        `json:"time"`
	Sequence   uint64           `json:"sequence"`
	Bytes      int64            `json:"bytes"`
	LiveBytes  int64            `json:"live_bytes"`
	IndexBytes int64            `json:"index_bytes"`
	Segments   []inspectSegment `json:"segments"`
	Merge      inspectMerge     `json:"merge"`
	Keys       db.Survey        `json:"keys"`
}

// An inspectSegment is one segment. Live, overwritten and expired bytes add up to its length.
type inspectSegment struct {
	Segment     uint32     `json:"segment"`
	Bytes       int64      `json:"bytes"`
	Live        int64      `json:"live_bytes"`
	Overwritten int64      `json:"overwritten_bytes"`
	Expired     int64      `json:"expired_bytes"`
	Records     uint64     `json:"records"`
	Sealed      bool       `json:"sealed"`
	Merged      bool       `json:"merged"`
	Time        *time.Time `json:"time"` // of its end; null: unknown, or it has not ended
	Hint        string     `json:"hint"` // ok, stale, none, or empty for the active segment
	Taken       bool       `json:"merge"`
	Reason      string     `json:"merge_reason"`
}

// An inspectMerge is what the next merge would do.
type inspectMerge struct {
	Due      bool  `json:"due"` // a server would begin it now
	Segments int   `json:"segments"`
	Reads    int64 `json:"reads"`
	Writes   int64 `json:"writes"`
	Reclaims int64 `json:"reclaims"`
}

// runInspect looks at a store and prints, or writes, what it found.
func runInspect(t *terminal.Streams, dir string, c *cli.Context) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	quiet := c.Bool("quiet")
	bar := t.Progress(quiet || c.Bool("json"), "inspect", int64(store.Stats().Keys))
	seen, err := inspect(ctx, store, c.Int("biggest"), func(keys int) { bar.Update(int64(keys), 0, int64(keys)) })
	bar.Clear()
	switch {
	case ctx.Err() != nil:
		t.Complain(errors.New("interrupted"))
		return ctx.Err()
	case err != nil:
		return failed(exitCommand, fmt.Errorf("inspect %s: %w", dir, err))
	}
	switch file := c.String("html"); {
	case c.Bool("json"):
		err = json.NewEncoder(t.Out).Encode(seen)
	case file == "":
		_, err = t.Out.Write(picture{width: t.Width(), color: t.Color(), plain: t.Dumb()}.draw(seen))
	default:
		if err = writePage(file, seen); err == nil && !quiet {
			_, err = fmt.Fprintf(t.Out, "wrote %s\n", file)
		}
	}
	return failed(exitCommand, err)
}

// writePage writes the page as a new file: a report never replaces what is there.
func writePage(file string, seen *inspection) (err error) {
	page, err := inspectPage(seen)
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

// inspect gathers what there is to draw. The survey comes first: it finds out whether the store can be read.
func inspect(ctx context.Context, store *db.Store, biggest int, progress func(keys int)) (*inspection, error) {
	keys, err := store.Survey(ctx, db.SurveyOptions{Biggest: biggest, Prefixes: biggest, Progress: progress})
	if err != nil {
		return nil, err
	}
	st := store.Stats()
	plan := store.Merger().Plan(false)
	seen := &inspection{
		Dir: st.Dir, StoreID: st.StoreID, Time: time.Now().Truncate(time.Millisecond), Sequence: st.Sequence, Bytes: st.Bytes, LiveBytes: st.LiveBytes, IndexBytes: st.IndexBytes,
		Merge: inspectMerge{Due: plan.Triggered && len(plan.IDs()) > 0, Segments: len(plan.IDs()), Reads: plan.Reads, Writes: plan.Writes, Reclaims: plan.Reclaims},
		Keys:  keys,
	}
	expired := map[uint32]int64{}
	for _, s := range keys.Segments {
		expired[s.Segment] = s.ExpiredBytes
	}
	stale := store.Log().Recovery().Stale
	for _, c := range plan.Choices {
		s := inspectSegment{
			Segment: c.ID, Bytes: c.Bytes, Live: min(c.LiveBytes, c.Bytes), Records: c.Records, Sealed: c.Sealed, Merged: c.Merged, Taken: c.Taken, Reason: c.Reason,
			Hint: hintState(st.Dir, c.File, c.Sealed, stale),
		}
		if !c.Time.IsZero() {
			s.Time = &c.Time
		}
		// The size of an expired record is known within an eighth: it never makes a segment longer than it is.
		s.Expired = min(expired[c.ID], s.Live)
		s.Live, s.Overwritten = s.Live-s.Expired, s.Bytes-s.Live
		if s.Records == 0 { // a header is no garbage
			s.Live, s.Overwritten = s.Bytes, 0
		}
		seen.Segments = append(seen.Segments, s)
	}
	return seen, nil
}

// hintState says whether a sealed segment has a hint file that the opening could use.
func hintState(dir, file string, sealed bool, stale []string) string {
	hint := strings.TrimSuffix(file, ".data") + ".hint"
	switch _, err := os.Stat(filepath.Join(dir, hint)); {
	case !sealed:
		return ""
	case err != nil:
		return "none"
	case slices.Contains(stale, hint):
		return "stale"
	}
	return "ok"
}
