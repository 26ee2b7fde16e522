package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stavedb/stave/internal/histogram"
	"github.com/stavedb/stave/internal/resp"
)

// How long others wait while one client repeats a command that works on many elements: three more
// clients send PING, GET and SET of random keys, one command at a time, and it records how long each takes.

// attack is a command that one client repeats. load makes what it works on, of n elements.
type attack struct {
	name    string
	load    func(n int) spokenLoad
	command func(n int) []string
	once    bool // it is not repeated
	most    int  // elements, or stallElements
	waiters int  // clients that wait in BLPOP at the key "queue" meanwhile
	busy    bool // another process keeps a processor busy meanwhile
	bursts  bool // another process does so for 2 ms after each reply
	hostile bool // a script that ends with an error, or never, and is not for redis-server
}

// spokenLoad gives the commands that load an attack, one after the other.
type spokenLoad func(send func(args ...string))

// How many elements the attacks work on at most, how many keys the others use, and how long each attack goes on.
const (
	stallElements = 200_000
	stallKeys     = 100_000
	stallTime     = 4 * time.Second
	stallBitmap   = 32 << 20 // bytes
	stallMillions = 5_000_000
	stallWaiters  = 9_900 // servers admit 10,000 clients
)

var attacks = []attack{
	{name: "nothing"},
	{name: "nothing, alongside a busy process", busy: true},
	{name: "nothing, alongside a client that computes for 2 ms after each reply", bursts: true},
	{name: "SUNIONSTORE", load: loadTwo("SADD", member), command: fixed("SUNIONSTORE", "dest", "one", "two")},
	{name: "SINTERSTORE", load: loadTwo("SADD", member), command: fixed("SINTERSTORE", "dest", "one", "two")},
	{name: "SDIFFSTORE", load: loadTwo("SADD", member), command: fixed("SDIFFSTORE", "dest", "one", "two")},
	{name: "ZUNIONSTORE", load: loadTwo("ZADD", scoredMember), command: fixed("ZUNIONSTORE", "dest", "2", "one", "two")},
	{name: "ZRANGESTORE", load: loadTwo("ZADD", scoredMember), command: fixed("ZRANGESTORE", "dest", "one", "0", "-1")},
	{name: "GEOSEARCHSTORE", load: loadTwo("GEOADD", placedMember), command: fixed("GEOSEARCHSTORE", "dest", "one", "FROMLONLAT", "0", "0", "BYRADIUS", "30000", "km")},
	{name: "COPY", load: loadTwo("SADD", member), command: fixed("COPY", "one", "dest", "REPLACE")},
	{name: "SORT", load: loadTwo("RPUSH", number), command: fixed("SORT", "one", "STORE", "dest")},
	{name: "BITOP", load: func(int) spokenLoad {
		return func(send func(args ...string)) { send("SET", "one", strings.Repeat("stave ok", stallBitmap/8)) }
	}, command: fixed("BITOP", "NOT", "dest", "one")},
	{name: "MSET", command: func(n int) []string {
		args := []string{"MSET"}
		for i := range n / 2 {
			args = append(args, fmt.Sprint("mset:", i), "a value of some length")
		}
		return args
	}},
	{name: "DEL of 5 million members", load: loadOne("SADD", member), command: fixed("DEL", "one"), once: true, most: stallMillions},
	{name: "DEL of 5 million scored", load: loadOne("ZADD", scoredMember), command: fixed("DEL", "one"), once: true, most: stallMillions},
	{name: "FLUSHALL of 5 million keys", load: loadKeys, command: fixed("FLUSHALL"), once: true, most: stallMillions},
	{name: "RPUSH for 9900 in BLPOP", command: func(int) []string {
		return append([]string{"RPUSH", "queue"}, slices.Repeat([]string{"element"}, stallWaiters)...)
	}, once: true, waiters: stallWaiters},
	{name: "RPUSH for one of 9900", command: fixed("RPUSH", "queue", "element"), waiters: stallWaiters},
}

func fixed(args ...string) func(int) []string { return func(int) []string { return args } }

func member(i int) []string       { return []string{element(i)} }
func scoredMember(i int) []string { return []string{scoreOf(i), element(i)} }
func placedMember(i int) []string { return join(place(i), element(i)) }
func number(i int) []string       { return []string{text(int(scramble(i) % 1e9))} }

