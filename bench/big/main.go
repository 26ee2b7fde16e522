// Command big times commands that write very many elements, and what they do to others, on "stave serve" and redis-server.
//
// Each figure is of a command that is the first of its kind in a fresh process, alongside one client that sends a GET and one
// that sends a SET each millisecond. The processor time is without what these two take while nothing else happens. The wait is
// the longest of a GET or a SET during the command. Memory is anonymous memory, two seconds after the command: what it has
// grown by, and how many times as much it is as before when what the result itself takes is not counted. The servers take
// turns in each round; figures are medians over the rounds, but waits are the longest.
//
//	go run ./big                                    everything, about twenty minutes
//	go run ./big -only COPY,MSET -rounds 1 -n 50000 some of it
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/internal/resp"
)

// settings are the options.
type settings struct {
	n, rounds   int
	only, stave string
	dir         string
}

func main() {
	var s settings
	flag.IntVar(&s.n, "n", 200_000, "elements of a command")
	flag.IntVar(&s.rounds, "rounds", 3, "runs of each row")
	flag.StringVar(&s.only, "only", "", "only rows whose names begin with one of these, with commas between")
	flag.StringVar(&s.stave, "stave", "", "`binary` of stave; default: built from this checkout")
	flag.StringVar(&s.dir, "dir", "", "`directory` for the servers' files; default: a temporary one")
	flag.Parse()
	servers.Main("big", func(ctx context.Context, out io.Writer) error { return compare(ctx, s, out) })
}

// compare measures the rows and writes the table.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	if s.n < 1 || s.rounds < 1 {
		return errors.New("-n and -rounds must be positive")
	}
	root, stave, err := servers.Workplace(ctx, s.dir, s.stave)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	s.stave = stave
	fmt.Fprintf(out, "n is %d, %d rounds. Each pair is redis-server, stave.\n\n", s.n, s.rounds)
	fmt.Fprint(out, "| command | CPU, us an element | ratio | GET max, ms | SET max, ms | memory added, MB | without the result, ratio |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows() {
		if !slices.ContainsFunc(strings.Split(s.only, ","), func(name string) bool { return strings.HasPrefix(r.name, name) }) {
			continue
		}
		var samples [2][]sample
		for range s.rounds {
			for i := range samples {
				one, err := r.measure(ctx, s, i == 1, filepath.Join(root, "data"))
				if err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
				samples[i] = append(samples[i], one)
			}
		}
		fmt.Fprintln(out, r.line(s.n, samples))
	}
	return nil
}

// sample is what one run has shown.
type sample struct {
	cpu      time.Duration
	get, set time.Duration // the longest of the clients alongside
	added    int64         // bytes of memory, two seconds later
	left     float64       // memory without the result then, relative to before
}

// measure runs a row in a fresh process.
func (r *row) measure(ctx context.Context, s settings, stave bool, dir string) (one sample, err error) {
	start := servers.StartRedis
	if stave {
		start = func(ctx context.Context, dir string) (*servers.Server, error) {
			return servers.StartStave(ctx, "stave", s.stave, dir)
		}
	}
	v, err := start(ctx, dir)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, v.Stop(), os.RemoveAll(dir)) }()
	args, err := r.ready(v, s.n)
	if err != nil {
		return one, err
	}
	if _, err := v.Settle(ctx); err != nil {
		return one, err
	}
	before, err := v.Memory()
	if err != nil {
		return one, err
	}
	if err := one.time(ctx, v, args); err != nil {
		return one, err
	}
	select {
	case <-ctx.Done():
		return one, ctx.Err()
	case <-time.After(2 * time.Second):
	}
	after, err := v.Memory()
	if err != nil {
		return one, err
	}
	result, err := r.result(v)
	one.added, one.left = after-before, float64(after-result)/float64(before)
	return one, err
}

