package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
)

// A full synchronization has two writers at the master, whose waits before it are measured for so long.
const (
	writers = 2
	before  = 2 * time.Second
)

// fill sets the keys, a hundred in a command and a hundred commands together.
func fill(s settings, on *servers.Server) error {
	value := strings.Repeat("x", s.size)
	for n := 0; n < s.keys; {
		var commands [][]string
		for len(commands) < 100 && n < s.keys {
			args := []string{"MSET"}
			for ; n < s.keys && len(args) < 200; n++ {
				args = append(args, key(n), value)
			}
			commands = append(commands, args)
		}
		if err := on.Send(commands); err != nil {
			return err
		}
	}
	return nil
}

func key(n int) string { return "key:" + strconv.Itoa(n) }

// waits are how long clients have waited for replies, before a moment and after it.
type waits struct {
	mu            sync.Mutex
	before, after []time.Duration
	refused       int // replies after it that were errors
}

// ask sends one command after the other until ctx ends, with a pause between two. It is after the moment once that is set.
func (w *waits) ask(ctx context.Context, on *servers.Server, pause time.Duration, moment *atomic.Bool, command func() []string) error {
	c, err := dial(ctx, on)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	for ctx.Err() == nil {
		time.Sleep(pause)
		isAfter, sent := moment.Load(), time.Now()
		reply, err := c.do(command()...)
		if err != nil {
			return err
		}
		took := time.Since(sent)
		w.mu.Lock()
		switch {
		case !isAfter:
			w.before = append(w.before, took)
		case reply.IsError():
			w.refused++
		default:
			w.after = append(w.after, took)
		}
		w.mu.Unlock()
	}
	return nil
}

// synchronization is what one has shown.
type synchronization struct {
	rate         float64 // keys a second
	idle, loaded float64 // p99 of a SET at the master before it and meanwhile, ms
	read         time.Duration
	refused      int // reads at the replica
}

// synchronize times one.
func (v *side) synchronize(ctx context.Context, s settings) (one synchronization, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the clients wait for the servers only
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	var begun atomic.Bool
	var written, read waits
	var working sync.WaitGroup
	errs := make([]error, writers+1)
	value := strings.Repeat("y", s.size)
	for i := range writers {
		working.Go(func() {
			errs[i] = written.ask(own, v.master, 0, &begun, func() []string { return []string{"SET", key(rand.IntN(s.keys)), value} })
		})
	}
	working.Go(func() {
		errs[writers] = read.ask(own, v.replica, time.Millisecond, &begun, func() []string { return []string{"GET", key(rand.IntN(s.keys))} })
	})
	select {
	case <-time.After(before):
	case <-ctx.Done():
	}
	begun.Store(true)
	took, err := v.follow(ctx)
	cancel()
	working.Wait()
	if err = errors.Join(append(errs, err, ctx.Err())...); err != nil {
		return one, err
	}
	one = synchronization{rate: float64(s.keys) / took.Seconds(), idle: ms(quantile(written.before, 0.99)), loaded: ms(quantile(written.after, 0.99)), refused: read.refused}
	if len(read.after) > 0 {
		one.read = quantile(read.after, 1)
	}
	return one, v.awaitCaughtUp(ctx)
}

// syncs are the table of full synchronizations.
func syncs(ctx context.Context, s settings, sides []*side, out io.Writer) error {
	fmt.Fprint(s.progress, "sync ")
	var empty, full [2][]synchronization
	for round := range s.rounds {
		for i := range sides {
			fmt.Fprint(s.progress, ".")
			at := (round + i) % len(sides)
			v := sides[at]
			if _, err := v.replica.Do("REPLICAOF", "NO", "ONE"); err != nil {
				return err
			}
			for _, server := range []*servers.Server{v.master, v.replica} {
				if _, err := server.Do("FLUSHALL"); err != nil {
					return err
				}
			}
			if err := fill(s, v.master); err != nil {
				return err
			}
			for _, to := range []*[]synchronization{&empty[at], &full[at]} {
				if _, err := v.replica.Do("REPLICAOF", "NO", "ONE"); err != nil {
					return err
				}
				if _, err := v.replica.Do("SET", "of its own", "1"); err != nil { // so that it cannot go on where it was
					return err
				}
				if err := settle(ctx, s, sides); err != nil {
					return err
				}
				one, err := v.synchronize(ctx, s)
				if err != nil {
					return fmt.Errorf("%s: %w", v.name, err)
				}
				*to = append(*to, one)
			}
		}
	}
	fmt.Fprintln(s.progress)
	writeSyncs(out, empty, full)
	return nil
}

func writeSyncs(out io.Writer, empty, full [2][]synchronization) {
	fmt.Fprint(out, "\n| full synchronization | keys a second | p99 of SET at the master before, ms | meanwhile, ms | ratio | longest GET at the replica, ms | GETs refused |\n|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		of   [2][]synchronization
	}{{"empty replica", empty}, {"replica with keys", full}} {
		pair := func(format string, figure func(synchronization) float64) string {
			return fmt.Sprintf(format+", "+format, medianOf(row.of[0], figure), medianOf(row.of[1], figure))
		}
		longest := func(side int) (d time.Duration) {
			for _, one := range row.of[side] {
				d = max(d, one.read)
			}
			return d
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %.1f, %.1f | %s |\n", row.name,
			pair("%.0f", func(o synchronization) float64 { return o.rate }), pair("%.2f", func(o synchronization) float64 { return o.idle }),
			pair("%.2f", func(o synchronization) float64 { return o.loaded }), pair("%.1f", func(o synchronization) float64 { return o.loaded / o.idle }),
			ms(longest(0)), ms(longest(1)), pair("%.0f", func(o synchronization) float64 { return float64(o.refused) }))
	}
}
