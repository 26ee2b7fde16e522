package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// tour is one walk through the life of a store.
type tour struct {
	out      io.Writer
	dir      string
	question Question
	ttl      time.Duration // of the summary

	store    *db.Store
	packages []Package // that the store should hold
	shown    string    // the answers that were printed last
	summary  string    // that is cached
	deadline time.Time // from which it is gone
}

// run takes the steps one after the other, verifies after each, and stops at the first that fails.
func (t *tour) run(ctx context.Context) (err error) {
	if t.store, err = db.Open(t.dir, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.store.Close()) }()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"load", t.load},
		{"close, open, merge, check", t.maintain},
		{"delete packages", t.remove},
		{"close, open, merge, check", t.maintain},
		{"wait for the summary to expire", t.expire},
		{"close, open, merge, check", t.maintain},
	} {
		fmt.Fprintf(t.out, "\n-- %s\n", step.name)
		if err = step.do(ctx); err == nil {
			err = cmp.Or(ctx.Err(), t.verify())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(t.out, "ok: the store agrees with the file, %d keys\n", t.store.Len())
	}
	return nil
}

// load stores each package in a transaction of its own, then the summary.
func (t *tour) load(context.Context) error {
	if t.store.Len() > 0 {
		return fmt.Errorf("%s holds a store already; give an empty directory", t.dir)
	}
	for _, p := range t.packages {
		if err := t.store.Update(func(tx *db.Tx) error { return add(tx, p) }); err != nil {
			return fmt.Errorf("package %s: %w", p.Name, err)
		}
	}
	fmt.Fprintf(t.out, "%d packages in %d commits\n", len(t.packages), len(t.packages)+1)
	return t.store.Update(func(tx *db.Tx) (err error) {
		t.summary, t.deadline, err = putSummary(tx, t.ttl)
		return err
	})
}

// maintain opens the store again, rewrites all segments without dead records, and reads every byte.
func (t *tour) maintain(ctx context.Context) error {
	if err := t.store.Close(); err != nil {
		return err
	}
	store, err := db.Open(t.dir, nil)
	if err != nil {
		return err
	}
	t.store = store
	before := t.store.Stats().Bytes
	m, err := t.store.Merge(ctx, merge.RunOptions{All: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%d records kept, %d dropped, %d bytes before, %d after\n", m.Copied, m.Dropped, before, t.store.Stats().Bytes)
	c, err := t.store.Check(ctx, func(f bitcask.Finding) { fmt.Fprintln(t.out, "finding:", f) })
	if err == nil && c.Findings != 0 {
		err = fmt.Errorf("%d findings, expected 0", c.Findings)
	}
	if err == nil {
		fmt.Fprintf(t.out, "ok: nothing found in %d records, %d bytes\n", c.Records, c.Bytes)
	}
	return err
}

// remove deletes the three largest packages, the first of the section and the first that depends on the one asked for, all
// in one commit. The package whose rank is asked for stays.
func (t *tour) remove(context.Context) error {
	return t.store.Update(func(tx *db.Tx) error {
		a, err := ask(tx, t.question)
		if err != nil {
			return err
		}
		names := slices.Concat(a.Section[:min(1, len(a.Section))], a.Needs[:min(1, len(a.Needs))])
		for _, p := range a.Largest[:min(3, len(a.Largest))] {
			names = append(names, p.Member)
		}
		var left []Package
		for _, p := range t.packages {
			if !slices.Contains(names, p.Name) || p.Name == t.question.Rank {
				left = append(left, p)
				continue
			}
			fmt.Fprintf(t.out, "deleted: %s\n", p.Name)
			if err := remove(tx, p); err != nil {
				return err
			}
		}
		t.packages = left
		return nil
	})
}

// expire waits until the summary's time has come.
func (t *tour) expire(ctx context.Context) error {
	select {
	case <-time.After(time.Until(t.deadline)):
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Fprintln(t.out, "the summary is gone")
	return nil
}
