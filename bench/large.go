package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// largeSteps are the sizes of single values in MiB, one a step. None is longer
// than a quarter of -large, so that a small run stays small.
var largeSteps = []int{1, 16, 64, 256, 512}

func (c *child) largeSize() int { return min(largeSteps[c.step]<<20, bitcask.MaxValue, int(c.large/4)) }

// largeValue is a value of n bytes that differ.
func largeValue(n int) []byte {
	value := make([]byte, n)
	r := rand.NewChaCha8([32]byte{2})
	_, _ = r.Read(value) // never fails
	return value
}

// largeValues puts and gets one value through a handle and records the peak of
// the memory of the process above what it held before, the caller's value
// included.
func largeValues(c *child) error {
	s, err := db.Open(c.path("store"), &db.Options{NoMerge: true})
	if err != nil {
		return err
	}
	value := largeValue(c.largeSize())
	put := func() error { return s.String("large").Put(value) }
	get := func() error {
		got, err := s.String("large").Get()
		if err == nil && !bytes.Equal(got, value) {
			err = errLost
		}
		return err
	}
	err = errors.Join(c.recordPeak("put", len(value), put), c.recordPeak("get", len(value), get))
	return errors.Join(err, s.Close())
}

// servedValues does the same over a socket. The client adds nothing to the
// process: it sends the value from where it lies and compares the reply as it
// arrives.
func servedValues(c *child) (err error) {
	s, err := db.Open(c.path("store"), &db.Options{NoMerge: true})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, s.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	options := &server.Options{MaxArgument: bitcask.MaxValue, MaxReply: 2 * bitcask.MaxValue, ClientMemory: 8 * bitcask.MaxValue}
	go func() { served <- server.Serve(ctx, listener, s, options) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served, s.Close())
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	value := largeValue(c.largeSize())
	set := func() error {
		if _, err := fmt.Fprintf(conn, "*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$%d\r\n", len(value)); err != nil {
			return err
		}
		if _, err := conn.Write(value); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "\r\n"); err != nil {
			return err
		}
		return expect(in, "+OK\r\n")
	}
	get := func() error {
		if _, err := io.WriteString(conn, "*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n"); err != nil {
			return err
		}
		if err := expect(in, fmt.Sprintf("$%d\r\n", len(value))); err != nil {
			return err
		}
		buf := make([]byte, 64<<10)
		for rest := value; len(rest) > 0; {
			n, err := in.Read(buf[:min(len(buf), len(rest))])
			if err != nil {
				return err
			}
			if !bytes.Equal(buf[:n], rest[:n]) {
				return errLost
			}
			rest = rest[n:]
		}
		return expect(in, "\r\n")
	}
	return errors.Join(c.recordPeak("put", len(value), set), c.recordPeak("get", len(value), get))
}

// expect reads exactly the text.
func expect(in io.Reader, text string) error {
	got := make([]byte, len(text))
	if _, err := io.ReadFull(in, got); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("reply %q, want %q", got, text)
	}
	return nil
}

// recordPeak runs fn and records its time and how far the resident memory of
// the process rose meanwhile, mapped pages of files included.
func (c *child) recordPeak(part string, size int, fn func() error) error {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets the peak
		return err
	}
	before, err := memoryStatus("VmRSS:")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := fn(); err != nil {
		return fmt.Errorf("%s of %d bytes: %w", part, size, err)
	}
	took := time.Since(began)
	peak, err := memoryStatus("VmHWM:")
	at := fmt.Sprintf("%s-%d", part, c.step)
	c.record(at+"-time", float64(took))
	c.record(at+"-rate", float64(size)/took.Seconds())
	c.record(at+"-peak", float64(peak-before))
	c.record(at+"-ratio", float64(peak-before)/float64(size))
	return err
}

// largeEach is the length of the values in the large store, largeCommit how many
// are loaded at once, and largeLimit the memory that the process may want.
const (
	largeEach   = 4096
	largeCommit = 256
	largeLimit  = 1 << 30
)

// largeStore makes a store of -large bytes under a memory limit, reads it at
// random, overwrites half of it, merges it and, in a second step, opens it
// again.
func largeStore(c *child) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(largeLimit)
	}
	peak := watchAnonymous()
	l := &largeRun{child: c, n: int(c.large / largeEach), scratch: largeValue(largeEach + 1<<16)}
	began := time.Now()
	var err error
	if l.store, err = db.Open(c.path("store"), &db.Options{NoMerge: true}); err != nil {
		return err
	}
	if c.step == 0 {
		err = l.fill()
	} else {
		c.record("open", float64(time.Since(began)))
		err = l.read("read-opened")
	}
	runtime.GC()
	rss, rssErr := anonymousRSS()
	c.record(fmt.Sprintf("rss-%d", c.step), float64(rss))
	c.record(fmt.Sprintf("peak-%d", c.step), float64(peak()))
	return errors.Join(err, rssErr, l.store.Close())
}

type largeRun struct {
	*child
	store   *db.Store
	n       int
	scratch []byte
}

