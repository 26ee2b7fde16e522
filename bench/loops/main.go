// Command loops compares "stave serve --loops 1" with several event loops, under a light client: it sends pipelines that were
// prepared before the run, and counts the bytes of their replies.
//
// All servers run at once and are asked in turns. A rate is the median of the rounds. On a machine whose N processors the
// client shares, N loops cannot exceed N*s/(s+c) of one loop's rate, s and c being the processor time of a command in the
// server, with one loop, and in the client; the table has the ratio to that as well.
//
//	go run ./loops                             one loop and two
//	go run ./loops -loops 1,2,4,8 -clients 64
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/internal/resp"
)

type settings struct {
	loops    []string // the first is what the others are compared with
	clients  int
	pipeline int
	rounds   int
	run      time.Duration
	keys     int
	stave    string
	dir      string
}

func main() {
	var s settings
	loops := flag.String("loops", "1,2", "numbers of loops, with commas between; the others are compared with the first")
	flag.IntVar(&s.clients, "clients", 32, "connections")
	flag.IntVar(&s.pipeline, "pipeline", 16, "commands that are sent together")
	flag.IntVar(&s.rounds, "rounds", 5, "runs of each server")
	flag.DurationVar(&s.run, "run", time.Second, "how long one takes")
	flag.IntVar(&s.keys, "keys", 100_000, "keys")
	flag.StringVar(&s.stave, "stave", "", "`binary` of stave; default: built from this checkout")
	flag.StringVar(&s.dir, "dir", "", "`directory` for the servers' files; default: a temporary one")
	flag.Parse()
	s.loops = strings.Split(*loops, ",")
	servers.Main("loops", func(ctx context.Context, out io.Writer) error { return compare(ctx, s, out) })
}

// workload is a command of which each client sends many.
type workload struct {
	name    string
	command func(i int) []string // the i-th of a client
}

// key spreads over all keys, whichever client asks.
func (s settings) key(i int) string { return fmt.Sprintf("key:%09d", i*7919%s.keys) }

func (s settings) workloads() []workload {
	value := strings.Repeat("v", 100)
	return []workload{
		{"GET", func(i int) []string { return []string{"GET", s.key(i)} }},
		{"SET", func(i int) []string { return []string{"SET", s.key(i), value} }},
		{"HGETALL of 100", func(i int) []string { return []string{"HGETALL", "hash:" + strconv.Itoa(i%100)} }},
		{"ZRANGE of 100", func(i int) []string { return []string{"ZRANGE", "zset:" + strconv.Itoa(i%100), "0", "99"} }},
		{"EVAL", func(i int) []string {
			return []string{"EVAL", "return redis.call('GET', KEYS[1])", "1", s.key(i)}
		}},
	}
}

// fill makes the keys.
func (s settings) fill(v *servers.Server) error {
	var list [][]string
	for i := range s.keys {
		list = append(list, []string{"SET", s.key(i), strings.Repeat("v", 100)})
	}
	for i := range 100 {
		hash, zset := []string{"HSET", "hash:" + strconv.Itoa(i)}, []string{"ZADD", "zset:" + strconv.Itoa(i)}
		for j := range 100 {
			hash = append(hash, fmt.Sprintf("field:%03d", j), "value")
			zset = append(zset, strconv.Itoa(j), fmt.Sprintf("member:%03d", j))
		}
		list = append(list, hash, zset)
	}
	for part := range slices.Chunk(list, 1000) {
		if err := v.Send(part); err != nil {
			return err
		}
	}
	return nil
}

// compare starts the servers, measures, and writes the table.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	if s.clients < 1 || s.pipeline < 1 || s.rounds < 1 || s.keys < 1 {
		return errors.New("-clients, -pipeline, -rounds and -keys must be positive")
	}
	root, stave, err := servers.Workplace(ctx, s.dir, s.stave)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	s.stave = stave
	var all []*servers.Server
	defer func() {
		for _, v := range all {
			err = errors.Join(err, v.Stop())
		}
	}()
	for _, loops := range s.loops {
		v, err := servers.StartStave(ctx, loops, s.stave, filepath.Join(root, loops), "--loops", loops)
		if err != nil {
			return err
		}
		all = append(all, v)
		if err := s.fill(v); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d clients, pipelines of %d, %d rounds of %v, %d processors\n\n", s.clients, s.pipeline, s.rounds, s.run, runtime.NumCPU())
	fmt.Fprint(out, "| command | loops | commands/s | of one loop's | server, us | client, us | of what is possible |\n|---|---|---|---|---|---|---|\n")
	for _, w := range s.workloads() {
		samples := make([][]sample, len(all))
		for range s.rounds {
			for i, v := range all {
				if _, err := v.Settle(ctx); err != nil {
					return err
				}
				one, err := s.measure(ctx, v, w)
				if err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
				samples[i] = append(samples[i], one)
			}
		}
		base := median(samples[0])
		for i, v := range all {
			m := median(samples[i])
			loops, _ := strconv.ParseFloat(v.Name, 64)
			possible := min(loops, float64(runtime.NumCPU())) * base.server / (base.server + base.client)
			ratio, of := m.rate/base.rate, "-"
			if i > 0 {
				of = fmt.Sprintf("%.2f", ratio/possible)
			}
			fmt.Fprintf(out, "| %s | %s | %.0f | %.2f | %.2f | %.2f | %s |\n", w.name, v.Name, m.rate, ratio, m.server, m.client, of)
		}
	}
	return nil
}

