// Packages loads the package database of a Debian system into a store and asks it questions, with every data type.
//
//	go run ./examples/packages -section admin -needs zlib1g -rank bash
//
// store.go stores a package in one commit, and answers questions as of one moment; the tour below loads, opens again,
// merges, checks and deletes. After each step the tests compare the store with what plain Go reads in the file.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

//go:embed testdata/status.sample
var sample []byte // sixty packages of Debian 12, for systems without defaultStatus

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := &tour{out: os.Stdout}
	if err := t.main(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// main reads the flags and the file, and takes the tour through a store.
func (t *tour) main(ctx context.Context, args []string, stderr io.Writer) (err error) {
	set := flag.NewFlagSet("packages", flag.ContinueOnError)
	set.SetOutput(stderr)
	status := set.String("status", defaultStatus, "dpkg status `file`; a sample takes the place of the default one if there is none")
	set.StringVar(&t.dir, "dir", "", "`directory` for the store, new or empty, to keep (default a temporary one)")
	set.StringVar(&t.Section, "section", "libs", "list the packages of this `section`")
	set.StringVar(&t.Needs, "needs", "libc6", "list the packages that depend on this `package`")
	set.StringVar(&t.Rank, "rank", "perl-base", "rank this `package` by installed size")
	set.DurationVar(&t.ttl, "ttl", 2*time.Second, "`time` after which the cached summary expires, at least 1ms")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil || set.NArg() > 0 || t.ttl < time.Millisecond {
		set.Usage()
		return errors.New("-help explains the flags")
	}
	text, err := os.ReadFile(*status)
	if errors.Is(err, fs.ErrNotExist) && *status == defaultStatus {
		*status, text, err = "the sample", sample, nil
	}
	if err != nil {
		return err
	}
	if t.packages, err = parseStatus(bytes.NewReader(text)); err != nil {
		return fmt.Errorf("%s: %w", *status, err)
	}
	fmt.Fprintf(t.out, "%d installed packages in %s\n", len(t.packages), *status)
	if !slices.ContainsFunc(t.packages, func(p Package) bool { return p.Name == t.Rank }) {
		return fmt.Errorf("no package %q in %s; -rank takes one that is there", t.Rank, *status)
	}
	if t.dir == "" {
		if t.dir, err = os.MkdirTemp("", "packages-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(t.dir)) }()
	}
	return t.run(ctx)
}

// tour is one walk through the life of a store.
type tour struct {
	Question
	out      io.Writer
	dir      string
	ttl      time.Duration // of the summary
	store    *db.Store
	packages []Package    // that the store should hold
	deadline time.Time    // of the summary
	verify   func() error // after each step; nil: no check
}

// run takes the steps one after the other, and stops at the first that fails.
func (t *tour) run(ctx context.Context) (err error) {
	if t.store, err = db.Open(t.dir, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.store.Close()) }()
	for _, step := range []func(context.Context) error{t.load, t.answer, t.reopen, t.remove, t.answer, t.reopen, t.expire, t.reopen} {
		if err = cmp.Or(step(ctx), ctx.Err()); err == nil && t.verify != nil {
			err = t.verify()
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(t.out, "%d keys\n", t.store.Len())
	}
	return nil
}

// load stores each package in a transaction of its own, then a summary that expires.
func (t *tour) load(context.Context) error {
	fmt.Fprintf(t.out, "\n-- load %d packages in as many commits\n", len(t.packages))
	if t.store.Len() > 0 {
		return fmt.Errorf("%s holds a store already; give an empty directory", t.dir)
	}
	for _, p := range t.packages {
		if err := t.store.Update(func(tx *db.Tx) error { return add(tx, p) }); err != nil {
			return fmt.Errorf("package %s: %w", p.Name, err)
		}
	}
	return t.store.Update(func(tx *db.Tx) (err error) { // One moment: the summary does not expire in between.
		failed := tx.String(summaryKey).Put([]byte(summary), db.TTL(t.ttl))
		t.deadline, err = tx.Key(summaryKey).Deadline()
		return cmp.Or(failed, err)
	})
}

// answer prints the answers to all questions.
func (t *tour) answer(context.Context) error {
	return t.store.View(func(tx *db.Tx) error {
		a, err := ask(tx, t.Question)
		fmt.Fprint(t.out, a.text(t.Question))
		return err
	})
}

// reopen opens the store again, rewrites all segments without dead records, and reads every byte.
func (t *tour) reopen(ctx context.Context) error {
	fmt.Fprintln(t.out, "\n-- close, open, merge, check")
	if err := t.store.Close(); err != nil {
		return err
	}
	store, err := db.Open(t.dir, nil)
	if err != nil {
		return err
	}
	t.store = store
	before := store.Stats().Bytes
	m, err := store.Merge(ctx, merge.RunOptions{All: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%d records kept, %d dropped, %d bytes before, %d after\n", m.Copied, m.Dropped, before, store.Stats().Bytes)
	c, err := store.Check(ctx, func(f bitcask.Finding) { fmt.Fprintln(t.out, "finding:", f) })
	if err == nil && c.Findings > 0 {
		err = fmt.Errorf("check: %d findings", c.Findings)
	}
	fmt.Fprintf(t.out, "checked %d records, %d bytes: %d findings\n", c.Records, c.Bytes, c.Findings)
	return err
}

// remove deletes the three largest packages, the first of the section and the first that depends on the one asked for,
// all in one commit. The package whose rank is asked for stays.
func (t *tour) remove(context.Context) error {
	fmt.Fprintln(t.out, "\n-- delete packages")
	return t.store.Update(func(tx *db.Tx) error {
		a, err := ask(tx, t.Question)
		names := slices.Concat(a.Section[:min(1, len(a.Section))], a.Needs[:min(1, len(a.Needs))])
		for _, p := range a.Largest[:min(3, len(a.Largest))] {
			names = append(names, p.Member)
		}
		t.packages = slices.DeleteFunc(t.packages, func(p Package) bool {
			goes := err == nil && p.Name != t.Rank && slices.Contains(names, p.Name)
			if goes {
				fmt.Fprintf(t.out, "deleted: %s\n", p.Name)
				err = remove(tx, p)
			}
			return goes
		})
		return err
	})
}

// expire waits until the summary's time has come.
func (t *tour) expire(ctx context.Context) error {
	fmt.Fprintln(t.out, "\n-- wait until the summary is gone")
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(t.deadline)):
	}
	return ctx.Err()
}
