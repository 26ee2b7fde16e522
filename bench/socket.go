package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/internal/histogram"
	"github.com/stavedb/stave/internal/resp"
)

// opponent is a server that structures are timed on, in a process of its own,
// over a unix socket. All of them are asked by the same client.
type opponent struct {
	name  string
	about string
	start func(ctx context.Context, dir, socket string) (*exec.Cmd, error)
}

// opponents: Stave as "stave serve" opens a store, synced once a second, and
// Redis with no file at all and with its own file synced as often. The file is
// not rewritten meanwhile, for which Redis would fork.
var opponents = []opponent{
	{"stave", "Stave", func(ctx context.Context, dir, socket string) (*exec.Cmd, error) {
		self, err := os.Executable()
		return exec.CommandContext(ctx, self, "-serve", socket, "-dir", dir), err
	}},
	{"redis", "Redis, memory only", redisServer("--appendonly", "no")},
	{"redis-aof", "Redis, everysec", redisServer("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")},
}

func redisServer(options ...string) func(ctx context.Context, dir, socket string) (*exec.Cmd, error) {
	return func(ctx context.Context, dir, socket string) (*exec.Cmd, error) {
		path, err := exec.LookPath("redis-server")
		args := append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--loglevel", "warning"}, options...)
		return exec.CommandContext(ctx, path, args...), err
	}
}

// serveStore is stave serve, until SIGTERM.
func serveStore(dir, socket string) error {
	if status := cli.Run([]string{"stave", "serve", "--dir", dir, "--addr", socket, "--quiet"}, os.Stdin, io.Discard, os.Stderr); status != 0 {
		return fmt.Errorf("stave serve ended with status %d", status)
	}
	return nil
}

// running is an opponent that has been started, and a connection to it.
type running struct {
	opponent
	command *exec.Cmd
	conn    net.Conn
	in      *bufio.Reader
}

func (c *child) startOpponent(ctx context.Context, o opponent) (*running, error) {
	dir, err := os.MkdirTemp("", "stave-bench-") // short: the path of a unix socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = os.Remove(dir + "/s") })
	data := c.path(fmt.Sprintf("%s-%d", o.name, c.step))
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	command, err := o.start(ctx, data, dir+"/s")
	if err == nil {
		command.Stderr = os.Stderr
		err = command.Start()
	}
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", dir+"/s")
		if err == nil {
			return &running{opponent: o, command: command, conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s does not answer: %w", o.name, err)
		}
	}
}

// stop ends the server, and removes the directory of its socket.
func (s *running) stop() error {
	dir := s.conn.RemoteAddr().String()
	err := errors.Join(s.conn.Close(), s.command.Process.Signal(syscall.SIGTERM), s.command.Wait())
	return errors.Join(err, os.RemoveAll(dir[:len(dir)-len("/s")]))
}

