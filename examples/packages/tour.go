package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// tour is one walk through the life of a store.
type tour struct {
	out   io.Writer
	o     options
	store *db.Store

	packages []Package // that the store should hold
	before   Answers   // when they were checked last
	summary  string    // that is cached
	deadline time.Time // from which it is gone

	figures figures
}

// figures are for the last lines.
type figures struct {
	packages, commits    int
	records              uint64
	load, open           time.Duration // to load all; to open when all was loaded
	keys                 int           // when it was opened
	bytesIn, bytesMerged int64         // before and after the first merge
	removed              int
	bytesLeft            int64 // after the second
}

func newTour(out io.Writer, o options, packages []Package) *tour {
	return &tour{out: out, o: o, packages: packages}
}

// run takes the steps one after the other and stops at the first that fails.
func (t *tour) run(ctx context.Context) (err error) {
	if err := t.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.store.Close()) }() // Closing twice is no error.
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"load", t.load},
		{"the first answers", t.firstAnswers},
		{"close and open again", t.reopen},
		{"merge all segments", t.merge},
		{"check", t.check},
		{"delete packages", t.remove},
		{"close and open again", t.reopen},
		{"merge all segments", t.merge},
		{"check", t.check},
		{"wait for the summary to expire", t.expire},
		{"close and open again", t.reopen},
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "\n-- %s\n", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	t.printFigures()
	return t.store.Close()
}

func (t *tour) open() error {
	store, err := db.Open(t.o.dir, nil)
	t.store = store
	return err
}

// load stores each package in a transaction of its own, then the summary.
func (t *tour) load(context.Context) error {
	if n := t.store.Len(); n > 0 {
		return fmt.Errorf("%s already holds a store with %d keys; give an empty directory", t.o.dir, n)
	}
	begin := time.Now()
	for _, p := range t.packages {
		if err := t.store.Update(func(tx *db.Tx) error { return add(tx, p) }); err != nil {
			return fmt.Errorf("package %s: %w", p.Name, err)
		}
	}
	t.figures.load = time.Since(begin)
	var err error
	if t.summary, t.deadline, err = putSummary(t.store, t.o.ttl); err != nil {
		return err
	}
	t.figures.packages, t.figures.commits = len(t.packages), len(t.packages)+1
	t.figures.records = t.store.Log().Sequence()
	fmt.Fprintf(t.out, "%d packages are stored, and for %v the summary %q\n", len(t.packages), t.o.ttl, t.summary)
	return nil
}

func (t *tour) firstAnswers(context.Context) error {
	if _, err := t.verify(); err != nil {
		return err
	}
	t.before.print(t.out, t.o.question)
	return t.verified()
}

// verify compares what the store says with what the file says, and returns whether the answers are the same as last time.
func (t *tour) verify() (same bool, err error) {
	a, err := ask(t.store, t.o.question)
	if err != nil {
		return false, err
	}
	if d := a.diff(expect(t.packages, t.o.question)); d != "" {
		return false, errors.New(d)
	}
	f, err := storedFacts(t.store)
	if err != nil {
		return false, err
	}
	if d := f.diff(expectFacts(t.packages)); d != "" {
		return false, errors.New(d)
	}
	same, t.before = a.diff(t.before) == "", a
	return same, t.checkSummary()
}

func (t *tour) verified() error {
	fmt.Fprintf(t.out, "ok: the store agrees with the file: 7 answers, %d keys\n", t.store.Len())
	return nil
}

// verifySame is verify after a step that changes nothing.
func (t *tour) verifySame() error {
	same, err := t.verify()
	if err != nil {
		return err
	}
	if !same {
		return errors.New("the answers are not what they were")
	}
	return t.verified()
}

// checkSummary checks that the summary is there until its deadline and gone from then on. The clock is read before and after,
// for the deadline may pass meanwhile.
func (t *tour) checkSummary() error {
	before := time.Now()
	value, err := t.store.String(summaryKey).Get()
	after := time.Now()
	switch {
	case err == nil && !before.Before(t.deadline):
		return fmt.Errorf("key %s: still there %v after its deadline", summaryKey, before.Sub(t.deadline))
	case err == nil && string(value) != t.summary:
		return errors.New(differs("key "+summaryKey, string(value), t.summary))
	case errors.Is(err, db.ErrNotFound) && after.Before(t.deadline):
		return fmt.Errorf("key %s: gone %v before its deadline", summaryKey, t.deadline.Sub(after))
	case errors.Is(err, db.ErrNotFound):
		return nil
	}
	return err
}

