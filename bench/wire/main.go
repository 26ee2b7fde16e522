// Command wire times the transports of "stave serve" against redis-server, with redis-benchmark as
// the client: throughput, p99, and processor time of the server for one command.
//
// All servers run at once, and are asked in turns: within a round each server gets the same run, one
// after the other, and the next round begins with another server. A ratio is the median of the
// ratios within the rounds, so that what slows the machine down for a while changes it little.
// Redis syncs its append-only file once a second, as "stave serve" syncs its log; both rewrite or
// merge as their defaults have it, and a child that Redis forks for that is not counted. A run begins
// when all servers have been idle for a moment.
//
// XREADGROUP+XACK has a client of its own (consume.go), because redis-benchmark cannot acknowledge
// what it has read. Its row counts pairs of the two.
//
//	go run ./wire                                        everything, half an hour
//	go run ./wire -commands SET,GET -clients 50          some of it
//	go run ./wire -stave old=/path/to/stave -stave new=/path/to/another
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
)

// settings are the options of a comparison.
type settings struct {
	commands   []workload
	pipelines  []int
	clients    []int
	staves     []string // LABEL=BINARY; none: built from this checkout
	transports []string
	rounds     int
	run        time.Duration // of one run of redis-benchmark against redis-server
	size       int           // bytes of a value
	keys       int           // how many keys, fields and members there are
	tries      int           // of each pair of commands whose order is looked at; 0 for none
	dir        string
	progress   io.Writer
}

func main() {
	s, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = compare(ctx, s, os.Stdout)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
}

// parse reads the options.
func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("wire", flag.ContinueOnError)
	commands := f.String("commands", "", "only these, with commas between; default all: "+strings.Join(names(), ","))
	pipelines := f.String("pipelines", "1,16", "lengths of pipelines")
	clients := f.String("clients", "1,50,500", "numbers of clients")
	transports := f.String("transports", "goroutines,event-loop", "transports of stave serve")
	f.Func("stave", "`LABEL=BINARY` to time; may be repeated; default: built from this checkout", func(text string) error {
		if label, binary, ok := strings.Cut(text, "="); !ok || label == "" || binary == "" {
			return fmt.Errorf("%q is not LABEL=BINARY", text)
		}
		s.staves = append(s.staves, text)
		return nil
	})
	f.IntVar(&s.rounds, "rounds", 5, "runs of each server in a cell")
	f.DurationVar(&s.run, "run", time.Second, "how long a run takes redis-server, about")
	f.IntVar(&s.tries, "order", 2000, "how often to try whether a command overtakes one of another connection; 0 for not at all")
	f.IntVar(&s.size, "size", 128, "`bytes` of a value")
	f.IntVar(&s.keys, "keys", 100_000, "keys, fields, members, and entries of a stream")
	f.StringVar(&s.dir, "dir", "", "`directory` for the servers' files; default: a temporary one")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.progress, s.transports = os.Stderr, strings.Split(*transports, ",")
	for _, w := range workloads {
		if *commands == "" || slices.Contains(strings.Split(strings.ToUpper(*commands), ","), w.name) {
			s.commands = append(s.commands, w)
		}
	}
	if want := len(strings.Split(*commands, ",")); *commands != "" && len(s.commands) != want {
		return s, fmt.Errorf("-commands %s: known are %s", *commands, strings.Join(names(), ","))
	}
	if s.tries < 0 || s.rounds < 1 || s.run <= 0 || s.size < 1 || s.keys < 1 {
		return s, errors.New("-rounds, -run, -size and -keys must be positive, and -order not negative")
	}
	if s.pipelines, err = numbers(*pipelines); err == nil {
		s.clients, err = numbers(*clients)
	}
	return s, err
}

func names() (list []string) {
	for _, w := range workloads {
		list = append(list, w.name)
	}
	return list
}

func numbers(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a list of positive numbers", text)
		}
		list = append(list, n)
	}
	return list, nil
}

// compare starts the servers, times all cells and writes the tables.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(s.dir, "stave-wire-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if len(s.staves) == 0 {
		binary := filepath.Join(dir, "stave")
		if err := servers.Build(ctx, binary); err != nil {
			return err
		}
		s.staves = []string{"stave=" + binary}
	}
	all, err := startAll(ctx, s, dir)
	defer func() {
		for _, v := range all {
			err = errors.Join(err, v.Stop())
		}
	}()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, describe(s, all))
	var cells []*cell
	for _, pipeline := range s.pipelines {
		for _, clients := range s.clients {
			fmt.Fprintf(out, "\nPipeline %d, %d clients:\n\n%s", pipeline, clients, header(all))
			for _, w := range s.commands {
				c := &cell{settings: s, workload: w, pipeline: pipeline, clients: clients}
				if err := c.measure(ctx, all); err != nil {
					return fmt.Errorf("%s, pipeline %d, %d clients: %w", w.name, pipeline, clients, err)
				}
				fmt.Fprint(out, c.row())
				cells = append(cells, c)
			}
		}
	}
	fmt.Fprintf(out, "\n%s", summary(cells, all))
	if s.tries == 0 {
		return nil
	}
	return compareOrder(ctx, s, all, out)
}

// startAll starts redis-server, which is the first, and stave with each transport. What has been
// started is returned also with an error.
func startAll(ctx context.Context, s settings, dir string) (list []*servers.Server, err error) {
	next := func() string { return filepath.Join(dir, strconv.Itoa(len(list))) }
	v, err := servers.StartRedis(ctx, next())
	if err != nil {
		return nil, err
	}
	list = append(list, v)
	for _, stave := range s.staves {
		label, binary, _ := strings.Cut(stave, "=")
		for _, transport := range s.transports {
			if v, err = servers.StartStave(ctx, label+" "+transport, binary, next(), "--transport", transport); err != nil {
				return list, err
			}
			list = append(list, v)
		}
	}
	return list, nil
}
