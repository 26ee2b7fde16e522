// Packages loads the package database of a Debian system into a store and asks it questions: a small program that uses every
// data type of Stave through the embedded API, and verifies the answers.
//
//	go run ./examples/packages
//	go run ./examples/packages -section admin -needs zlib1g -rank git
//	go run ./examples/packages -status examples/packages/testdata/status.sample -dir /tmp/packages
//
// It stores a hash for each package, a set for each section, a sorted set by installed size, a list in the order of loading,
// sets of reverse dependencies, and a string that expires. One Update for each package makes all facts about it one commit, and
// one View answers all questions as of one moment (store.go). Then it closes, opens, merges, checks and deletes.
//
// After each step it computes everything that should be stored a second time, from the file alone with plain Go maps, and
// compares (verify.go). The first difference ends it with status 1. The store is in a temporary directory, unless -dir names
// an empty one to keep. Without a dpkg status file, sixty packages of Debian 12 that come with the program take its place.
package main

import (
	"bytes"
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
)

//go:embed testdata/status.sample
var sample []byte

const defaultStatus = "/var/lib/dpkg/status"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	t := tour{out: stdout}
	set := flag.NewFlagSet("packages", flag.ContinueOnError)
	set.SetOutput(stderr)
	status := set.String("status", defaultStatus, "dpkg status `file`; a sample takes the place of the default one if there is none")
	set.StringVar(&t.dir, "dir", "", "`directory` for the store, new or empty, to keep (default a temporary one)")
	set.StringVar(&t.question.Section, "section", "libs", "list the packages of this `section`")
	set.StringVar(&t.question.Needs, "needs", "libc6", "list the packages that depend on this `package`")
	set.StringVar(&t.question.Rank, "rank", "perl-base", "rank this `package` by installed size")
	set.DurationVar(&t.ttl, "ttl", 2*time.Second, "`time` after which the cached summary expires, at least 1ms")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil || set.NArg() > 0 || t.ttl < time.Millisecond {
		set.Usage()
		return errUsage
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
	fmt.Fprintf(stdout, "%d installed packages in %s\n", len(t.packages), *status)
	if !slices.ContainsFunc(t.packages, func(p Package) bool { return p.Name == t.question.Rank }) {
		return fmt.Errorf("no package %q in %s; -rank takes one that is there", t.question.Rank, *status)
	}
	if t.dir == "" {
		if t.dir, err = os.MkdirTemp("", "packages-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(t.dir)) }()
	}
	return t.run(ctx)
}
