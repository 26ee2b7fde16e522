package feeder_test

import (
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// randomCommand is a command on one of few keys, of which some are refused.
func randomCommand(rng *rand.Rand) []string {
	n := func(most int) string { return strconv.Itoa(rng.IntN(most)) }
	key := func(typ string) string {
		if rng.IntN(40) == 0 {
			typ = []string{"string", "list", "set", "hash", "zset", "stream"}[rng.IntN(6)] // wrong type, or moved to another name
		}
		return typ + ":" + n(4)
	}
	id := func() string { return n(5) + "-" + n(50) }
	of := [][]string{
		{"SET", key("string"), n(1000)}, {"SET", key("string"), n(1000), "PX", strconv.Itoa(1 + rng.IntN(50))}, {"APPEND", key("string"), n(1000)},
		{"SETRANGE", key("string"), n(70000), n(1000)}, {"INCR", key("string")}, {"SETBIT", key("string"), n(3000), n(2)}, {"GETEX", key("string"), "PX", "30"}, {"GETDEL", key("string")},
		{"RPUSH", key("list"), n(9), n(9)}, {"LPUSH", key("list"), n(9)}, {"LPOP", key("list")}, {"RPOP", key("list"), "2"}, {"LINSERT", key("list"), "BEFORE", n(9), n(9)},
		{"LREM", key("list"), n(3), n(9)}, {"LTRIM", key("list"), "1", "8"}, {"LSET", key("list"), n(5), n(9)}, {"LMOVE", key("list"), key("list"), "LEFT", "RIGHT"},
		{"SADD", key("set"), n(20), n(20)}, {"SREM", key("set"), n(20)}, {"SPOP", key("set")}, {"SMOVE", key("set"), key("set"), n(20)}, {"SDIFFSTORE", key("set"), key("set"), key("set")},
		{"HSET", key("hash"), n(20), n(100)}, {"HDEL", key("hash"), n(20)}, {"HINCRBY", key("hash"), n(20), n(5)}, {"HINCRBYFLOAT", key("hash"), n(20), "0.5"}, {"HSETNX", key("hash"), n(20), n(5)},
		{"ZADD", key("zset"), n(9), n(20)}, {"ZADD", key("zset"), "GT", "CH", n(9), n(20)}, {"ZINCRBY", key("zset"), "0.25", n(20)}, {"ZREM", key("zset"), n(20)}, {"ZPOPMAX", key("zset")},
		{"ZREMRANGEBYRANK", key("zset"), "0", "1"}, {"ZUNIONSTORE", key("zset"), "2", key("zset"), key("set")},
		{"XADD", key("stream"), "*", n(9), n(9)}, {"XADD", key("stream"), id(), n(9), n(9)}, {"XADD", key("stream"), "MAXLEN", n(20), "*", n(9), n(9)}, {"XDEL", key("stream"), id()},
		{"XTRIM", key("stream"), "MINID", id()}, {"XGROUP", "CREATE", key("stream"), "g" + n(2), "0", "MKSTREAM"}, {"XGROUP", "DESTROY", key("stream"), "g" + n(2)},
		{"XREADGROUP", "GROUP", "g" + n(2), "c" + n(3), "COUNT", n(4), "STREAMS", key("stream"), ">"}, {"XACK", key("stream"), "g" + n(2), id(), id()},
		{"XCLAIM", key("stream"), "g" + n(2), "c" + n(3), "0", id(), id()}, {"XAUTOCLAIM", key("stream"), "g" + n(2), "c" + n(3), "0", "0"}, {"XGROUP", "DELCONSUMER", key("stream"), "g" + n(2), "c" + n(3)},
		{"XSETID", key("stream"), "9999999999999-" + n(9)}, {"XGROUP", "SETID", key("stream"), "g" + n(2), id()},
		{"PEXPIRE", key("hash"), n(60)}, {"EXPIRE", key("list"), "100"}, {"PERSIST", key("list")}, {"DEL", key("zset")}, {"RENAME", key("list"), key("list")},
		{"COPY", key("stream"), key("stream"), "REPLACE"}, {"MOVE", key("set"), n(3)}, {"SELECT", n(3)}, {"SELECT", "0"}, {"SWAPDB", n(3), n(3)}, {"SORT", key("list"), "ALPHA", "STORE", key("list")},
		{"EVAL", "redis.call('SADD', KEYS[1], ARGV[1]); redis.call('HSET', KEYS[2], ARGV[1], 1); return redis.call('INCR', KEYS[3])", "3", key("set"), key("hash"), key("string"), n(20)},
		{"MULTI"}, {"MULTI"}, {"EXEC"}, {"EXEC"}, {"EXEC"}, {"PUBLISH", "c", n(9)}, {"GET", key("string")}, {"PFADD", "hll:" + n(3), n(100)}, {"PFMERGE", "hll:0", "hll:1"}, {"PFCOUNT", "hll:0"},
	}
	if rng.IntN(400) == 0 {
		return []string{[]string{"FLUSHDB", "FLUSHALL"}[rng.IntN(2)]}
	}
	return of[rng.IntN(len(of))]
}

// work executes random commands of several clients, each in pipelines.
func work(t *testing.T, address string, rng *rand.Rand, clients, commands int) {
	t.Helper()
	var running sync.WaitGroup
	for range clients {
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		running.Go(func() {
			c := dial(t, "tcp", address)
			for done := 0; done < commands/clients; {
				var some [][]string
				for range 1 + own.IntN(30) {
					some = append(some, randomCommand(own))
				}
				c.pipeline(some...)
				done += len(some)
			}
		})
	}
	running.Wait()
}

// expireAll lets a master delete what has expired, which it does when it is asked for it.
func expireAll(master *client) {
	time.Sleep(80 * time.Millisecond)
	for n := range 3 {
		master.must("SELECT", strconv.Itoa(n))
		for _, key := range master.pipeline([]string{"KEYS", "*"})[0].Items {
			master.must("EXISTS", string(key.Text))
		}
	}
	master.must("SELECT", "0")
}

// transports are those of this platform.
var transports = []server.Transport{server.TransportEventLoop, server.TransportGoroutines}

// TestFull: a Redis that becomes a replica under load gets all that there is, and follows. None of the commands that it is
// sent fails.
func TestFull(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			rng := chance.Rand(t)
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, "tcp", address)
			prepare(master)
			_, port, _ := net.SplitHostPort(address)
			var follows atomic.Bool
			var load sync.WaitGroup
			load.Go(func() {
				for !follows.Load() {
					work(t, address, rng, 3, 500)
				}
			})
			replica := startRedis(t, port)
			await(t, "the replica follows", func() bool { return replica.info("replication", "master_link_status") == "up" })
			follows.Store(true)
			load.Wait()
			work(t, address, rng, 4, 5_000)
			expireAll(master)
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
			wantSyncs(t, master, replica, 1)
		})
	}
}

