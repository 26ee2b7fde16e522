package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// A check opens the store for reading only and without its INDEX, so that the keydir comes from the
// log and can be compared with the INDEX: it says what the store held when it was last closed, the log what a kill, a
// backup and a repair would leave of that (I12). A store that cannot be opened so is opened once more with
// ReadDamaged: its damage is what the user asked about, and an error in place of the findings would
// be no answer.
//
// Damage has an exit status of its own, distinct from "could not be opened": a script that checks
// at night must tell a broken disk from a wrong path.

// maxFindings is how many findings are printed; the rest are counted. It bounds the memory of a check as well, whatever
// the damage.
const maxFindings = 1000

// checkCommand describes stave check. Its statuses are 0 for a sound store, 4 for a damaged one, and 3 for one that
// could not be looked at: locked, not there, or of a newer version.
func checkCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "check",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.BoolFlag{Name: "json", Usage: "print one object with all findings"},
			&cli.BoolFlag{Name: "replay", Usage: "fail if there is no INDEX to compare a replay of the log with"},
			quietFlag(),
		},
		Action: onDir(func(c *cli.Context, dir string) error {
			return runCheck(t, dir, c.Bool("json"), c.Bool("quiet"), c.Bool("replay"))
		}),
	}
}

// A checkReport is what --json prints. It is printed for a store that cannot be opened as well,
// with that as its finding, so a program need not parse texts. Findings has the first maxFindings at
// most, Result counts all of them. Sound says the same as the status.
type checkReport struct {
	Sound    bool                `json:"sound"`
	Result   bitcask.CheckResult `json:"result"`
	Torn     int64               `json:"torn_bytes"`        // after the last commit, never acknowledged as durable
	Remains  []string            `json:"remains,omitempty"` // files in which openings have kept what they truncated
	Refused  string              `json:"refused,omitempty"` // why it can only be opened with ReadDamaged
	Findings []bitcask.Finding   `json:"findings"`
	Seconds  float64             `json:"seconds"`
}

// runCheck opens the store, whole or damaged, and reports what Check finds in it. A check that
// finds damage ends with a status and without an error text: the findings are the text. Opening is
// part of the check: some damage is found there.
func runCheck(t *terminal.Streams, dir string, asJSON, quiet, replay bool) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	started := time.Now()
	bar := t.Progress(asJSON || quiet, "open", logBytes(dir))
	defer bar.Clear()
	// The keydir comes from the log, so that the INDEX can be compared with it.
	store, err := openExisting(ctx, t, dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{NoIndex: true, Read: bar.Add}))
	// What the first opening found is kept, for the second one reads past it and the findings may not have it.
	refused := ""
	if isDamage(err) {
		refused = errors.Unwrap(err).Error()
		var left error
		if store, left = openExisting(ctx, t, dir, seam.With(&db.Options{ReadDamaged: true}, seam.Options{NoIndex: true, Read: bar.Add})); left == nil {
			err = nil
		}
	}
	if err != nil {
		return damage(t, err, asJSON)
	}
	defer closeInto(&err, store.Close)
	// A store that was opened for reading has truncated nothing: Torn is what an opening for
	// writing would truncate.
	recovery := store.Log().Recovery()
	report := checkReport{Findings: []bitcask.Finding{}, Torn: recovery.TornBytes, Remains: recovery.Remains, Refused: refused}
	bar.Next("check", bytesOfCheck(store))
	result, err := store.Check(ctx, func(f bitcask.Finding) {
		if len(report.Findings) < maxFindings {
			report.Findings = append(report.Findings, f)
		}
	})
	bar.Clear()
	if err != nil {
		if ctx.Err() != nil {
			t.Complain(errors.New("interrupted; what is after the last finding was not checked"))
			return ctx.Err()
		}
		return failed(exitCommand, fmt.Errorf("check %s: %w", dir, err))
	}
	report.Result, report.Sound, report.Seconds = result, result.Findings == 0, time.Since(started).Seconds()
	if err := printCheck(t, report, asJSON, quiet); err != nil {
		return failed(exitCommand, err)
	}
	if !report.Sound {
		return &exitError{status: exitDamage}
	}
	if replay && !result.Compared {
		return failed(exitCommand, fmt.Errorf("check %s: there is no INDEX that fits the log to compare a replay of it with; a store that is closed in order has one", dir))
	}
	return nil
}