// send sends commands in one piece and waits for their replies.
func (s *running) send(commands []byte, n int) error {
	if _, err := s.conn.Write(commands); err != nil {
		return err
	}
	for range n {
		if err := skipReply(s.in); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// replyError is an error that a server has replied with.
type replyError string

func (e replyError) Error() string { return string(e) }

// skipReply reads a reply and forgets it: the client is to cost little.
func skipReply(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	switch kind, rest := line[0], line[1:len(line)-2]; kind {
	case '-':
		return replyError(rest)
	case '$':
		n, err := strconv.Atoi(string(rest))
		if err == nil && n >= 0 {
			_, err = in.Discard(n + 2)
		}
		return err
	case '*':
		n, err := strconv.Atoi(string(rest))
		for range n {
			if err == nil {
				err = skipReply(in)
			}
		}
		return err
	case '+', ':':
		return nil
	}
	return fmt.Errorf("reply %q", line)
}

// Figures of a command come from blocks in which the servers take turns.
const (
	turns        = 5
	aloneCalls   = 200 // of a block, one at a time
	pipedCalls   = 2000
	pipelineOf   = 50
	loadedAtOnce = 200 // elements of a command while loading
)

// overSocket loads a structure into every server and times its commands.
func overSocket(s spoken) func(c *child) error {
	return func(c *child) (err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n := structureSizes(c.n)[c.step]
		var list []*running
		for _, o := range opponents {
			if _, err := exec.LookPath("redis-server"); err != nil && o.name != "stave" {
				fmt.Fprintf(os.Stderr, " (no redis-server)")
				continue
			}
			one, err := c.startOpponent(ctx, o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, one.stop()) }()
			if err := one.loadElements(s, n); err != nil {
				return err
			}
			list = append(list, one)
		}
		for at := range s.ops(n, nil) {
			if err := c.timeSpoken(list, s, n, at); err != nil {
				return err
			}
		}
		return nil
	}
}

func (s *running) loadElements(what spoken, n int) error {
	for from := 0; from < n; {
		var out []byte
		commands := 0
		for ; commands < 10 && from < n; commands++ {
			var args []string
			for range min(loadedAtOnce, n-from) {
				one := what.load(from)
				if from++; args == nil {
					args = one
				} else {
					args = append(args, one[len(one)-what.each:]...)
				}
			}
			out = resp.AppendCommandStrings(out, args...)
		}
		if err := s.send(out, commands); err != nil {
			return err
		}
	}
	return nil
}

// timeSpoken times a command: alone, the median of single calls; in pipelines, the median block's time for one.
func (c *child) timeSpoken(list []*running, what spoken, n, at int) error {
	alone := make([]histogram.Histogram, len(list))
	piped := make([][]float64, len(list))
	var label string
	for block := range turns {
		for i, one := range list {
			// All servers are asked the same: their random numbers have one seed.
			op := what.ops(n, rand.New(rand.NewPCG(9, uint64(block))))[at]
			label = op.label
			took, err := one.block(op, n, &alone[i])
			if err != nil {
				return fmt.Errorf("%s: %w", op.label, err)
			}
			piped[i] = append(piped[i], took)
		}
	}
	for i, one := range list {
		name := fmt.Sprintf("%s-%d-%s", label, c.step, one.name)
		c.record(name+"-alone", float64(alone[i].Quantile(0.5)))
		c.record(name+"-piped", median(piped[i]))
	}
	return nil
}

// block sends a command some times alone and then in pipelines, and returns the time of one of these in nanoseconds.
// All of them together do not empty a structure of n elements.
func (s *running) block(op spokenCommand, n int, alone *histogram.Histogram) (each float64, err error) {
	next, calls := 0, min(pipedCalls, n/2)
	var took time.Duration
	for range min(aloneCalls, n/4) {
		out := resp.AppendCommandStrings(nil, op.make(next)...)
		next++
		begin := time.Now()
		if err := s.send(out, 1); err != nil {
			return 0, err
		}
		alone.Add(time.Since(begin))
	}
	for sent := 0; sent < calls; {
		var out []byte
		count := min(pipelineOf, calls-sent)
		for range count {
			out = resp.AppendCommandStrings(out, op.make(next)...)
			next++
		}
		begin := time.Now()
		if err := s.send(out, count); err != nil {
			return 0, err
		}
		took += time.Since(begin)
		sent += count
	}
	each = float64(took) / float64(calls)
	if op.undo == nil {
		return each, nil
	}
	var out []byte
	for i := range next {
		out = resp.AppendCommandStrings(out, op.undo(i)...)
	}
	return each, s.send(out, next)
}

// structureRow shows a command at one size: alone and in pipelines, and how many times Redis without a file is faster
// in these.
func structureRow(what, label string, step int, size string) row {
	at := func(server, how string) string {
		return fmt.Sprintf("structures/%s/%s-%d-%s-%s", what, label, step, server, how)
	}
	r := row{label: label + ", " + size}
	for _, how := range []string{"alone", "piped"} {
		for _, o := range opponents {
			r.cells = append(r.cells, fig(micros, at(o.name, how)))
		}
		r.cells = append(r.cells, calc(times, func(v []float64) float64 { return v[0] / v[1] }, at("redis-aof", how), at("stave", how)))
	}
	return r
}

func structureTables() []table {
	spoken := table{title: "one command over a unix socket"}
	for _, how := range []string{"alone", fmt.Sprintf("%d in a pipeline", pipelineOf)} {
		for _, o := range opponents {
			spoken.columns = append(spoken.columns, o.about+", "+how)
		}
		spoken.columns = append(spoken.columns, "everysec / Stave")
	}
	held := table{title: "one embedded call", columns: []string{"db", "nutsdb", "nutsdb / db"}}
	for step, size := range []string{"1,000", "n"} {
		for _, s := range spokenStructures {
			for _, op := range s.ops(2*some, nil) {
				spoken.rows = append(spoken.rows, structureRow(s.name, op.label, step, size))
			}
		}
		for _, label := range collectionCalls {
			at := func(store string) string { return fmt.Sprintf("structures/embedded/%s-%d-%s", label, step, store) }
			held.rows = append(held.rows, row{label: label + ", " + size, cells: []cell{
				fig(micros, at("db")), fig(micros, at("nutsdb")), calc(times, func(v []float64) float64 { return v[0] / v[1] }, at("nutsdb"), at("db")),
			}})
		}
	}
	return []table{spoken, held}
}

// structureWorkloads are one workload for each structure, and one for all embedded ones.
func structureWorkloads() []workload {
	var list []workload
	for _, s := range spokenStructures {
		list = append(list, workload{"structures/" + s.name, "commands on one " + s.name + " of 1000 and n elements over a socket, beside redis-server", structureSteps, overSocket(s)})
	}
	return append(list, workload{"structures/embedded", "calls on a list, a set and a sorted set of 1000 and n elements, beside nutsdb", structureSteps, embedded})
}