// result is the memory that the result takes. It deletes it.
func (r *row) result(v *servers.Server) (bytes int64, err error) {
	if r.remove == "" {
		return 0, nil
	}
	for _, sign := range []int64{1, -1} {
		time.Sleep(time.Second) // what has been deleted may be freed in the background
		if _, err := v.Do("MEMORY", "PURGE"); err != nil {
			return 0, err
		}
		memory, err := v.Memory()
		if err != nil {
			return 0, err
		}
		bytes += sign * memory
		if _, err := v.Do("DEL", r.remove); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

// ready fills the server, has it give back what that took beyond the data, and returns the command.
func (r *row) ready(v *servers.Server, n int) (args []string, err error) {
	do := func(args ...string) error {
		_, err := v.Do(args...)
		return err
	}
	if r.prepare != nil {
		if err := r.prepare(n, do); err != nil {
			return nil, err
		}
	}
	args = r.arguments(n)
	if r.dumped {
		reply, err := v.Do("DUMP", "a")
		if err != nil {
			return nil, err
		}
		args = append(args, string(reply.Text))
	}
	return args, do("MEMORY", "PURGE")
}

// idle is for how long the clients alongside run before the command.
const idle = 500 * time.Millisecond

// time runs the command alongside two clients.
func (one *sample) time(ctx context.Context, v *servers.Server, args []string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the clients wait for the server only
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := make(chan struct{})
	var wg sync.WaitGroup
	var errs [2]error
	for i, alongside := range [][]string{{"GET", "alongside"}, {"SET", "alongside:too", "value"}} {
		to := []*time.Duration{&one.get, &one.set}[i]
		wg.Go(func() { *to, errs[i] = longest(ctx, v.Port, begun, alongside) })
	}
	first, err := v.CPU()
	time.Sleep(idle)
	start, failed := v.CPU()
	err = errors.Join(err, failed)
	close(begun)
	began := time.Now()
	_, failed = v.Do(args...)
	took := time.Since(began)
	end, last := v.CPU()
	cancel()
	wg.Wait()
	one.cpu = end - start - time.Duration(float64(start-first)*float64(took)/float64(idle))
	return errors.Join(err, failed, last, errs[0], errs[1])
}

// longest sends a command each millisecond until ctx ends, and returns the longest wait for a reply since begun was closed.
func longest(ctx context.Context, port string, begun <-chan struct{}, args []string) (wait time.Duration, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	command, in := resp.AppendCommandStrings(nil, args...), resp.NewDecoder(conn)
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		sent := time.Now()
		if _, err := conn.Write(command); err != nil {
			return wait, err
		}
		reply, err := in.Read()
		if err = errors.Join(err, reply.Err()); err != nil {
			return wait, err
		}
		select {
		case <-begun:
			wait = max(wait, time.Since(sent))
		default:
		}
	}
	return wait, nil
}

// line is the row of the table.
func (r *row) line(n int, samples [2][]sample) string {
	cpu := pair(samples, func(one sample) float64 { return one.cpu.Seconds() * 1e6 / float64(r.elements(n)) })
	get := pair(samples, func(one sample) float64 { return one.get.Seconds() * 1e3 })
	set := pair(samples, func(one sample) float64 { return one.set.Seconds() * 1e3 })
	added := pair(samples, func(one sample) float64 { return float64(one.added) / 1e6 })
	left := pair(samples, func(one sample) float64 { return one.left })
	return fmt.Sprintf("| %s | %.3g, %.3g | %.1f | %.1f, %.1f | %.1f, %.1f | %.0f, %.0f | %.2f, %.2f |", r.name, median(cpu[0]), median(cpu[1]), median(cpu[1])/median(cpu[0]),
		slices.Max(get[0]), slices.Max(get[1]), slices.Max(set[0]), slices.Max(set[1]), median(added[0]), median(added[1]), median(left[0]), median(left[1]))
}

// pair is a figure of all runs of both servers.
func pair(samples [2][]sample, figure func(sample) float64) (both [2][]float64) {
	for i, list := range samples {
		for _, one := range list {
			both[i] = append(both[i], figure(one))
		}
	}
	return both
}

// median is the lower one of an even number.
func median[T cmp.Ordered](list []T) T { return slices.Sorted(slices.Values(list))[(len(list)-1)/2] }
