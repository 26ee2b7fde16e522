package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// A server merges by itself, at a pace that leaves the disk to its clients. This is the same
// without a limit, for a store that is not open; --dry-run explains the choice, with the reason
// that the policy gives for each segment.

// mergeCommand describes stave merge. A merge needs the store's lock, so a server must be asked by MERGE instead;
// --dry-run takes no lock.
func mergeCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "merge",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "show what would be merged and why, and change nothing"},
			&cli.BoolFlag{Name: "all", Usage: "merge every segment"},
			&cli.BoolFlag{Name: "json", Usage: "print the plan (--dry-run) or the result as JSON"},
			quietFlag(),
		},
		Action: onDir(func(c *cli.Context, dir string) error {
			if c.Bool("dry-run") {
				return runMergePlan(t, dir, c.Bool("all"), c.Bool("json"))
			}
			return runMerge(t, dir, c.Bool("all"), c.Bool("json"), c.Bool("quiet"))
		}),
	}
}

// A mergePlan is what --dry-run --json prints. Bytes that are read, written and reclaimed are those
// of the segments taken, as of now. All segments are listed, Taken says how many of them are taken.
type mergePlan struct {
	Segments []plannedSegment `json:"segments"`
	Taken    int              `json:"taken"`
	Reads    int64            `json:"reads"`
	Writes   int64            `json:"writes"`
	Reclaims int64            `json:"reclaims"`
	Room     int64            `json:"room,omitzero"`  // bytes that can be written, where that is too little
	Lacks    int64            `json:"lacks,omitzero"` // how many more the segment with the most to copy needs
}

// A plannedSegment is what a plan says about one segment, taken or not: the
// reason why not is what people ask for.
type plannedSegment struct {
	Segment   uint32 `json:"segment"`
	Bytes     int64  `json:"bytes"`
	LiveBytes int64  `json:"live_bytes"`
	Records   uint64 `json:"records"`
	Taken     bool   `json:"taken"`
	Reason    string `json:"reason"`
}

// newMergePlan turns the policy's plan into the printed one. With --all the active segment, which
// no plan can take, is sealed before the merge begins. What a merge will reclaim is an estimate:
// records may die while it runs.
func newMergePlan(p merge.Plan, all bool) mergePlan {
	shown := mergePlan{Segments: []plannedSegment{}}
	for _, c := range p.Choices {
		s := plannedSegment{Segment: c.ID, Bytes: c.Bytes, LiveBytes: c.LiveBytes, Records: c.Records, Taken: c.Taken, Reason: c.Reason}
		if all && !c.Sealed && c.Records > 0 {
			s.Taken, s.Reason = true, "all asked for; sealed first"
		}
		if s.Taken {
			shown.Taken++
			shown.Reads += s.Bytes
			shown.Writes += s.LiveBytes
		}
		shown.Segments = append(shown.Segments, s)
	}
	shown.Reclaims = max(shown.Reads-shown.Writes, 0)
	return shown
}

// measure notes what can be written. A merge goes on with one segment at a time where all of them do not fit.
func (p *mergePlan) measure(room int64, known bool) {
	if !known {
		return
	}
	for _, s := range p.Segments {
		if s.Taken {
			p.Lacks = max(p.Lacks, s.LiveBytes-room)
		}
	}
	if p.Lacks > 0 {
		p.Room = room
	}
}

// runMergePlan shows what a merge would do. It opens the store for reading only, so it works
// alongside a server. A plan that a server would make for the same store may differ: it knows what
// has been written since.
func runMergePlan(t *terminal.Streams, dir string, all, asJSON bool) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	plan := newMergePlan(store.Merger().Plan(all), all)
	plan.measure(store.MergeRoom())
	if asJSON {
		return failed(exitCommand, json.NewEncoder(t.Out).Encode(plan))
	}
	return failed(exitCommand, printMergePlan(t.Out, plan))
}

// printMergePlan prints a row a segment, and what all of it would cost and bring. The reasons are
// the policy's own words, so that the plan cannot disagree with what a merge does. Sizes are of
// segments as they are on disk; a merged one is smaller by what is dead.
func printMergePlan(w io.Writer, plan mergePlan) error {
	table := terminal.NewTable("segment", "size", "live", "dead", "records", "merge", "why")
	for _, s := range plan.Segments {
		taken := "-"
		if s.Taken {
			taken = "yes"
		}
		table.Row(fmt.Sprintf("%09d", s.Segment), humanize.Size(s.Bytes), humanize.Size(s.LiveBytes), humanize.Dead(s.LiveBytes, s.Bytes, s.Records),
			humanize.Count(int64(s.Records)), taken, s.Reason)
	}
	if err := table.Write(w); err != nil {
		return err
	}
	text := "nothing to merge" + allHint(plan)
	if plan.Taken > 0 {
		text = fmt.Sprintf("would read %s in %d of %s, write %s and reclaim %s", humanize.Size(plan.Reads), plan.Taken, humanize.Plural(len(plan.Segments), "segment"),
			humanize.Size(plan.Writes), humanize.Size(plan.Reclaims))
	}
	if plan.Lacks > 0 {
		text += fmt.Sprintf("; the disk has room for %s, %s less than the segment with the most live data needs", humanize.Size(plan.Room), humanize.Size(plan.Lacks))
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// allHint says what --all would reclaim when the policy sees nothing to do, in bytes that are dead by now; "" if there
// are none.
func allHint(plan mergePlan) string {
	var dead int64
	for _, s := range plan.Segments {
		if s.Records > 0 { // an empty segment's header is no garbage
			dead += s.Bytes - s.LiveBytes
		}
	}
	if dead <= 0 {
		return ""
	}
	return fmt.Sprintf("; --all would reclaim about %s", humanize.Size(dead))
}

// runMerge merges, without a limit on its pace. Merges in the background are off, or they would be
// in each other's way. The bar counts bytes read, which the plan knows in advance; a merge may take
// less if records turn out to be dead.
func runMerge(t *terminal.Streams, dir string, all, asJSON, quiet bool) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, dir, &db.Options{NoMerge: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	// The plan is made before the merge: afterwards there is nothing left that tells how many bytes
	// there were to read.
	before := newMergePlan(store.Merger().Plan(all), all)
	bar := t.Progress(quiet || asJSON, "merge", before.Reads)
	result, err := store.Merge(ctx, merge.RunOptions{All: all, Unlimited: true, Progress: func(read, _ int64) { bar.Update(read, read, -1) }})
	bar.Clear()
	// A merge that is interrupted leaves a whole store: segments are exchanged one edit of the manifest at a time.
	if ctx.Err() != nil {
		t.Complain(errors.New("interrupted; what has been merged by then stays so"))
		return errors.Join(ctx.Err(), notCanceled(err))
	}
	if err != nil {
		return failed(exitCommand, fmt.Errorf("merge %s: %w", dir, err))
	}
	sentence := mergeSentence(result, len(before.Segments))
	if result.Segments == 0 {
		sentence = "nothing to merge" + allHint(before)
	}
	return report(t.Out, asJSON, quiet, result, sentence)
}

// mergeSentence is what a merge ends with. A merge may end with more bytes than it began with, if
// all was live; that is shown as nothing reclaimed.
func mergeSentence(r merge.Result, before int) string {
	return fmt.Sprintf("reclaimed %s of %s read in %s (%s -> %d)", humanize.Size(max(r.Reclaimed(), 0)), humanize.Size(r.BytesRead),
		humanize.Duration(r.Took.Round(time.Microsecond)), humanize.Plural(before, "segment"), r.SegmentsNow)
}
