// Command cold times gets of a store that is not in memory: by many clients at once, alongside one that gets a key that is, on
// "stave serve". What the disk gives to as many threads that read pages of the same files at random is the yardstick. The
// files leave the page cache before each run; all take turns in each round, and figures are medians over the rounds.
//
//	go run ./cold                        a store of 2 GB, about three minutes
//	go run ./cold -stave OLD,NEW         two builds
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// settings are the options.
type settings struct {
	n, clients, rounds int
	run                time.Duration
	stave, dir         string
}

func main() {
	var s settings
	flag.IntVar(&s.n, "n", 2_000_000, "keys, with values of 1,000 bytes")
	flag.IntVar(&s.clients, "clients", 32, "clients of cold keys")
	flag.IntVar(&s.rounds, "rounds", 3, "runs of each")
	flag.DurationVar(&s.run, "run", 3*time.Second, "how long a run takes")
	flag.StringVar(&s.stave, "stave", "", "`binaries` of stave, with commas between; default: built from this checkout")
	flag.StringVar(&s.dir, "dir", "", "`directory` for the store, on the disk in question; default: a temporary one")
	flag.Parse()
	servers.Main("cold", func(ctx context.Context, out io.Writer) error { return compare(ctx, s, out) })
}

// compare makes the store, measures, and writes the table.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	if s.n < 1 || s.clients < 1 || s.rounds < 1 {
		return errors.New("-n, -clients and -rounds must be positive")
	}
	root, stave, err := servers.Workplace(ctx, s.dir, s.stave)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	s.stave = stave
	data := filepath.Join(root, "data")
	if err := fill(data, s.n); err != nil {
		return err
	}
	names := append([]string{"pread"}, strings.Split(s.stave, ",")...)
	samples := make([][]sample, len(names))
	for range s.rounds {
		for i, name := range names {
			if err := forget(data); err != nil {
				return err
			}
			measure := func() (sample, error) { return gets(ctx, name, data, s) }
			if i == 0 {
				measure = func() (sample, error) { return preads(data, s) }
			}
			one, err := measure()
			if err != nil {
				return err
			}
			samples[i] = append(samples[i], one)
		}
	}
	fmt.Fprintf(out, "%d keys, %d clients, %d rounds of %v\n\n| | cold reads/s | CPU us a read | hot gets/s | hot mean, ms | hot p99, ms |\n|---|---|---|---|---|---|\n", s.n, s.clients, s.rounds, s.run)
	for i, list := range samples {
		figure := func(of func(sample) float64) float64 { return median(list, of) }
		if i == 0 { // no server
			fmt.Fprintf(out, "| %s | %.0f | - | - | - | - |\n", names[i], figure(sample.coldRate))
			continue
		}
		fmt.Fprintf(out, "| %s | %.0f | %.1f | %.0f | %.2f | %.2f |\n", filepath.Base(names[i]), figure(sample.coldRate), figure(sample.cpuOfRead), figure(sample.hotRate), figure(sample.hotMean), figure(sample.hotP99))
	}
	return nil
}

// sample is what one run has shown.
type sample struct {
	reads     int64 // cold ones
	took, cpu time.Duration
	hot       []time.Duration // sorted
}

func (s sample) coldRate() float64  { return float64(s.reads) / s.took.Seconds() }
func (s sample) cpuOfRead() float64 { return s.cpu.Seconds() * 1e6 / float64(max(s.reads, 1)) }
func (s sample) hotRate() float64   { return float64(len(s.hot)) / s.took.Seconds() }
func (s sample) hotMean() float64 {
	sum := time.Duration(0)
	for _, d := range s.hot {
		sum += d
	}
	return sum.Seconds() * 1e3 / float64(max(len(s.hot), 1))
}
func (s sample) hotP99() float64 {
	if len(s.hot) == 0 {
		return 0
	}
	return s.hot[len(s.hot)*99/100].Seconds() * 1e3
}

func median(list []sample, of func(sample) float64) float64 {
	figures := make([]float64, 0, len(list))
	for _, one := range list {
		figures = append(figures, of(one))
	}
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}

func key(i int) string { return fmt.Sprintf("key:%09d", i) }

