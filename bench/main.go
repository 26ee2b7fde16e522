// Bench measures Stave and prints the tables of docs/appendix/benchmarks.md:
//
//	cd bench && go run . [-n 1000000] [-only speed,memory/set]
//
// Every workload runs in a process of its own, so that no figure depends on what ran before it. The
// cost of disk and kernel is measured together with the store, in the same process and in
// alternating blocks: the ratio stays meaningful on a machine that is not quiet.
//
// It is a module of its own, so that the other stores never become a dependency of this one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// settings are the command line.
type settings struct {
	n       int           // entries of a workload
	only    string        // comma-separated names or groups
	runs    int           // of each workload; figures are medians
	dir     string        // where the stores are made
	profile string        // where profiles go
	timeout time.Duration // of one process
}

func main() {
	var s settings
	var child string
	var step int
	flag.IntVar(&s.n, "n", 1_000_000, "entries of a workload")
	flag.StringVar(&s.only, "only", "", "workloads to run, by name, group or pattern (speed/*/pebble), comma-separated (default all; see -list)")
	flag.IntVar(&s.runs, "runs", 1, "times to run each workload; the figures are medians")
	flag.StringVar(&s.dir, "dir", "", "directory to make the stores in (default a temporary one)")
	flag.StringVar(&s.profile, "profile", "", "directory to write CPU and allocation profiles of the measured parts to")
	flag.DurationVar(&s.timeout, "timeout", 10*time.Minute, "longest time of one process")
	list := flag.Bool("list", false, "list the workloads and end")
	flag.StringVar(&child, "child", "", "run one workload in this process (the command calls itself so)")
	flag.IntVar(&step, "step", 0, "step of that workload")
	flag.Parse()
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *list:
		for _, w := range workloads {
			fmt.Printf("%-24s %s\n", w.name, w.about)
		}
	case child != "":
		err = runChild(s, child, step, os.Stdout)
	default:
		// A signal ends the child that runs, too, and removes the stores.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = runAll(ctx, s, os.Stdout)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runAll runs the chosen workloads and prints the tables.
func runAll(ctx context.Context, s settings, out io.Writer) error {
	chosen, err := choose(s.only)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp(s.dir, "stave-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	fmt.Fprintf(out, "%s\n%d entries, %d run(s) each, %s\n", describeMachine(root), s.n, max(s.runs, 1), time.Now().UTC().Format("2006-01-02"))
	figures := make(figures)
	// The figures are printed even if something later fails or is interrupted.
	return errors.Join(measureAll(ctx, s, chosen, root, figures), printTables(out, figures))
}

// measureAll runs each workload once, and then each once more: what else the machine does at some time hits one run of
// each. The disk is idle when a workload begins, for what the one before has left to write would be its work, too. One
// that fails is an error at the end: the others are measured all the same.
func measureAll(ctx context.Context, s settings, chosen []workload, root string, figures figures) error {
	total := len(chosen) * max(s.runs, 1)
	var failed error
	for run := range max(s.runs, 1) {
		for i, w := range chosen {
			syscall.Sync()
			begin := time.Now()
			fmt.Fprintf(os.Stderr, "[%d/%d] %s", run*len(chosen)+i+1, total, w.name)
			err := runWorkload(ctx, s, w, root, figures)
			if ctx.Err() != nil {
				return errors.Join(failed, fmt.Errorf("%s: %w", w.name, err))
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, ": failed: %v", err)
				failed = errors.Join(failed, fmt.Errorf("%s: %w", w.name, err))
				figures.fail(w.name)
			}
			fmt.Fprintf(os.Stderr, " (%.1f s)\n", time.Since(begin).Seconds())
		}
	}
	return failed
}

// choose finds the workloads that -only names: a name, the first parts of one,
// or a pattern of a name.
func choose(only string) ([]workload, error) {
	if only == "" {
		return workloads, nil
	}
	var chosen []workload
	wanted := strings.Split(only, ",")
	used := make([]bool, len(wanted))
	for _, w := range workloads {
		take := false
		for i, want := range wanted {
			if match, err := w.matches(want); err != nil {
				return nil, fmt.Errorf("-only %s: %w", want, err)
			} else if match {
				take, used[i] = true, true
			}
		}
		if take {
			chosen = append(chosen, w)
		}
	}
	for i, ok := range used {
		if !ok {
			return nil, fmt.Errorf("no workload %q; -list names them", wanted[i])
		}
	}
	return chosen, nil
}
