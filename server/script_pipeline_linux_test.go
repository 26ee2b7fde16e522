package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// pipelined are the scripts of TestPipelinesOfScripts, with the number of keys that each declares: short and long ones,
// that learn which locks they need, that fail, that have effects besides what they write.
var pipelined = []struct {
	script string
	keys   int
}{
	{"return redis.call('INCR', KEYS[1])", 1},
	{"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[2])", 2},
	{"redis.call('IN' .. 'CR', KEYS[1]) return redis.call('IN' .. 'CR', 'k' .. ARGV[1] % 6)", 1},
	{"return redis.call('GET', 'k' .. ARGV[1] % 6)", 0},
	{"redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')", 1},
	{"redis.call('INCR', KEYS[1]) return redis.pcall('LPUSH', KEYS[1], 'x')['err']", 1},
	{"return ARGV[1]", 0},
	{"redis.call('INCR', KEYS[1]) for i = 1, 3000 do local x = i * i end return redis.call('INCR', KEYS[1])", 1},
	{"redis.call('INCR', KEYS[1]) return #redis.call('KEYS', 'k*')", 1},
	{"redis.call('SELECT', '1') redis.call('INCR', KEYS[1]) redis.call('SELECT', '0') return redis.call('EXISTS', KEYS[1])", 1},
	{"redis.call('RPUSH', 'list', ARGV[1]) redis.call('PUBLISH', 'channel', ARGV[1]) return redis.call('LLEN', 'list')", 0},
	{"if ARGV[1] % 3 == 0 then return redis.call('DEL', 'list', KEYS[1]) end return redis.call('EXISTS', KEYS[1])", 1},
	{"return {redis.call('GET', KEYS[1]), redis.call('TYPE', 'list')['ok'], {1, {2}}, false}", 1},
	{"redis.call('SET', KEYS[1], 'v') error('no')", 1},
	{"redis.setresp(3) return redis.call('HGETALL', 'h' .. KEYS[1])", 1},
}

// oneOfPipeline draws a request, which may be several that belong together.
func oneOfPipeline(r *rand.Rand) string {
	key, number := fmt.Sprint("k", r.IntN(6)), fmt.Sprint(r.IntN(100))
	switch n := r.IntN(20); {
	case n < 12:
		p := pipelined[r.IntN(len(pipelined))]
		name := "EVAL"
		if r.IntN(8) == 0 {
			name = "EVAL_RO" // which refuses those that write
		}
		args := []string{name, p.script, fmt.Sprint(p.keys)}
		for range p.keys {
			args = append(args, fmt.Sprint("k", r.IntN(6)))
		}
		return wireText(append(args, number)...)
	case n < 14:
		return wireText("SET", key, number)
	case n < 16:
		return wireText("GET", key)
	case n == 16:
		return wireText("HSET", "h"+key, number, "v")
	case n == 17:
		return wireText("LPOP", "list")
	case n == 18:
		p := pipelined[r.IntN(2)]
		return "MULTI\r\n" + wireText("INCR", key) + wireText("EVAL", p.script, "2", key, "k0", number) + "EXEC\r\n"
	default:
		return wireText("INCR", key)
	}
}

const end = "$3\r\nend\r\n"

// TestPipelinesOfScripts: a pipeline of scripts and other commands has the replies, the effects and the messages of the
// same ones sent one by one.
func TestPipelinesOfScripts(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		r := chance.Rand(t)
		connect := func() (c, listener *testClient, store *db.Store) {
			store = openStore(t)
			dial := serveStoreBy(t, store, server.Options{Transport: transport})
			c, listener = dial(), dial()
			listener.send("SUBSCRIBE channel\r\n")
			listener.expect("*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n")
			return c, listener, store
		}
		together, heard, store := connect()
		alone, heardAlone, _ := connect()
		contents := ""
		for i := range 6 {
			contents += fmt.Sprintf("GET k%d\r\nHGETALL hk%d\r\n", i, i)
		}
		contents = "ECHO begin\r\n" + contents + "LRANGE list 0 -1\r\nSELECT 1\r\n" + contents + "SELECT 0\r\nECHO end\r\n"
		requests, commits := 0, store.Stats().Commits
		for range 60 {
			pipeline, want := "", ""
			for range 1 + r.IntN(40) {
				request := oneOfPipeline(r)
				pipeline += request
				alone.send(request + "ECHO end\r\n")
				want += strings.TrimSuffix(alone.upTo(end), end)
				requests++
			}
			together.send(pipeline + "ECHO end\r\n")
			if got := together.upTo(end); got != want+end {
				t.Fatalf("of %q\ntogether %q\nalone    %q", pipeline, got, want)
			}
		}
		alone.send(contents)
		together.send(contents)
		if got, want := together.upTo(end), alone.upTo(end); got != want {
			t.Errorf("together the store holds %q\nalone %q", got, want)
		}
		for _, c := range []*testClient{alone, together} {
			c.send("PUBLISH channel end\r\n")
			c.expect(":1\r\n")
		}
		if got, want := heard.upTo(end), heardAlone.upTo(end); got != want {
			t.Errorf("together %q was published\nalone %q", got, want)
		}
		t.Logf("%d requests in %d commits", requests, store.Stats().Commits-commits)
	})
}