// fill is everything before the store is closed.
func (l *largeRun) fill() error {
	if err := l.write("load", l.n, func(i int) int { return i }); err != nil {
		return err
	}
	if err := l.read("read"); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(11, 11))
	if err := l.write("overwrite", l.n/2, func(int) int { return r.IntN(l.n) }); err != nil {
		return err
	}
	if err := l.recordLength("before"); err != nil {
		return err
	}
	began := time.Now()
	if err := (dbKV{l.store}).merge(); err != nil {
		return err
	}
	l.record("merge", float64(time.Since(began)))
	l.reached("merge", began)
	return errors.Join(l.recordLength("after"), l.read("read-merged"))
}

func (l *largeRun) recordLength(part string) error {
	l.record(part, float64(l.store.Stats().Bytes))
	return nil
}

// write puts n values in commits. A value begins with the number of its key.
func (l *largeRun) write(part string, n int, pick func(i int) int) error {
	pairs := make([]db.Pair, 0, largeCommit)
	buffers := make([]byte, largeCommit*largeEach)
	began := time.Now()
	for from := 0; from < n; from += largeCommit {
		pairs = pairs[:0]
		for i := from; i < min(from+largeCommit, n); i++ {
			key := pick(i)
			value := buffers[len(pairs)*largeEach:][:largeEach]
			copy(value, l.scratch[i%(1<<16):])
			binary.LittleEndian.PutUint64(value, uint64(key))
			pairs = append(pairs, db.Pair{Key: keyAt(key), Value: value})
		}
		if err := l.store.Keyspace().Put(pairs...); err != nil {
			return err
		}
	}
	l.record(part+"-rate", float64(n)*largeEach/time.Since(began).Seconds())
	l.reached(part, began)
	return nil
}

// read gets values at random, verifies them and records the time of one.
func (l *largeRun) read(part string) error {
	r := rand.New(rand.NewPCG(12, 12))
	var dst []byte
	reads := min(l.n, 100_000)
	began := time.Now()
	for range reads {
		key := r.IntN(l.n)
		var err error
		if dst, err = l.store.String(keyAt(key)).AppendTo(dst[:0]); err != nil {
			return fmt.Errorf("%s: key %d: %w", part, key, err)
		}
		if len(dst) != largeEach || binary.LittleEndian.Uint64(dst) != uint64(key) {
			return errLost
		}
	}
	l.record(part, float64(time.Since(began))/float64(reads))
	l.reached(part, began)
	return nil
}

// reached says how far the run has come: with 20 GB each part takes minutes.
func (l *largeRun) reached(part string, began time.Time) {
	fmt.Fprintf(os.Stderr, " %s %.1f s;", part, time.Since(began).Seconds())
}

// watchAnonymous samples the memory of the process that no file backs until
// the function it returns is called, which returns the most that was seen.
func watchAnonymous() (stop func() int64) {
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if rss, err := anonymousRSS(); err == nil {
				most = max(most, rss)
			}
			select {
			case <-done:
				result <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-result
	}
}

// largeTables are of values and stores that are large.
func largeTables() []table {
	var sizes []string
	for _, mib := range largeSteps {
		sizes = append(sizes, fmt.Sprintf("%d MiB", mib))
	}
	values := func(label, name, part string, format func(float64) string) row {
		r := row{label: label}
		for step := range largeSteps {
			r.cells = append(r.cells, fig(format, fmt.Sprintf("large/%s-%d-%s", name, step, part)))
		}
		return r
	}
	at := func(name string) string { return "large/store/" + name }
	one := func(label, name string, format func(float64) string) row {
		return row{label: label, cells: []cell{fig(format, at(name))}}
	}
	return []table{
		{"one value, at most a quarter of -large", sizes, []row{
			values("put", "value/put", "time", millis),
			values("put, peak of RSS above the value / its size", "value/put", "ratio", times),
			values("get", "value/get", "time", millis),
			values("get, peak of RSS above the value / its size", "value/get", "ratio", times),
			values("SET over a socket", "server/put", "time", millis),
			values("SET, peak of RSS / size", "server/put", "ratio", times),
			values("GET over a socket", "server/get", "time", millis),
			values("GET, peak of RSS / size", "server/get", "ratio", times),
		}},
		{"a store of -large bytes, values of 4 KiB, memory limit 1 GiB", []string{""}, []row{
			one("load, 256 in a commit", "load-rate", rate), one("a read at random", "read", micros),
			one("overwrite half, 256 in a commit", "overwrite-rate", rate), one("disk before merging", "before", mega),
			one("merge of everything", "merge", millis), one("disk after it", "after", mega),
			one("a read at random after it", "read-merged", micros),
			one("RssAnon then", "rss-0", mega), one("RssAnon, peak", "peak-0", mega),
			one("open", "open", millis), one("a read at random after it ", "read-opened", micros),
			one("RssAnon after opening and reading", "rss-1", mega), one("RssAnon, peak while opening and reading", "peak-1", mega),
		}},
	}
}

func rate(v float64) string { return fmt.Sprintf("%.0f MB/s", v/1e6) }
