package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/internal/resp"
)

// writers is how many clients write to a server at once.
const writers = 4

// full writes to two Staves for some time, each client one key after another: to a cache that is full, new keys; to one
// without a bound, as many keys again and again. It says how far the cache was from its bound, and what writers waited.
func full(ctx context.Context, s settings, out io.Writer) (err error) {
	root, stave, err := servers.Workplace(ctx, s.dir, s.stave)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	bounded, err := servers.StartStave(ctx, "full", stave, filepath.Join(root, "full"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bounded.Stop()) }()
	if _, err := bounded.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", strconv.Itoa(indexed*s.keys)); err != nil {
		return err
	}
	free, err := servers.StartStave(ctx, "free", stave, filepath.Join(root, "free"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free.Stop()) }()

	ctx, stop := context.WithTimeout(ctx, s.full)
	defer stop()
	var working sync.WaitGroup
	loads := []*load{{server: bounded, rate: s.rate}, {server: free, rate: s.rate, again: s.keys / writers}}
	for _, l := range loads {
		for i := range writers {
			working.Go(func() { l.fail(l.write(ctx, i)) })
		}
	}
	far := watch(ctx, bounded, s.keys, loads)
	stop()
	working.Wait()
	for _, l := range loads {
		if l.err != nil {
			return l.err
		}
	}
	fmt.Fprintf(out, "%v, %d keys, %d clients: %d writes to the full cache, %d to the other; keys at most %.2f %% from the bound\n\n", s.full, s.keys, writers, loads[0].waits.n(), loads[1].waits.n(), 100*far)
	fmt.Fprint(out, "| writers' wait, ms | p50 | p99 | p99.9 | max |\n|---|---|---|---|---|\n")
	for _, l := range loads {
		w := &l.waits
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", l.server.Name, w.percentile(0.5), w.percentile(0.99), w.percentile(0.999), w.percentile(1))
	}
	return nil
}

// watch counts the keys of a cache each second once it is full, and returns how far they were from the bound, as a part of it.
func watch(ctx context.Context, v *servers.Server, bound int, loads []*load) (far float64) {
	for isFull := false; ; {
		select {
		case <-ctx.Done():
			return far
		case <-time.After(time.Second):
		}
		reply, err := v.Do("DBSIZE")
		if err != nil {
			loads[0].fail(err)
			return far
		}
		d := float64(reply.Int)/float64(bound) - 1
		if isFull = isFull || d > -0.01; isFull {
			far = max(far, math.Abs(d))
		}
	}
}

// load is what some clients do to a server.
type load struct {
	server *servers.Server
	again  int // each client has so many keys; 0: another one each time
	rate   int // each client writes so many a second; 0: as many as it can
	waits  waits

	mu  sync.Mutex // guards the rest
	err error
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, err)
}

// write is one client.
func (l *load) write(ctx context.Context, client int) (err error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+l.server.Port)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	in, value := resp.NewDecoder(bufio.NewReader(conn)), strings.Repeat("v", 100)
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		if l.rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(l.rate))))
		}
		n := i
		if l.again > 0 {
			n %= l.again
		}
		from := time.Now()
		if _, err := conn.Write(resp.AppendCommandStrings(nil, "SET", fmt.Sprintf("key:%d:%09d", client, n), value)); err != nil {
			return err
		}
		reply, err := in.Read()
		if err = errors.Join(err, reply.Err()); err != nil {
			return err
		}
		l.waits.add(time.Since(from))
	}
	return nil
}

// waits counts durations by their size, in steps of a sixteenth.
type waits struct{ counts [1024]atomic.Int64 }

func (w *waits) add(d time.Duration) {
	step := int(16 * math.Log2(max(1, float64(d)/float64(time.Microsecond))))
	w.counts[min(step, len(w.counts)-1)].Add(1)
}

func (w *waits) n() (n int64) {
	for i := range w.counts {
		n += w.counts[i].Load()
	}
	return n
}

// percentile returns the wait in ms that a part of all did not exceed.
func (w *waits) percentile(part float64) string {
	left := int64(part * float64(w.n()))
	for i := range w.counts {
		if left -= w.counts[i].Load(); left <= 0 {
			return fmt.Sprintf("%.2f", math.Exp2(float64(i+1)/16)/1000)
		}
	}
	return "-"
}