// load makes scripts known, so that an event loop, or a batch, need not compile them.
func (c *testClient) load(scripts ...string) {
	for _, script := range scripts {
		c.send(wireText("SCRIPT", "LOAD", script))
		c.expect("$40\r\n")
		c.line()
	}
}

// TestMonitorBeginsBeforeABatch: MONITOR begins while a batch waits for its locks, which are too few for its scripts.
func TestMonitorBeginsBeforeABatch(t *testing.T) {
	for script, want := range map[string]string{
		"return redis.call('GET', 'un' .. 'declared')":                                   "$-1\r\n",
		"redis.call('GET', KEYS[1]) return redis.call('IN' .. 'CR', 'un' .. 'declared')": ":1\r\n",
	} {
		store := openStore(t)
		connect := serveStoreBy(t, store, server.Options{Transport: server.TransportGoroutines})
		c, monitor := connect(), connect()
		c.load(script)
		tx, err := store.Begin(true, "k")
		if err != nil {
			t.Fatal(err)
		}
		c.send("GET k\r\n" + evalText(script, "1", "k") + "GET k\r\n")
		time.Sleep(100 * time.Millisecond) // it waits
		monitor.send("MONITOR\r\n")
		monitor.expect("+OK\r\n")
		if _, err := tx.End(nil); err != nil {
			t.Fatal(err)
		}
		c.expect("$-1\r\n" + want + "$-1\r\n")
	}
}

// TestScriptNeedsWhatItNeeds: a script that only reads does not lock for writing later because it has shared a
// transaction with a command that writes.
func TestScriptNeedsWhatItNeeds(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		store := openStore(t)
		c := serveStoreBy(t, store, server.Options{Transport: transport})()
		reads := "redis.call('GET', KEYS[1]) return redis.call('GET', 'un' .. 'declared')"
		c.load(reads)
		c.send("SET a 1\r\n" + evalText(reads, "1", "k") + "GET a\r\n")
		c.expect("+OK\r\n$-1\r\n$1\r\n1\r\n")
		tx, err := store.Begin(false)
		if err != nil {
			t.Fatal(err)
		}
		c.send(evalText(reads, "1", "k"))
		c.expect("$-1\r\n")
		if _, err := tx.End(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEachOfAPipelineFailsAlone: what the store cannot carry out, or does not write, concerns no other command of the
// pipeline.
func TestEachOfAPipelineFailsAlone(t *testing.T) {
	mayWrite := "if ARGV[1] == '1' then return redis.call('SET', KEYS[1], 'x') end return redis.call('GET', KEYS[1])"
	plain := []string{wireText("GET", "k"), wireText("SET", "k", "x"), wireText("GET", "k"), wireText("DEL", "k"), wireText("PFCOUNT", "sketch"), wireText("LLEN", "list"), wireText("GET", "k")}
	scripts := []string{evalText(mayWrite, "1", "k", "0"), wireText("GET", "k"), evalText(mayWrite, "1", "k", "1"), evalText("return redis.call('GET', KEYS[1])", "1", "k")}
	full := func(faults *vfstest.Fault) {
		faults.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite, vfstest.OpTruncate}, Path: "*.data", Err: syscall.ENOSPC, Sticky: true})
	}
	failed := func(faults *vfstest.Fault) {
		faults.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite, vfstest.OpTruncate}, Path: "*.data", Err: syscall.EIO, Sticky: true})
	}
	for name, test := range map[string]struct {
		options db.Options
		spoil   func(*vfstest.Fault)
	}{
		"open for reading": {options: db.Options{ReadOnly: true}},
		"full disk":        {spoil: full},
		"failed disk":      {spoil: failed},
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, transport server.Transport) {
				faults := vfstest.NewFault(vfs.NewMem())
				open := func(o db.Options) *db.Store {
					o.NoMerge, o.ExpireEvery = true, -1
					store, err := db.Open("d", seam.With(&o, seam.Options{FS: faults, Copies: seam.CopiesOff}))
					if err != nil {
						t.Fatal(err)
					}
					return store
				}
				store := open(db.Options{})
				if _, err := store.String("k").Set([]byte("v")); err != nil {
					t.Fatal(err)
				}
				if _, err := store.List("list").PushBack([]byte("e")); err != nil {
					t.Fatal(err)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				store = open(test.options)
				t.Cleanup(func() { _ = store.Close() }) // its disk may have failed
				c := serveStoreBy(t, store, server.Options{Transport: transport})()
				c.load(mayWrite)
				if test.spoil != nil {
					test.spoil(faults)
				}
				for _, pipeline := range [][]string{plain, scripts, slices.Concat(plain, scripts)} {
					alone := ""
					for _, request := range pipeline {
						c.send(request + "ECHO end\r\n")
						alone += strings.TrimSuffix(c.upTo(end), end)
					}
					if !strings.Contains(alone, "$1\r\nv\r\n") || !strings.Contains(alone, "-") {
						t.Errorf("alone: %q", alone)
					}
					c.send(strings.Join(pipeline, "") + "ECHO end\r\n")
					if got := strings.TrimSuffix(c.upTo(end), end); got != alone {
						t.Errorf("together %q\nalone    %q", got, alone)
					}
				}
			})
		})
	}
}

