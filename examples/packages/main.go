// Packages loads the package database of a Debian system into a store and asks it questions: a small program that uses every
// data type of Stave through the embedded API, and proves what it is told.
//
//	go run ./examples/packages
//	go run ./examples/packages -section admin -needs zlib1g -rank git
//	go run ./examples/packages -status examples/packages/testdata/status.sample -dir /tmp/packages
//
// It shows:
//
//   - a hash for each package, a set for each section, a sorted set by installed size, a list in the order of loading, sets
//     of reverse dependencies, and a string that expires (store.go);
//   - one Update for each package: all that is known about it is one commit over several keys;
//   - one View for all questions: the answers are those of one moment (answers.go);
//   - closing, opening again, merging, checking and deleting (tour.go).
//
// After each step it works the answers out a second time from the file alone, with plain Go maps, and compares them with the
// store's, as it does everything else that is stored (facts.go). The first difference ends it with status 1. The store is in
// a temporary directory, unless -dir names an empty one to keep. Without a dpkg status file, sixty packages of Debian 12 that
// come with the program take its place.
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
		os.Exit(2) // parseOptions has said why.
	default:
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

// options are what the command line says.
type options struct {
	status, dir string
	question    Question
	ttl         time.Duration
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	set := flag.NewFlagSet("packages", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.status, "status", defaultStatus, "dpkg status `file`; a sample takes the place of the default one if there is none")
	set.StringVar(&o.dir, "dir", "", "`directory` for the store, new or empty, to keep (default a temporary one)")
	set.StringVar(&o.question.Section, "section", "libs", "list the packages of this `section`")
	set.StringVar(&o.question.Needs, "needs", "libc6", "list the packages that depend on this `package`")
	set.StringVar(&o.question.Rank, "rank", "perl-base", "rank this `package` by installed size")
	set.DurationVar(&o.ttl, "ttl", 2*time.Second, "`time` after which the cached summary expires")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	if set.NArg() > 0 {
		fmt.Fprintf(stderr, "packages: unexpected argument %q\n", set.Arg(0))
		set.Usage()
		return o, errUsage
	}
	if o.ttl < time.Millisecond {
		fmt.Fprintf(stderr, "packages: -ttl %v: must be at least 1ms\n", o.ttl)
		return o, errUsage
	}
	return o, nil
}

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	packages, source, err := readPackages(o.status)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d installed packages in %s\n", len(packages), source)
	if !slices.ContainsFunc(packages, func(p Package) bool { return p.Name == o.question.Rank }) {
		return fmt.Errorf("no package %q in %s; -rank takes one that is there", o.question.Rank, source)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "packages-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	return newTour(stdout, o, packages).run(ctx)
}

// readPackages reads a status file, or the sample if there is no default one, and says which.
func readPackages(name string) (packages []Package, source string, err error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && name == defaultStatus {
		packages, err = parseStatus(bytes.NewReader(sample), "status.sample")
		return packages, "the sample, for there is no " + defaultStatus, err
	}
	if err != nil {
		return nil, "", err
	}
	defer file.Close() // Nothing was written: the error says nothing.
	packages, err = parseStatus(file, name)
	return packages, name, err
}
