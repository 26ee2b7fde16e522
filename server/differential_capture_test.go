package server_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
)

var captureCommands = flag.Int("capture.commands", 20_000, "random commands of TestCaptureAgainstRedis")

// TestCaptureAgainstRedis: what commits amount to (serverside.DB.Capture) makes a redis-server that replicates equal to
// the store, whatever the commands were, of all types, of several clients at a time. Nothing of it is refused. The
// store is merged, closed and opened in between.
func TestCaptureAgainstRedis(t *testing.T) {
	limit := *captureCommands
	if testing.Short() {
		limit = min(limit, 4000)
	}
	share := longTests.Start(t, 1, "seed", "capture.commands")
	limit = share.Cases(limit)
	seed := chance.Seed(t)
	c := newCaptured(t)
	for round := 0; c.sent < limit && !t.Failed(); round++ {
		c.round(seed, uint64(round))
		c.compare()
		if round%4 == 3 && !t.Failed() {
			c.reopen()
			c.compare()
		}
	}
	t.Logf("%d commands, %d commits, %d bytes", c.sent, c.commits, c.offset)
}

// capturedEdges are commands that are told of in ways of their own.
var capturedEdges = [][]string{
	{"set", "timed", "v", "px", "10000000"}, {"append", "timed", "w"}, {"incrbyfloat", "n", "0.1"},
	{"setrange", "long", "3000", "x"}, {"setrange", "long", "10", "yy"}, {"append", "long", "end"}, {"setbit", "long", "90000", "1"}, {"bitop", "not", "long2", "long"},
	{"set", "timed", "x", "ifeq", "vw", "px", "10000000"}, {"set", "timed", "y", "ifne", "vw", "keepttl"}, {"set", "timed", "z", "ifeq", "no"},
	{"msetex", "2", "m1", "1", "m2", "2", "px", "10000000"}, {"delex", "m1", "ifne", "2"}, {"delifeq", "m2", "no"}, {"delex", "m2", "ifdne", "2d06800538d394c2"},
	{"increx", "bounded", "byint", "7", "ubound", "5", "saturate", "px", "10000000"}, {"increx", "bounded", "ubound", "5", "persist"}, {"increx", "bounded", "byfloat", "-0.5", "persist"},
	{"rpush", "l", "a", "b", "c", "b", "d"}, {"lpush", "l", "x", "y", "z"}, {"lset", "l", "1", "set"}, {"lset", "l", "-1", "last"}, {"linsert", "l", "before", "c", "in"},
	{"lrem", "l", "-1", "b"}, {"ltrim", "l", "1", "-2"}, {"lpop", "l", "2"}, {"lmove", "l", "l", "left", "right"}, {"lmove", "l", "m", "right", "left"},
	{"lmovem", "l", "m", "left", "right", "count", "2", "obo"}, {"lmovem", "m", "m", "left", "left", "count", "9", "obo"}, {"lmovem", "m", "m", "left", "right", "exactly", "1", "bulk"},
	{"rpush", "gone", "1"}, {"expire", "gone", "1000"}, {"rpop", "gone"}, {"rpush", "gone", "2"},
	{"zadd", "z", "inf", "i", "-inf", "j", "-0", "k", "0.1", "l", "1.7976931348623157e308", "m", "5e-324", "n"},
	{"xgroup", "create", "x", "g", "$", "mkstream"}, {"xadd", "x", "1-1", "f", "v"}, {"xadd", "x", "2-1", "f", "v", "f", "v"}, {"xadd", "x", "3-1", "", ""},
	{"xreadgroup", "group", "g", "alice", "count", "2", "streams", "x", ">"}, {"xreadgroup", "group", "g", "bob", "noack", "streams", "x", ">"},
	{"xclaim", "x", "g", "carol", "0", "1-1"}, {"xclaim", "x", "g", "carol", "0", "3-1", "force", "retrycount", "7", "lastid", "9-9"},
	{"xdel", "x", "1-1", "3-1"}, {"copy", "x", "copied"}, {"copy", "x", "copied", "db", "3"}, {"rename", "copied", "renamed"}, {"move", "renamed", "5"},
	{"eval", "return redis.call('restore', 'restored', 10000000, redis.call('dump', 'x'))", "2", "x", "restored"},
	{"xack", "restored", "g", "1-1"}, {"xgroup", "delconsumer", "restored", "g", "carol"}, {"xtrim", "restored", "maxlen", "0"}, {"xsetid", "restored", "3-1"},
	{"xgroup", "create", "idle", "g", "0", "mkstream"}, {"xadd", "idle", "1-1", "f", "v"}, {"xadd", "idle", "2-1", "f", "v"}, {"xadd", "idle", "3-1", "f", "v"},
	{"xreadgroup", "group", "g", "alice", "count", "2", "streams", "idle", ">"}, {"xdel", "idle", "1-1"}, {"xreadgroup", "group", "g", "bob", "claim", "0", "streams", "idle", ">"},
	{"xgroup", "destroy", "restored", "g"}, {"xgroup", "setid", "x", "g", "2-1", "entriesread", "1"}, {"xautoclaim", "x", "g", "bob", "0", "0"},
	{"xadd", "end", "5-5", "f", "v"}, {"xadd", "end", "18446744073709551615-18446744073709551615", "f", "v"}, {"copy", "end", "end2"},
	{"xtrim", "end", "maxlen", "0"}, {"xdel", "end2", "5-5", "18446744073709551615-18446744073709551615"},
	{"xadd", "q", "1-1", "f", "v"}, {"xadd", "q", "2-1", "f", "v"}, {"xadd", "q", "3-1", "f", "v"}, {"xadd", "q", "4-1", "f", "v"}, {"xadd", "q", "5-1", "f", "v"},
	{"xgroup", "create", "q", "g", "0"}, {"xgroup", "create", "q", "h", "0"}, {"xreadgroup", "group", "g", "alice", "streams", "q", ">"},
	{"xreadgroup", "group", "h", "bob", "count", "3", "streams", "q", ">"}, {"xackdel", "q", "g", "acked", "ids", "2", "1-1", "4-1"},
	{"xackdel", "q", "h", "acked", "ids", "2", "1-1", "2-1"}, {"xackdel", "q", "g", "delref", "ids", "1", "2-1"}, {"xdelex", "q", "acked", "ids", "2", "3-1", "9-9"},
	{"xack", "q", "h", "3-1"}, {"xadd", "q", "acked", "maxlen", "2", "6-1", "f", "v"}, {"xdelex", "q", "delref", "ids", "2", "3-1", "5-1"},
	{"xadd", "q", "18446744073709551615-18446744073709551615", "f", "v"}, {"xgroup", "destroy", "q", "h"}, {"xreadgroup", "group", "g", "alice", "noack", "streams", "q", ">"},
	{"xgroup", "createconsumer", "q", "g", "carol"}, {"xclaim", "q", "g", "carol", "0", "6-1", "force"}, {"xtrim", "q", "maxlen", "0", "acked"}, {"xtrim", "q", "maxlen", "0", "delref"},
	{"xadd", "", "1-1", "f", "v"}, {"xdel", "", "1-1"}, {"del", "", "n"}, {"xadd", "", "0-1", "f", "v"},
	{"multi"}, {"set", "a", "1"}, {"select", "1"}, {"set", "b", "2"}, {"select", "0"}, {"swapdb", "0", "1"}, {"set", "c", "3"}, {"exec"},
	{"multi"}, {"swapdb", "1", "2"}, {"select", "3"}, {"flushdb"}, {"exec"}, {"select", "0"}, {"swapdb", "2", "0"},
	{"function", "load", "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('incr', k[1]) end)"}, {"fcall", "f", "1", "counted"},
	{"eval", "redis.call('set', KEYS[1], 1) redis.pcall('lpush', KEYS[1], 2) return redis.call('nope')", "1", "scripted"},
}