// loadTwo loads two collections of n elements, half of which are in both.
func loadTwo(command string, of func(i int) []string) func(n int) spokenLoad {
	return func(n int) spokenLoad {
		return func(send func(args ...string)) {
			for at, key := range []string{"one", "two"} {
				for from := 0; from < n; from += loadedAtOnce {
					args := []string{command, key}
					for i := from; i < min(n, from+loadedAtOnce); i++ {
						args = append(args, of(i+at*n/2)...)
					}
					send(args...)
				}
			}
		}
	}
}

// loadOne loads a collection of n elements.
func loadOne(command string, of func(i int) []string) func(n int) spokenLoad {
	return func(n int) spokenLoad { return loading(n, []string{command, "one"}, of) }
}

// loadKeys loads n strings.
func loadKeys(n int) spokenLoad {
	return loading(n, []string{"MSET"}, func(i int) []string { return []string{fmt.Sprint("load:", i), "a value of some length"} })
}

// loading repeats a command until it has had the arguments of n elements.
func loading(n int, command []string, of func(i int) []string) spokenLoad {
	return func(send func(args ...string)) {
		for from := 0; from < n; from += loadedAtOnce {
			args := slices.Clone(command)
			for i := from; i < min(n, from+loadedAtOnce); i++ {
				args = append(args, of(i)...)
			}
			send(args...)
		}
	}
}