// sample is what one run has shown: commands a second, and microseconds of processor time of one.
type sample struct{ rate, server, client float64 }

func median(list []sample) sample {
	of := func(figure func(sample) float64) float64 {
		var all []float64
		for _, one := range list {
			all = append(all, figure(one))
		}
		slices.Sort(all)
		return all[(len(all)-1)/2]
	}
	return sample{of(func(s sample) float64 { return s.rate }), of(func(s sample) float64 { return s.server }), of(func(s sample) float64 { return s.client })}
}

// measure is one run.
func (s settings) measure(ctx context.Context, v *servers.Server, w workload) (one sample, err error) {
	clients := make([]*client, s.clients)
	for i := range clients {
		if clients[i], err = s.connect(v.Port, w, i); err != nil {
			return one, err
		}
		defer clients[i].conn.Close()
	}
	ctx, stop := context.WithTimeout(ctx, s.run)
	defer stop()
	serverBefore, err := v.CPU()
	if err != nil {
		return one, err
	}
	clientBefore, began := ownCPU(), time.Now()
	var running sync.WaitGroup
	errs := make([]error, len(clients))
	for i, c := range clients {
		running.Go(func() { errs[i] = c.run(ctx) })
	}
	running.Wait()
	took := time.Since(began)
	clientUsed := ownCPU() - clientBefore
	serverAfter, err := v.CPU()
	if err = errors.Join(append(errs, err)...); err != nil {
		return one, err
	}
	n := 0
	for _, c := range clients {
		n += c.done * s.pipeline
	}
	each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(n) }
	return sample{float64(n) / took.Seconds(), each(serverAfter - serverBefore), each(clientUsed)}, nil
}

// ownCPU is the processor time that this process has used.
func ownCPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // of oneself it does not fail
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// client is a connection with what it sends.
type client struct {
	conn      net.Conn
	pipelines [][]byte
	replies   []int // bytes of the replies to each
	buf       []byte
	done      int // pipelines
}

// pipelinesOfClient is how many differ.
const pipelinesOfClient = 64

// connect prepares a client's pipelines, and asks each once to learn how long its replies are.
func (s settings) connect(port string, w workload, number int) (*client, error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, buf: make([]byte, 256<<10)}
	for i := range pipelinesOfClient {
		var out []byte
		for j := range s.pipeline {
			out = resp.AppendCommandStrings(out, w.command((number*pipelinesOfClient+i)*s.pipeline+j)...)
		}
		length, err := c.probe(out)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		c.pipelines, c.replies = append(c.pipelines, out), append(c.replies, length)
	}
	return c, nil
}

// probe returns how long the replies to a pipeline are.
func (c *client) probe(pipeline []byte) (length int, err error) {
	const end = "+PONG\r\n"
	if _, err := c.conn.Write(slices.Concat(pipeline, []byte("PING\r\n"))); err != nil {
		return 0, err
	}
	tail := ""
	for !strings.HasSuffix(tail, end) {
		n, err := c.conn.Read(c.buf)
		if err != nil {
			return 0, err
		}
		if c.buf[0] == '-' {
			return 0, errors.New(string(c.buf[:n]))
		}
		length += n
		tail += string(c.buf[max(0, n-len(end)):n])
	}
	return length - len(end), nil
}

// run sends one pipeline after another.
func (c *client) run(ctx context.Context) error {
	for ctx.Err() == nil {
		i := c.done % len(c.pipelines)
		if _, err := c.conn.Write(c.pipelines[i]); err != nil {
			return err
		}
		for left := c.replies[i]; left > 0; {
			n, err := c.conn.Read(c.buf)
			if err != nil {
				return err
			}
			left -= n
		}
		c.done++
	}
	return nil
}