// TestCapturedEdges is TestCaptureAgainstRedis for commands that do not come often.
func TestCapturedEdges(t *testing.T) {
	c := newCaptured(t)
	for _, args := range capturedEdges {
		reply, err := c.p.stave.do(args)
		if err != nil || reply.IsError() != (args[len(args)-1] == "scripted") {
			t.Errorf("%q: %s, %v", args, show(reply), err)
		}
	}
	library := func(name, function string) []string {
		return []string{"function", "load", "#!lua name=" + name + "\nredis.register_function('" + function + "', function() return 1 end)"}
	}
	askPeer(t, c.p.stave, library("alib", "moved"))
	dump := askPeer(t, c.p.stave, []string{"function", "dump"}).String()
	askPeer(t, c.p.stave, []string{"function", "delete", "alib"})
	askPeer(t, c.p.stave, library("alib", "other"))
	askPeer(t, c.p.stave, library("zlib", "moved"))
	askPeer(t, c.p.stave, []string{"function", "restore", dump, "flush"}) // a function moves to another library
	c.compare()
}

// captured is a store whose commits are streamed to a redis-server.
type captured struct {
	t       *testing.T
	p       *pair // its peers are of a round's comparison
	redis   *redisServer
	replica net.Conn // from the redis-server that replicates
	acks    chan int
	log     string // of the redis-server
	sent    int

	mu       sync.Mutex
	pending  []byte
	database int
	offset   int // of the stream, pending included
	commits  int
	stop     func()
}