// TestScriptsCountOnce: a script that was rolled back and executed again counts once, with all that it has called.
func TestScriptsCountOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		c := serveStoreBy(t, openStore(t), server.Options{Transport: transport})()
		fails := "redis.call('INCR', KEYS[1]) redis.pcall('NONE') return redis.call('LPUSH', KEYS[1], 'x')"
		learns := "redis.call('EXISTS', KEYS[1]) return redis.call('IN' .. 'CR', 'un' .. 'declared')"
		long := "for i = 1, 20000 do redis.call('GET', KEYS[1]) end return 1"
		c.load(fails, learns, long)
		for round := 1; round <= 2; round++ {
			c.send("SET a 1\r\n" + evalText(fails, "1", "k") + evalText(learns, "1", "k") + evalText(long, "1", "none"))
			c.expect("+OK\r\n")
			if got := c.line(); !strings.HasPrefix(got, "-WRONGTYPE") {
				t.Errorf("%q", got)
			}
			c.expect(fmt.Sprintf(":%d\r\n:1\r\n", round))
		}
		info := c.bulk("INFO commandstats errorstats\r\n")
		for _, want := range []string{"cmdstat_incr:calls=4,", "cmdstat_lpush:calls=2,", "cmdstat_exists:calls=2,", "cmdstat_get:calls=40000,", "cmdstat_eval:calls=6,", "errorstat_WRONGTYPE:count=4", "errorstat_ERR:count=2"} {
			if !strings.Contains(info, want) {
				t.Errorf("no %q in %s", want, info)
			}
		}
	})
}

// TestRestartInTheLoopCountsOnce: a script alone, which the loop begins again for its locks, counts once.
func TestRestartInTheLoopCountsOnce(t *testing.T) {
	v, address := serveByLoop(t, server.Options{})
	c := dial(t, address)
	learns := "redis.call('EXISTS', KEYS[1]) return redis.call('IN' .. 'CR', 'un' .. 'declared')"
	c.load(learns)
	before := v.Asides()
	c.send(evalText(learns, "1", "k"))
	c.expect(":1\r\n")
	if v.Asides() != before {
		t.Error("it has left the loop")
	}
	if info := c.bulk("INFO commandstats\r\n"); !strings.Contains(info, "cmdstat_exists:calls=1,") || !strings.Contains(info, "cmdstat_incr:calls=1,") {
		t.Errorf("in %s", info)
	}
}

// upTo reads up to a text.
func (c *testClient) upTo(end string) string {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), end) {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("%q, %v", b.String(), err)
		}
		b.WriteString(line)
	}
	return b.String()
}