func (t *tour) reopen(context.Context) error {
	if err := t.store.Close(); err != nil {
		return err
	}
	begin := time.Now()
	if err := t.open(); err != nil {
		return err
	}
	if t.figures.keys == 0 {
		t.figures.open, t.figures.keys = time.Since(begin), t.store.Len()
	}
	return t.verifySame()
}

// merge rewrites all segments, leaving out what is no longer needed.
func (t *tour) merge(ctx context.Context) error {
	before := t.store.Stats().Bytes
	r, err := t.store.Merge(ctx, merge.RunOptions{All: true})
	if err != nil {
		return err
	}
	after := t.store.Stats().Bytes
	fmt.Fprintf(t.out, "%d records kept, %d dropped, %d bytes before, %d after\n", r.Copied, r.Dropped, before, after)
	if t.figures.bytesIn == 0 {
		t.figures.bytesIn, t.figures.bytesMerged = before, after
	}
	t.figures.bytesLeft = after
	return t.verifySame()
}

// check reads every byte of the store.
func (t *tour) check(ctx context.Context) error {
	r, err := t.store.Check(ctx, func(f bitcask.Finding) { fmt.Fprintln(t.out, "finding:", f) })
	if err != nil {
		return err
	}
	if r.Findings != 0 {
		return fmt.Errorf("%d findings, expected 0", r.Findings)
	}
	fmt.Fprintf(t.out, "ok: nothing found in %d segments, %d records, %d bytes\n", r.Segments, r.Records, r.Bytes)
	return nil
}

// remove deletes the three largest packages, the first of the section and the first that depends on the one asked for, all
// in one commit. The package whose rank is asked for stays.
func (t *tour) remove(context.Context) error {
	var names []string
	for _, p := range t.before.Largest[:min(3, len(t.before.Largest))] {
		names = append(names, p.Member)
	}
	names = append(names, t.before.Section[:min(1, len(t.before.Section))]...)
	names = append(names, t.before.Needs[:min(1, len(t.before.Needs))]...)
	gone := map[string]bool{t.o.question.Rank: true} // not to be deleted, or no more
	err := t.store.Update(func(tx *db.Tx) error {
		for _, name := range names {
			if gone[name] {
				continue
			}
			gone[name] = true
			if err := remove(tx, name); err != nil {
				return err
			}
			fmt.Fprintf(t.out, "deleted: %s\n", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var left []Package
	for _, p := range t.packages {
		if !gone[p.Name] || p.Name == t.o.question.Rank {
			left = append(left, p)
		}
	}
	t.figures.removed = len(t.packages) - len(left)
	t.packages = left
	same, err := t.verify()
	if err != nil {
		return err
	}
	if same && t.figures.removed > 0 {
		return errors.New("the answers are what they were before")
	}
	t.before.print(t.out, t.o.question)
	return t.verified()
}

// expire waits until the summary's time has come. If that was long ago, verify has seen it.
func (t *tour) expire(ctx context.Context) error {
	select {
	case <-time.After(time.Until(t.deadline)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.verifySame(); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "ok: the summary is gone\n")
	return nil
}

func (t *tour) printFigures() {
	f := t.figures
	fmt.Fprintf(t.out, "\n%d packages in %d commits, %d records, loaded in %v (%.0f packages/s)\n",
		f.packages, f.commits, f.records, f.load.Round(time.Microsecond), float64(f.packages)/max(f.load.Seconds(), 1e-9))
	fmt.Fprintf(t.out, "%d bytes before the merge, %d after; %d after deleting %d packages and a second one\n",
		f.bytesIn, f.bytesMerged, f.bytesLeft, f.removed)
	fmt.Fprintf(t.out, "opened in %v with %d keys\n", f.open.Round(time.Microsecond), f.keys)
}