// fill makes the store.
func fill(dir string, n int) (err error) {
	s, err := db.Open(dir, &db.Options{Sync: db.SyncNone})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	value := make([]byte, 1000)
	for i := range n {
		if err := s.String(key(i)).Put(value); err != nil {
			return err
		}
	}
	return s.Sync()
}

// forget makes the system forget what it has in memory of the data files, which nobody has mapped.
func forget(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.data"))
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// preads reads pages of the data files at random, by as many threads as there are clients.
func preads(dir string, s settings) (one sample, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.data"))
	if err != nil {
		return one, err
	}
	var files []*os.File
	var sizes []int64
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return one, err
		}
		defer f.Close() //nolint:errcheck // it is read only
		info, err := f.Stat()
		if err != nil {
			return one, err
		}
		files, sizes = append(files, f), append(sizes, info.Size())
	}
	return together(s, func(stop *atomic.Bool) (n int64, err error) {
		buf := make([]byte, 1100)
		for ; !stop.Load() && err == nil; n++ {
			i := rand.IntN(len(files))
			if _, err = files[i].ReadAt(buf, rand.Int64N(max(sizes[i]-int64(len(buf)), 1))); errors.Is(err, io.EOF) {
				err = nil
			}
		}
		return n, err
	})
}

// together runs read by as many goroutines as there are clients, for a while.
func together(s settings, read func(stop *atomic.Bool) (int64, error)) (one sample, err error) {
	var stop atomic.Bool
	var reads atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, s.clients)
	began := time.Now()
	for i := range errs {
		wg.Go(func() {
			n, err := read(&stop)
			reads.Add(n)
			errs[i] = err
		})
	}
	time.Sleep(s.run)
	stop.Store(true)
	wg.Wait()
	return sample{reads: reads.Load(), took: time.Since(began)}, errors.Join(errs...)
}

// gets gets keys at random from a server on the store, alongside one client that gets the same key again and again.
func gets(ctx context.Context, binary, dir string, s settings) (one sample, err error) {
	v, err := servers.StartStave(ctx, "stave", binary, dir)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, v.Stop()) }()
	if _, err := v.Settle(ctx); err != nil {
		return one, err
	}
	if _, err := v.Do("GET", key(0)); err != nil {
		return one, err
	}
	cpu, err := v.CPU()
	if err != nil {
		return one, err
	}
	var hot []time.Duration
	var wg sync.WaitGroup
	var failed error
	alongside, end := context.WithCancel(ctx)
	wg.Go(func() { hot, failed = getOften(alongside, v.Port) })
	one, err = together(s, func(stop *atomic.Bool) (n int64, err error) {
		c, err := dial(v.Port)
		if err != nil {
			return 0, err
		}
		defer c.conn.Close() //nolint:errcheck // only replies count
		for ; !stop.Load() && err == nil; n++ {
			err = c.get(key(rand.IntN(s.n)))
		}
		return n, err
	})
	end()
	wg.Wait()
	used, last := v.CPU()
	slices.SortFunc(hot, cmp.Compare)
	one.hot, one.cpu = hot, used-cpu
	return one, errors.Join(err, failed, last)
}

// getOften gets a key every millisecond until ctx ends, and returns how long each reply took.
func getOften(ctx context.Context, port string) (took []time.Duration, err error) {
	c, err := dial(port)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close() //nolint:errcheck // only replies count
	for ctx.Err() == nil && err == nil {
		time.Sleep(time.Millisecond)
		sent := time.Now()
		err = c.get(key(0))
		took = append(took, time.Since(sent))
	}
	return took, err
}

type client struct {
	conn net.Conn
	in   *resp.Decoder
	out  []byte
}

func dial(port string) (*client, error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: resp.NewDecoder(conn)}, nil
}

func (c *client) get(key string) error {
	c.out = resp.AppendCommandStrings(c.out[:0], "GET", key)
	if _, err := c.conn.Write(c.out); err != nil {
		return err
	}
	reply, err := c.in.Read()
	if err == nil && len(reply.Text) == 0 {
		err = fmt.Errorf("%s: no value", key)
	}
	return err
}