// queue makes clients wait at the key "queue", and returns what ends their connections.
func (s *running) queue(waiters int) (func(), error) {
	var conns []net.Conn
	end := func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	for range waiters {
		conn, err := net.Dial("unix", s.conn.RemoteAddr().String())
		for errors.Is(err, syscall.EAGAIN) { // the server has not accepted as many as it may keep waiting
			time.Sleep(time.Millisecond)
			conn, err = net.Dial("unix", s.conn.RemoteAddr().String())
		}
		if err == nil {
			conns = append(conns, conn)
			_, err = conn.Write(resp.AppendCommandStrings(nil, "BLPOP", "queue", "0"))
		}
		if err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}

// stalled are the commands whose times are taken.
var stalled = []struct {
	name string
	make func(r *rand.Rand) []string
}{
	{"PING", func(*rand.Rand) []string { return []string{"PING"} }},
	{"GET", func(r *rand.Rand) []string { return []string{"GET", stringKey(r.IntN(stallKeys))} }},
	{"SET", func(r *rand.Rand) []string {
		return []string{"SET", stringKey(r.IntN(stallKeys)), "a value of some length"}
	}},
}

func stall(a attack) func(c *child) error {
	return func(c *child) (err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n := min(c.n, max(stallElements, a.most))
		for _, o := range opponents {
			if _, err := exec.LookPath("redis-server"); err != nil && o.name != "stave" {
				fmt.Fprintf(os.Stderr, " (no redis-server)")
				continue
			}
			if a.hostile && o.name != "stave" {
				continue
			}
			one, err := c.startOpponent(ctx, o)
			if err != nil {
				return err
			}
			err = errors.Join(one.loadAttack(a, n), c.timeStalled(one, a, n))
			if err := errors.Join(err, one.stop()); err != nil {
				return err
			}
		}
		return nil
	}
}

// loadAttack loads what an attack works on.
func (s *running) loadAttack(a attack, n int) (err error) {
	if a.load == nil {
		return nil
	}
	a.load(n)(func(args ...string) {
		if err == nil {
			err = s.send(resp.AppendCommandStrings(nil, args...), 1)
		}
	})
	return err
}

// timeStalled runs the attack, and notes what the others' calls take.
func (c *child) timeStalled(s *running, a attack, n int) (err error) {
	var over atomic.Bool
	var work sync.WaitGroup
	failed := make([]error, len(stalled)+1)
	times := make([]histogram.Histogram, len(stalled))
	for i, other := range stalled {
		conn, err := net.Dial("unix", s.conn.RemoteAddr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		client, r := &running{opponent: s.opponent, conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}, rand.New(rand.NewPCG(7, uint64(i)))
		work.Go(func() {
			for !over.Load() && failed[i] == nil {
				out := resp.AppendCommandStrings(nil, other.make(r)...)
				begin := time.Now()
				failed[i] = client.send(out, 1)
				times[i].Add(time.Since(begin))
			}
		})
	}
	end, err := s.neighbour(a)
	if err != nil {
		return err
	}
	defer end()
	if end, err = s.queue(a.waiters); err != nil {
		return err
	}
	defer end()
	if a.hostile {
		end, err := s.killScripts()
		if err != nil {
			return err
		}
		defer end()
	}
	if c.clientsFirst { // now that the other processes have been started, which would inherit it
		runLast, cause := runFirst()
		if cause != nil {
			return cause
		}
		defer func() { err = errors.Join(err, runLast()) }()
	}
	begin, rounds := time.Now(), 0
	var took time.Duration
	var out []byte
	if a.command != nil {
		out = resp.AppendCommandStrings(nil, a.command(n)...)
	}
	for last := &failed[len(stalled)]; time.Since(begin) < stallTime && *last == nil; {
		if out == nil || a.once && rounds > 0 {
			time.Sleep(stallTime - time.Since(begin))
			continue
		}
		if *last = s.send(out, 1); a.hostile && errors.As(*last, new(replyError)) {
			*last = nil // that is what it deserves
		}
		took = time.Since(begin)
		rounds++
	}
	over.Store(true)
	work.Wait()
	for i, other := range stalled {
		c.record(fmt.Sprintf("%s-%s-p99", other.name, s.name), float64(times[i].Quantile(0.99)))
		c.record(fmt.Sprintf("%s-%s-max", other.name, s.name), float64(times[i].Max()))
	}
	c.record("round-"+s.name, float64(took)/float64(max(rounds, 1)))
	return errors.Join(failed...)
}

// neighbour starts the process that takes a part of the machine during an attack, if it wants one.
func (s *running) neighbour(a attack) (end func(), err error) {
	var command *exec.Cmd
	switch {
	case a.busy: // it ends by itself, should this process be killed
		command = exec.Command("sh", "-c", "while kill -0 $PPID; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done")
	case a.bursts:
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = exec.Command(self, "-bursts", s.conn.RemoteAddr().String())
	default:
		return func() {}, nil
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() { _ = command.Process.Kill(); _ = command.Wait() }, nil
}

// computeInBursts is a client that computes after each reply, until its parent or the server ends.
func computeInBursts(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := &running{conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}
	for parent := os.Getppid(); os.Getppid() == parent; {
		if err := client.send(resp.AppendCommandStrings(nil, "PING"), 1); err != nil {
			return err
		}
		for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
		}
	}
	return nil
}

// stallTable shows for each attack how long the others' calls take, and how much less that is than with redis-server.
func stallTable() table {
	t := table{title: "p99 and slowest of others' calls while one client repeats a command on 200,000 elements"}
	for _, other := range stalled {
		for _, o := range opponents[:2] {
			t.columns = append(t.columns, other.name+", "+o.about+", p99", "slowest")
		}
		t.columns = append(t.columns, "p99 Stave / Redis")
	}
	t.columns = append(t.columns, "command, Stave", "Redis")
	for _, a := range attacks {
		r := row{label: a.name}
		at := func(what string) string { return "stall/" + a.name + "/" + what }
		for _, other := range stalled {
			for _, o := range opponents[:2] {
				r.cells = append(r.cells, fig(millis, at(other.name+"-"+o.name+"-p99")), fig(millis, at(other.name+"-"+o.name+"-max")))
			}
			r.cells = append(r.cells, calc(times, func(v []float64) float64 { return v[0] / v[1] }, at(other.name+"-stave-p99"), at(other.name+"-redis-p99")))
		}
		r.cells = append(r.cells, fig(millis, at("round-stave")), fig(millis, at("round-redis")))
		t.rows = append(t.rows, r)
	}
	return t
}

// stallWorkloads are one for each attack.
func stallWorkloads() []workload {
	var list []workload
	for _, a := range slices.Concat(attacks, hostileScripts) {
		list = append(list, workload{"stall/" + a.name, "how long PING, GET and SET wait beside a client that repeats " + a.name + ", beside redis-server", 1, stall(a)})
	}
	return list
}
