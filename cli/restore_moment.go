package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/vfs"
)

// An archive is restored as a tar archive is: under a partial name first, checked there, and then renamed. What is
// damaged or missing in it is found before the check, with the object's name.

// timeFormats are what --to takes besides sequence numbers; without a zone it is the local time.
var timeFormats = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}

// parseTarget reads --to.
func parseTarget(text string) (t archive.Target, err error) {
	if text == "" {
		return t, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return archive.Target{Sequence: n}, nil
	}
	for _, format := range timeFormats {
		if at, err := time.ParseInLocation(format, text, time.Local); err == nil {
			return archive.Target{Time: at}, nil
		}
	}
	return t, usagef("--to takes a sequence number, or a time such as 2026-01-02T15:04:05Z or '2026-01-02 15:04:05', not %q", text)
}

// runListMoments prints the spans of moments that can be restored, a line or a JSON object each.
func runListMoments(t *terminal.Streams, p *Program, place string, asJSON bool) error {
	from, err := p.existingArchive(place)
	if err != nil {
		return err
	}
	ctx, stop := t.Interruptible()
	defer stop()
	spans, err := archive.Spans(ctx, from)
	if err != nil {
		return failed(exitCommand, fmt.Errorf("restore %s: %w", place, err))
	}
	for _, sp := range spans {
		if asJSON {
			err = json.NewEncoder(t.Out).Encode(sp)
		} else {
			_, err = fmt.Fprintf(t.Out, "sequence %d to %d, %s to %s: %s, %s of log, store %s\n", sp.First.Sequence, sp.Last.Sequence,
				sp.First.Time.Format(time.RFC3339), sp.Last.Time.Format(time.RFC3339), humanize.Plural(sp.Bases, "base"), humanize.Size(sp.Bytes), sp.Store)
		}
		if err != nil {
			return failed(exitCommand, err)
		}
	}
	if len(spans) == 0 {
		return failed(exitCommand, fmt.Errorf("restore %s: no moment can be restored: the archive has no base yet", place))
	}
	return nil
}

// wantedMoment is what the command line says.
type wantedMoment struct{ archive, to, store, out string }

// runRestoreMoment makes a store of a moment. Interrupted, it leaves nothing at the new place.
func runRestoreMoment(t *terminal.Streams, p *Program, want wantedMoment, asJSON, quiet bool) error {
	target, err := parseTarget(want.to)
	target.Store = want.store
	if err != nil {
		return err
	}
	from, err := p.existingArchive(want.archive)
	if err != nil {
		return err
	}
	place, dirs := want.archive, []string{want.archive}
	if isURL(place) {
		dirs = nil
	}
	out, err := placeOutside(want.out, dirs...)
	if err != nil {
		return fmt.Errorf("restore %s: %w", place, err)
	}
	ctx, stop := t.Interruptible()
	defer stop()
	r := &restore{t: t, from: place, out: out, bar: t.Progress(asJSON || quiet, "restore", 0)}
	defer r.bar.Clear()
	started := time.Now()
	made, err := r.moment(ctx, from, target)
	r.bar.Clear()
	if ctx.Err() != nil && err != nil {
		t.Complain(errors.New("interrupted; nothing was restored"))
		return err
	}
	if err != nil {
		return err
	}
	for _, name := range made.Damaged {
		t.Complain(fmt.Errorf("warning: restore %s: %s is damaged or missing; the moment is whole, from an older base and the log since then", place, name))
	}
	took := time.Since(started)
	return report(t.Out, asJSON, quiet, momentReport{made, r.keys, took}, fmt.Sprintf("restored %s as of sequence %d (%s) in %s, all verified: %s, %s",
		humanize.Plural(int64(r.keys), "key"), made.Sequence, made.Time.Format(time.RFC3339Nano), humanize.Duration(took.Round(time.Microsecond)),
		humanize.Plural(made.Objects, "object"), humanize.Size(made.Bytes)))
}

// momentReport is what --json prints.
type momentReport struct {
	archive.Restored
	Keys int           `json:"keys"`
	Took time.Duration `json:"took_ns"`
}

// moment restores, checks, and publishes. The directory with the partial name is left over only if the process is killed.
func (r *restore) moment(ctx context.Context, from archive.Store, target archive.Target) (made archive.Restored, err error) {
	partial := filepath.Clean(r.out) + ".partial"
	if err := maybeNew(r.out, partial); err != nil {
		return made, r.failed(exitCommand, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if made, err = archive.Restore(ctx, from, partial, target); err != nil {
		status := exitCommand
		if isDamage(err) {
			status = exitDamage
		}
		if _, several := errors.AsType[*archive.StoresError](err); several {
			err = fmt.Errorf("%w; name the one that is to be restored: --store ID", err)
		}
		if e, ok := errors.AsType[*archive.UnrestorableError](err); ok && e.Before != nil {
			err = fmt.Errorf("%w; --to %d restores the one before it", err, e.Before.Sequence)
		}
		return made, r.failed(status, err)
	}
	store, first, findings, err := r.check(ctx, partial)
	if store != nil {
		err = errors.Join(err, store.Close())
	}
	if err == nil && findings > 0 {
		return made, r.failed(exitDamage, fmt.Errorf("%v; %d findings in all: restore a moment before the damage", first, findings))
	}
	if err == nil {
		if err = vfs.OS().SyncDir(partial); err == nil {
			err = publish(partial, r.out)
		}
	}
	return made, r.failed(exitCommand, err)
}