// wantSyncs checks how often the replica was given everything anew, and that it could execute all that it was sent.
func wantSyncs(t *testing.T, master, replica *client, full int) {
	t.Helper()
	if n := master.info("stats", "sync_full"); n != strconv.Itoa(full) {
		t.Errorf("%s full synchronizations, want %d", n, full)
	}
	if errors := replica.must("INFO", "errorstats"); strings.Contains(errors, "errorstat_") {
		t.Errorf("the replica refused commands:\n%s", errors)
	}
}

// relay passes bytes on between a replica and its master, slowly, and cuts each connection after some of them.
type relay struct {
	net.Listener
	to   string
	cuts atomic.Int64
	next func() int // how many bytes pass before the next cut; 0: no end

	mu    sync.Mutex
	conns []net.Conn
	work  sync.WaitGroup
}

func startRelay(t *testing.T, to string, next func() int) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: ln, to: to, next: next}
	r.work.Go(r.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		r.cutAll()
		r.work.Wait()
	})
	return r
}

// cutAll cuts all connections that there are.
func (r *relay) cutAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
}

func (r *relay) accept() {
	for {
		from, err := r.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, from, to)
		r.mu.Unlock()
		pass := func(dst, src net.Conn, most int) {
			if most > 0 {
				_, _ = io.CopyN(dst, src, int64(most))
				r.cuts.Add(1)
			} else {
				_, _ = io.Copy(dst, src)
			}
			_ = dst.Close()
			_ = src.Close()
		}
		most := r.next()
		r.work.Go(func() { pass(to, from, 0) })
		r.work.Go(func() { pass(from, to, most) })
	}
}

// TestCuts: a replica whose connection is cut at any byte goes on where it was.
func TestCuts(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			rng := chance.Rand(t)
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, "tcp", address)
			prepare(master)
			var cutting atomic.Bool
			own := rand.New(rand.NewPCG(rng.Uint64(), 3))
			through := startRelay(t, address, func() int {
				if !cutting.Load() {
					return 0
				}
				return 100 + own.IntN(30_000)
			})
			_, port, _ := net.SplitHostPort(through.Addr().String())
			replica := startRedis(t, port)
			awaitCaughtUp(t, master, replica)
			cutting.Store(true)
			through.cutAll()
			for through.cuts.Load() < 6 {
				work(t, address, rng, 3, 500)
			}
			cutting.Store(false)
			expireAll(master)
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
			wantSyncs(t, master, replica, 1)
			if n := master.info("stats", "sync_partial_ok"); n == "0" || n == "" {
				t.Errorf("%s partial synchronizations", n)
			}
		})
	}
}