func newCaptured(t *testing.T) *captured {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := &captured{t: t, acks: make(chan int, 1000), log: filepath.Join(t.TempDir(), "log"), database: -1}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	c.redis = startRedisServer(t, "--replicaof", "127.0.0.1 "+port, "--logfile", c.log)
	c.p = &pair{t: t, redis: c.redis.dial(), dir: t.TempDir(), together: 1, outcomes: map[string]*outcome{}}
	if c.replica, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	c.open()
	t.Cleanup(func() {
		if err := errors.Join(c.p.close(), c.replica.Close()); err != nil {
			t.Error(err)
		}
	})
	synced := make(chan error, 1)
	go c.master(synced)
	if err := <-synced; err != nil {
		t.Fatal(err)
	}
	return c
}

// master answers the handshake of a replica with an empty database, and then takes what it acknowledges.
func (c *captured) master(synced chan<- error) {
	d := resp.NewDecoder(c.replica)
	defer close(c.acks)
	for {
		r, err := d.Read()
		if err != nil || len(r.Items) == 0 {
			select {
			case synced <- fmt.Errorf("handshake: %v, %w", r, err):
			default:
			}
			return
		}
		answer := "+OK\r\n"
		switch words := texts(r); strings.ToLower(words[0]) {
		case "ping":
			answer = "+PONG\r\n"
		case "psync":
			empty := "REDIS0010\xff" + strings.Repeat("\x00", 8)
			answer = fmt.Sprintf("+FULLRESYNC %s 0\r\n$%d\r\n%s", strings.Repeat("a", 40), len(empty), empty)
			synced <- nil
		case "replconf":
			if strings.EqualFold(words[1], "ack") {
				n, _ := strconv.Atoi(words[2])
				c.acks <- n
				continue
			}
		}
		if _, err := c.replica.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// open opens and serves the store. Expired keys are deleted by hand until their changes are captured.
func (c *captured) open() {
	c.t.Helper()
	c.p.opened++
	var err error
	c.p.store, err = db.Open(c.p.dir, seam.With(&db.Options{ExpireEvery: time.Second}, seam.Options{ChunkSize: 16 * c.p.opened}))
	if err == nil {
		c.stop, err = serverside.DB.Capture(c.p.store, serverside.Capture{Written: c.written})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	served := transports()
	c.p.stave = c.p.connect(served[c.p.opened%len(served)])
}

func (c *captured) reopen() {
	c.t.Helper()
	if _, err := c.p.store.Merge(c.t.Context(), db.MergeOptions{All: true}); err != nil && !errors.Is(err, db.ErrMergeBusy) {
		c.t.Fatal(err)
	}
	if err := c.p.close(); err != nil {
		c.t.Fatal(err)
	}
	c.open()
}

// written takes a commit, with the log locked.
func (c *captured) written(commit serverside.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(commit.RESP) == 0 {
		c.t.Errorf("commit %d is not described", commit.Next)
	}
	if commit.First != c.database {
		c.add(resp.AppendCommandStrings(nil, "SELECT", strconv.Itoa(commit.First)))
	}
	c.database = commit.Last
	c.add(commit.RESP)
	c.commits++
}

func (c *captured) add(b []byte) { c.pending, c.offset = append(c.pending, b...), c.offset+len(b) }

// drain sends the replica what is pending, and waits until it has it all.
func (c *captured) drain() {
	c.t.Helper()
	c.mu.Lock()
	want := c.offset
	c.add(resp.AppendCommandStrings(nil, "REPLCONF", "GETACK", "*"))
	out := c.pending
	c.pending = nil
	c.mu.Unlock()
	if path := os.Getenv("CAPTURE_STREAM"); path != "" {
		f, _ := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		f.Write(out)
		f.Close()
	}
	if _, err := c.replica.Write(out); err != nil {
		c.t.Fatal(err)
	}
	late := time.After(patience)
	for {
		select {
		case n, ok := <-c.acks:
			if !ok {
				c.t.Fatalf("the replica has left: %s", c.refused())
			}
			if n >= want {
				return
			}
		case <-late:
			c.t.Fatalf("the replica has not come to %d", want)
		}
	}
}

// refused is what the replica has refused, as its log tells.
func (c *captured) refused() string {
	log, _ := os.ReadFile(c.log)
	var lines []string
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "CRITICAL") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// round runs random commands of several clients.
func (c *captured) round(seed, round uint64) {
	const clients = 4
	var running sync.WaitGroup
	for i := range uint64(clients) {
		g := &generator{r: rand.New(rand.NewPCG(seed, round*clients+i)), wide: round%3 == 2}
		one := c.p.stave
		if i > 0 {
			conn := c.p.dial()
			defer conn.Close()
			one = &redisPeer{conn, resp.NewDecoder(conn)}
		}
		var sequence [][]string
		for len(sequence) < roundLength/clients {
			sequence = append(sequence, g.captured()...)
		}
		c.sent += len(sequence)
		running.Go(func() {
			for len(sequence) > 0 {
				n := min(1+g.r.IntN(maxTogether), len(sequence))
				if err := one.send(sequence[:n]); err != nil {
					c.t.Errorf("%q: %v", sequence[:n], err)
					return
				}
				if _, err := one.receive(n); err != nil {
					c.t.Errorf("%q: %v", sequence[:n], err)
					return
				}
				sequence = sequence[n:]
			}
		})
	}
	running.Wait()
}

// captured are the next commands of a client.
func (g *generator) captured() [][]string {
	small := func(n int) string { return strconv.Itoa(1 + g.r.IntN(n)) }
	switch g.r.IntN(30) {
	case 0:
		return [][]string{{"pexpire", g.key(), small(50)}}
	case 1:
		return [][]string{{"set", g.key(), g.element(), "px", small(50)}}
	case 2:
		return [][]string{{"setrange", g.key(), small(600), strings.Repeat(g.element(), g.r.IntN(40))}}
	case 3:
		return [][]string{{"append", g.key(), strings.Repeat("0123456789", g.r.IntN(60))}}
	case 4:
		return [][]string{{"copy", g.key(), g.key(), "db", g.database(), "replace"}}
	case 5:
		const restore = "return redis.call('restore', KEYS[2], 0, redis.call('dump', KEYS[1]), 'replace')"
		return [][]string{{"eval", restore, "2", g.key(), g.key()}}
	case 6:
		const writes = "redis.call('rpush', KEYS[1], ARGV[1]) redis.pcall('incr', KEYS[1]) redis.call('hset', KEYS[2], ARGV[1], 1) return redis.call('sadd', KEYS[1], 1)"
		return [][]string{{"eval", writes, "2", g.key(), g.key(), g.element()}}
	case 7:
		name := pick(g, "liba", "libb")
		library := "#!lua name=" + name + "\nredis.register_function('" + name + "', function(k, a) return redis.call('set', k[1], '" + small(9) + "') end)"
		return [][]string{pick(g, []string{"function", "load", "replace", library}, []string{"function", "load", "replace", library}, []string{"fcall", name, "1", g.key()},
			[]string{"function", "delete", name}, []string{"function", "flush"})}
	case 9, 10:
		return [][]string{g.newer()}
	case 11:
		key := g.key()
		scene := [][]string{{"del", key}, {"xgroup", "create", key, "g", "0", "mkstream"}, {"xgroup", "create", key, "h", "0"}}
		for range 4 {
			scene = append(scene, []string{"xadd", key, "*", "f", "v"})
		}
		scene = append(scene, []string{"xreadgroup", "group", "g", "alice", "count", small(4), "streams", key, ">"}, []string{"xreadgroup", "group", "h", "bob", "count", small(4), "streams", key, ">"})
		return append(scene, []string{"xadd", key, "maxlen", small(4), pick(g, "acked", "delref"), "*", "f", "v"}, []string{"xtrim", key, "maxlen", small(3), pick(g, "acked", "delref")})
	case 8:
		all := [][]string{{"multi"}}
		for range 1 + g.r.IntN(6) {
			switch g.r.IntN(8) {
			case 0:
				all = append(all, []string{"select", g.database()})
			case 1:
				all = append(all, []string{"swapdb", g.database(), g.database()})
			case 2:
				if g.chance(4) {
					all = append(all, []string{pick(g, "flushdb", "flushall")})
				}
			default:
				if args := g.calm(); !slices.Contains([]string{"multi", "exec", "discard", "watch", "reset"}, strings.ToLower(args[0])) {
					all = append(all, args)
				}
			}
		}
		return append(all, []string{"exec"}, []string{"select", "0"})
	}
	return [][]string{g.calm()}
}

// newer is a command that a Redis 7 does not know, and need not: it is told of what the command has written.
func (g *generator) newer() []string {
	refs := pick(g, "keepref", "delref", "acked")
	switch g.r.IntN(9) {
	case 0:
		return []string{"set", g.key(), g.element(), pick(g, "ifeq", "ifne"), g.element(), "px", strconv.Itoa(1 + g.r.IntN(50))}
	case 1:
		return []string{"set", g.key(), g.element(), pick(g, "ifdeq", "ifdne"), "2d06800538d394c2", "keepttl"}
	case 2:
		return []string{"delex", g.key(), pick(g, "ifeq", "ifne"), g.element()}
	case 3:
		return join("msetex", "2", g.key(), g.element(), g.key(), g.element(), g.maybe(2, "px", "40"), g.maybe(3, "xx"))
	case 4:
		return join("increx", g.key(), pick(g, "byint", "byfloat"), g.integer(), "ubound", g.integer(), g.maybe(2, "saturate"), g.maybe(2, "px", "40"), g.maybe(2, "persist"))
	case 5:
		return []string{"xdelex", g.key(), refs, "ids", "2", g.streamID(), g.streamID()}
	case 6:
		return []string{"xackdel", g.key(), g.group(), refs, "ids", "2", g.streamID(), g.streamID()}
	case 7:
		return join("xadd", g.key(), refs, "maxlen", g.count(), "*", "f", g.element())
	default:
		return join("bitop", pick(g, "diff", "diff1", "andor", "one"), g.key(), g.several(2, 3, g.key))
	}
}

// calm is a command that ends soon.
func (g *generator) calm() []string {
	for {
		args := g.command()
		if name := strings.ToLower(args[0]); !waitsLong(name, args[1:]) && !endless(name, args[1:]) && (name != "flushall" || g.chance(4)) {
			return args
		}
	}
}

// compare compares everything the two hold, when all that has expired is deleted.
func (c *captured) compare() {
	c.t.Helper()
	time.Sleep(60 * time.Millisecond) // deadlines are shorter, or long
	for {
		n, err := c.p.store.Expire(time.Second, 1<<20)
		if err != nil {
			c.t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	c.drain()
	info, err := c.p.redis.do([]string{"info", "stats"})
	if err != nil || !bytes.Contains(info.Text, []byte("unexpected_error_replies:0\r\n")) {
		c.t.Errorf("refused: %s, %v", c.refused(), err)
	}
	for _, args := range [][]string{{"reset"}, {"function", "list", "withcode"}} {
		c.same(args)
	}
	for database := range 16 {
		c.same([]string{"select", strconv.Itoa(database)})
		c.same([]string{"dbsize"})
		keys := c.same([]string{"keys", "*"})
		for _, key := range texts(keys) {
			kind := c.same([]string{"type", key})
			c.same([]string{"pexpiretime", key})
			for _, reader := range readers[kind.String()] {
				c.same(join(reader[0], key, reader[1:]))
			}
			if kind.String() == "stream" {
				c.same(fullStream(key))
			}
		}
	}
}

// same compares the replies to a command and returns that of the store.
func (c *captured) same(args []string) resp.Reply {
	c.t.Helper()
	ours, theirs, err := c.p.both([][]string{args})
	if err != nil {
		c.t.Fatal(err)
	}
	a, b := ours[0], theirs[0]
	switch args[0] {
	case "xinfo":
		a, b = lastingFacts(a), lastingFacts(b)
	case "function":
		a, b = sorted(a), sorted(b)
	case "hgetall":
		a.Items, b.Items = sortPairs(a.Items), sortPairs(b.Items)
	case "smembers", "keys":
		sortItems(a.Items)
		sortItems(b.Items)
	}
	if !same(a, b, 0, args[0] == "zrange") {
		c.t.Errorf("%q: store %.1500s, replica %.1500s", args, show(a), show(b))
	}
	return a
}

// lastingFacts is XINFO's reply without what each server sees by its own clock or builds in its own way, and without the
// lag of groups, for which Redis has another rule since 7.2.
func lastingFacts(r resp.Reply) resp.Reply {
	items := slices.Clone(r.Items)
	for i := range items {
		items[i] = lastingFacts(items[i])
	}
	r.Items = nil
	for i := 0; i < len(items); i++ {
		name := items[i].String()
		if slices.Contains([]string{"lag", "seen-time", "active-time"}, name) || strings.HasPrefix(name, "radix-tree-") {
			i++
			continue
		}
		r.Items = append(r.Items, items[i])
	}
	return r
}

// TestCapturedFieldDeadlines: what is captured of hashes whose fields have deadlines, which redis-server 7.0 has not,
// makes another store equal.
func TestCapturedFieldDeadlines(t *testing.T) {
	r := chance.Rand(t)
	stores := []*db.Store{openStore(t), openStore(t)}
	ours, other := &stavePeer{newSession(t, stores[0], nil)}, &stavePeer{newSession(t, stores[1], nil)}
	var mu sync.Mutex // the expiry cycle commits, too
	var text []byte
	stop, err := serverside.DB.Capture(stores[0], serverside.Capture{FieldDeadlines: true, Written: func(c serverside.Commit) {
		mu.Lock()
		defer mu.Unlock()
		text = append(text, c.RESP...)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	number := func(n int) string { return strconv.Itoa(1 + r.IntN(n)) }
	key := func() string { return "h" + number(3) }
	commands := []func(field string) []string{
		func(f string) []string { return []string{"hset", key(), f, number(9)} },
		func(f string) []string { return []string{"hset", key(), f, number(9), "f" + number(4), number(9)} },
		func(f string) []string { return []string{"hincrby", key(), f, number(9)} },
		func(f string) []string { return []string{"hpexpire", key(), number(20), "fields", "1", f} },
		func(f string) []string { return []string{"hexpire", key(), "1" + number(900), "fields", "1", f} },
		func(f string) []string { return []string{"hpersist", key(), "fields", "1", f} },
		func(f string) []string { return []string{"hdel", key(), f} },
		func(f string) []string { return []string{"hgetdel", key(), "fields", "1", f} },
		func(f string) []string {
			return []string{"hsetex", key(), "px", "1" + number(90000), "fields", "1", f, number(9)}
		},
		func(string) []string { return []string{"copy", key(), key(), "replace"} },
		func(string) []string { return []string{"rename", key(), key()} },
		func(string) []string { return []string{"set", key(), "a string"} },
		func(string) []string { return []string{"del", key()} },
	}
	apply := func() {
		mu.Lock()
		in := text
		text = nil
		mu.Unlock()
		if other.session.Feed(in) {
			t.Fatalf("%q closes the session", in)
		}
		out := other.session.Output()
		other.session.Flushed(len(out))
		if bytes.Contains(out, []byte("-ERR")) || bytes.Contains(out, []byte("-WRONG")) {
			t.Fatalf("%q: %q", in, out)
		}
	}
	for range 4000 {
		askPeer(t, ours, commands[r.IntN(len(commands))]("f"+number(4)))
		apply()
	}
	time.Sleep(25 * time.Millisecond)
	for _, store := range stores {
		if _, err := store.Expire(time.Minute, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	for _, key := range []string{"h1", "h2", "h3"} {
		for _, args := range [][]string{{"type", key}, {"hgetall", key}, {"hpexpiretime", key, "fields", "4", "f1", "f2", "f3", "f4"}} {
			a, b := askPeer(t, ours, args), askPeer(t, other, args)
			if args[0] == "hgetall" {
				a.Items, b.Items = sortPairs(a.Items), sortPairs(b.Items)
			}
			if !same(a, b, 0, false) {
				t.Errorf("%q: %s, and %s", args, show(a), show(b))
			}
		}
	}
}

func askPeer(t *testing.T, one peer, args []string) resp.Reply {
	t.Helper()
	reply, err := one.do(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return reply
}
