package main

import (
	"context"
	"crypto/sha1"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/bench/internal/servers"
)

// workload is a command and what the server must hold before it.
type workload struct {
	name    string
	test    string                             // of redis-benchmark -t; if there is none, args
	args    []string                           // the command
	prepare func(s settings, n int) [][]string // commands; n is how many requests will follow

	// client takes the place of redis-benchmark where that cannot do the job.
	client func(c *cell, ctx context.Context, port string, n int) (sample, error)
}

// workloads are the commands that are compared. Those of one key use it from all clients, as
// redis-benchmark has it.
var workloads = []workload{
	{name: "SET", test: "set"},
	{name: "GET", test: "get", prepare: everyKey},
	{name: "INCR", test: "incr"},
	{name: "HSET", test: "hset"},
	{name: "LPUSH", test: "lpush"},
	{name: "RPOP", test: "rpop", prepare: func(s settings, n int) [][]string { return list(s, n) }},
	{name: "SADD", test: "sadd"},
	{name: "ZADD", test: "zadd"},
	{name: "MSET", test: "mset"},
	{name: "LRANGE_100", args: []string{"LRANGE", "mylist", "0", "99"}, prepare: func(s settings, _ int) [][]string { return list(s, 1000) }},
	{name: "EVAL", args: []string{"EVAL", "return redis.call('GET', KEYS[1])", "1", "key:__rand_int__"}, prepare: everyKey},
	{name: "EVALSHA_QUEUE", args: []string{"EVALSHA", sha(queueScript), "2", "wait", "active", "job:", "1700000000000"}, prepare: queue},
	{name: "XADD", args: []string{"XADD", "mystream", "*", "field", strings.Repeat("x", 128)}, prepare: stream},
	{name: "XREAD_10", args: []string{"XREAD", "COUNT", "10", "STREAMS", "mystream", "1-__rand_int__"}, prepare: stream},
	{name: "XREADGROUP", args: []string{"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "mystream", ">"}, prepare: unread},
	{name: "XACK", args: []string{"XACK", "mystream", "g", "1-__rand_int__"}, prepare: func(s settings, _ int) [][]string {
		commands := unread(s, 0)
		for range (s.keys + 999) / 1000 {
			commands = append(commands, []string{"XREADGROUP", "GROUP", "g", "c", "COUNT", "1000", "STREAMS", "mystream", ">"})
		}
		return commands
	}},
	{name: "XREADGROUP+XACK", client: (*cell).consume, prepare: unread},
	{name: "ZRANGE", args: []string{"ZRANGE", "myzset", "0", "99"}, prepare: func(settings, int) [][]string { return sortedSet(1000) }},
}

// everyKey sets every key that GET may ask for, a hundred in a command.
func everyKey(s settings, _ int) (commands [][]string) {
	value := strings.Repeat("x", s.size)
	for n := 0; n < s.keys; {
		args := []string{"MSET"}
		for ; n < s.keys && len(args) < 200; n++ {
			args = append(args, fmt.Sprintf("key:%012d", n), value)
		}
		commands = append(commands, args)
	}
	return commands
}

// list fills the list that redis-benchmark uses.
func list(s settings, n int) (commands [][]string) {
	value := strings.Repeat("x", s.size)
	for ; n > 0; n -= 100 {
		commands = append(commands, append([]string{"RPUSH", "mylist"}, slices.Repeat([]string{value}, min(n, 100))...))
	}
	return commands
}

// sortedSet fills the sorted set that redis-benchmark uses.
func sortedSet(n int) (commands [][]string) {
	for i := range n {
		commands = append(commands, []string{"ZADD", "myzset", strconv.Itoa(i), fmt.Sprintf("element:%012d", i)})
	}
	return commands
}

// cell is one command with one pipeline and one number of clients.
type cell struct {
	settings
	workload
	pipeline, clients int
	samples           [][]sample // by server and round
}

// sample is what one run has shown.
type sample struct {
	rate float64 // commands a second
	p99  float64 // milliseconds; with pipelines, of a pipeline
	cpu  float64 // microseconds of the server for a command
}

func (s sample) rateOf() float64 { return s.rate }
func (s sample) p99Of() float64  { return s.p99 }
func (s sample) cpuOf() float64  { return s.cpu }

// Bounds of a run: most bounds the memory of the servers, and leastEach is what each client sends.
const (
	most            = 2_000_000
	leastEach       = 10 // pipelines
	preparePipeline = 100
)

// measure times the servers in turns.
func (c *cell) measure(ctx context.Context, all []*servers.Server) error {
	fmt.Fprintf(c.progress, "%s, pipeline %d, %d clients ", c.name, c.pipeline, c.clients)
	defer fmt.Fprintln(c.progress)
	least := c.clients * c.pipeline * leastEach
	n := max(least, 2000)
	for range 2 { // the first guess is made from too few
		guess, err := c.time(ctx, all, 0, n)
		if err != nil {
			return err
		}
		n = min(max(int(guess.rate*c.settings.run.Seconds()), least), most)
	}
	c.samples = make([][]sample, len(all))
	for round := range c.rounds {
		fmt.Fprint(c.progress, ".")
		for i := range all {
			at := (round + i) % len(all)
			one, err := c.time(ctx, all, at, n)
			if err != nil {
				return fmt.Errorf("%s: %w", all[at].Name, err)
			}
			c.samples[at] = append(c.samples[at], one)
		}
	}
	return nil
}

// time is one run against one server.
func (c *cell) time(ctx context.Context, all []*servers.Server, at, n int) (one sample, err error) {
	v := all[at]
	commands := [][]string{{"FLUSHALL"}}
	if c.prepare != nil {
		commands = append(commands, c.prepare(c.settings, n)...)
	}
	for part := range slices.Chunk(commands, preparePipeline) {
		if err := v.Send(part); err != nil {
			return one, err
		}
	}
	for _, each := range all { // they share the processors
		switch settled, err := each.Settle(ctx); {
		case err != nil:
			return one, err
		case !settled:
			fmt.Fprintf(c.progress, "(%s is busy)", each.Name)
		}
	}
	before, err := v.CPU()
	if err != nil {
		return one, err
	}
	client := (*cell).benchmark
	if c.client != nil {
		client = c.client
	}
	if one, err = client(c, ctx, v.Port, n); err != nil {
		return one, err
	}
	after, err := v.CPU()
	one.cpu = float64((after - before).Nanoseconds()) / 1000 / float64(n)
	return one, err
}

// benchmark runs redis-benchmark and reads what it prints.
func (c *cell) benchmark(ctx context.Context, port string, n int) (one sample, err error) {
	args := []string{"-p", port, "-n", strconv.Itoa(n), "-c", strconv.Itoa(c.clients), "-P", strconv.Itoa(c.pipeline),
		"-d", strconv.Itoa(c.size), "-r", strconv.Itoa(c.keys)}
	if c.test != "" {
		args = append(args, "-t", c.test)
	}
	ran, err := servers.Benchmark(ctx, append(args, c.args...)...)
	return sample{rate: ran.Rate, p99: ran.P99}, err
}

// queueScript is what the script of a queue does to take a job and to give it back: a move between lists, the job's
// hash, and the way back, so that the queue stays as long as it is.
const queueScript = `local id = redis.call('RPOPLPUSH', KEYS[1], KEYS[2])
if not id then return nil end
redis.call('HSET', ARGV[1] .. id, 'processedOn', ARGV[2])
local attempts = redis.call('HINCRBY', ARGV[1] .. id, 'attemptsMade', 1)
redis.call('LREM', KEYS[2], 1, id)
redis.call('LPUSH', KEYS[1], id)
return {id, attempts}`

func sha(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// queue loads the script, and fills the list of jobs that wait.
func queue(settings, int) (commands [][]string) {
	commands = append(commands, []string{"SCRIPT", "LOAD", queueScript})
	for i := range 1000 {
		commands = append(commands, []string{"LPUSH", "wait", strconv.Itoa(i)})
	}
	return commands
}

// stream fills a stream with as many entries as there are keys.
func stream(s settings, _ int) (commands [][]string) {
	value := strings.Repeat("x", s.size)
	for i := range s.keys {
		commands = append(commands, []string{"XADD", "mystream", "1-" + strconv.Itoa(i+1), "field", value})
	}
	return commands
}

// unread is a stream, and a group that has read nothing of it and finds an entry for each request.
func unread(s settings, n int) [][]string {
	s.keys += n
	return append(stream(s, 0), []string{"XGROUP", "CREATE", "mystream", "g", "0"})
}