// bytesOfCheck is how much a check reads, in bytes, for the bar: every segment once, and once more what is live, record
// by record. Hints, the INDEX and deadlines are not counted; they are small compared with these.
func bytesOfCheck(store *db.Store) int64 {
	st := store.Stats()
	return st.Bytes + st.LiveBytes
}

// isDamage reports whether a store was not opened because its files are damaged. A store that is
// locked, missing or of a newer version is none of these. It decides between the statuses 3 and 4, and
// whether repair is recommended, so what it says must hold for every command. nil is no damage.
func isDamage(err error) bool {
	_, corrupt := errors.AsType[*bitcask.CorruptError](err)
	return corrupt || errors.Is(err, bitcask.ErrMissing) || errors.Is(err, bitcask.ErrManifest) || errors.Is(err, bitcask.ErrForeign)
}

// damage separates a store that is damaged beyond opening, which is a finding, from one that is
// only locked or missing: that error is passed on. With --json the report has the form of any
// other, with one finding of the rule "open", and there is no error text.
func damage(t *terminal.Streams, err error, asJSON bool) error {
	if !isDamage(err) {
		return err
	}
	if !asJSON {
		return failed(exitDamage, fmt.Errorf("%w; stave repair DIR --out NEW copies what is left", errors.Unwrap(err)))
	}
	finding := bitcask.Finding{Rule: "open", Detail: err.Error()}
	if corrupt, ok := errors.AsType[*bitcask.CorruptError](err); ok {
		finding.File, finding.Offset, finding.Detail = corrupt.File, corrupt.Offset, corrupt.Reason
	}
	report := checkReport{Findings: []bitcask.Finding{finding}, Result: bitcask.CheckResult{Findings: 1}}
	if err := json.NewEncoder(t.Out).Encode(report); err != nil {
		return failed(exitCommand, err)
	}
	return &exitError{status: exitDamage}
}

// printCheck prints the findings, then one sentence about what was checked. Quiet leaves the
// sentence out: no output at all is a sound store. Findings may quote names of keys, which must not
// reach the terminal as escape sequences.
func printCheck(t *terminal.Streams, r checkReport, asJSON, quiet bool) error {
	if asJSON {
		return json.NewEncoder(t.Out).Encode(r)
	}
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(t.Out, "%s\n", terminal.Safe([]byte(f.String()))); err != nil {
			return err
		}
	}
	// The findings themselves are results and are printed all the same.
	if quiet {
		return nil
	}
	verdict := "sound"
	if n := r.Result.Findings; n > 0 {
		verdict = "DAMAGED: " + humanize.Plural(n, "finding")
	}
	index := ""
	if r.Result.Index {
		index = "index, "
	}
	text := fmt.Sprintf("%s: %s, %s, %s%s, %s, %s checked in %s", verdict, humanize.Plural(r.Result.Segments, "segment"), humanize.Plural(r.Result.Hints, "hint"), index,
		humanize.Size(r.Result.Bytes), humanize.Plural(r.Result.Records, "record"), humanize.Plural(r.Result.Keys, "key"),
		humanize.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if r.Torn > 0 {
		text += fmt.Sprintf("; %s of an unfinished write at the end, which the next open truncates", humanize.Size(r.Torn))
	}
	if n := len(r.Remains); n > 0 {
		text += fmt.Sprintf("\n%s: what openings have truncated; stave repair reads it, and it can be deleted", strings.Join(r.Remains, ", "))
	}
	if r.Refused != "" {
		text += "\nit can be opened only to read what is left: stave serve --read-damaged, or stave repair for a copy"
	}
	_, err := fmt.Fprintln(t.Out, text)
	return err
}
