package replication_test

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// wantChain waits until each server of a chain has what the one above it has, and compares all: data, ids and offsets.
func wantChain(t *testing.T, chain ...*client) {
	t.Helper()
	expireAll(chain[0])
	for i, c := range chain[1:] {
		awaitCaughtUp(t, chain[i], c)
	}
	for i, c := range chain[1:] {
		wantSame(t, chain[0], c)
		if above, below := chain[i].info("replication", "master_replid"), c.info("replication", "master_replid"); above != below {
			t.Errorf("server %d of the chain has the id %s, the one above it %s", i+1, below, above)
		}
	}
}

// TestChainIsCut: a Redis, two Staves and a Redis replicate from each other in a row, each through a connection that is cut at
// any byte. Everything is synchronized as a whole once.
func TestChainIsCut(t *testing.T) {
	rng := chance.Rand(t)
	r := redisserver.StartMaster(t, "", "--repl-backlog-size", "64mb")
	master := dial(t, r.Socket)
	master.pipeline(everything("file_")...)
	var cutting atomic.Bool
	var mu sync.Mutex
	own := rand.New(rand.NewPCG(rng.Uint64(), 3))
	next := func() int {
		mu.Lock()
		defer mu.Unlock()
		if !cutting.Load() {
			return 0
		}
		return 100 + own.IntN(40_000)
	}
	chain := []*client{master}
	var relays []*relay
	above := "127.0.0.1:" + r.Port
	for range 2 {
		through := startRelay(t, above, next)
		_, port, _ := net.SplitHostPort(through.Addr().String())
		address, _ := serve(t, dbtest.New(t), nil)
		c := dial(t, address)
		c.must("REPLICAOF", "127.0.0.1", port)
		awaitCaughtUp(t, chain[len(chain)-1], c)
		chain, relays, above = append(chain, c), append(relays, through), address
	}
	through := startRelay(t, above, next)
	_, port, _ := net.SplitHostPort(through.Addr().String())
	chain, relays = append(chain, startRedis(t, port)), append(relays, through)
	wantChain(t, chain...)
	master.pipeline(everything("stream_")...)
	wantChain(t, chain...)
	cutting.Store(true)
	for _, through := range relays {
		through.cutAll()
	}
	await(t, "each connection is cut again and again", func() bool {
		work(t, r.Socket, rng, 3, 300)
		return relays[0].cuts.Load() >= 4 && relays[1].cuts.Load() >= 2 && relays[2].cuts.Load() >= 2
	})
	cutting.Store(false)
	wantChain(t, chain...)
	for i, c := range chain[:len(chain)-1] {
		if n := c.info("stats", "sync_full"); n != "1" {
			t.Errorf("server %d of the chain has synchronized %s replicas as a whole, want the one at the beginning", i, n)
		}
	}
}

// TestKillInChain: the Staves of such a chain are killed again and again. The one below the master loses nothing, and gets
// nothing twice; what was below a killed one has the same in the end.
func TestKillInChain(t *testing.T) {
	rng := chance.Rand(t)
	r := redisserver.StartMaster(t, "", "--repl-backlog-size", "64mb")
	master := dial(t, r.Socket)
	first, second := startChild(t), startChild(t)
	dial(t, first.address).must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, dial(t, first.address))
	_, port, _ := net.SplitHostPort(first.address)
	dial(t, second.address).must("REPLICAOF", "127.0.0.1", port)
	awaitCaughtUp(t, master, dial(t, second.address))
	_, port, _ = net.SplitHostPort(second.address)
	last := startRedis(t, port)
	awaitCaughtUp(t, master, last)
	var working sync.WaitGroup
	var stop atomic.Bool
	for i := range 2 {
		own := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
		working.Go(func() {
			for !stop.Load() {
				work(t, r.Socket, own, 2, 300)
				c := dial(t, r.Socket)
				c.pipeline([]string{"INCR", "count"}, []string{"MULTI"}, []string{"RPUSH", "once:" + strconv.Itoa(i), "x"}, []string{"INCR", "count"}, []string{"EXEC"})
				_ = c.conn.Close()
			}
		})
	}
	for range 6 {
		time.Sleep(time.Duration(20+rng.IntN(300)) * time.Millisecond)
		killed := []*child{first, second}[rng.IntN(2)]
		killed.kill()
		killed.start()
		if killed == first { // at another address now
			_, port, _ := net.SplitHostPort(first.address)
			dial(t, second.address).must("REPLICAOF", "127.0.0.1", port)
		} else {
			_, port, _ := net.SplitHostPort(second.address)
			last.must("REPLICAOF", "127.0.0.1", port)
		}
	}
	stop.Store(true)
	working.Wait()
	wantChain(t, master, dial(t, first.address), dial(t, second.address), last)
	if n := master.info("stats", "sync_full"); n != "1" {
		t.Errorf("the master has synchronized %s replicas as a whole, want 1", n)
	}
}

// TestPromotedInChain: the second server of a chain becomes its master, and the former master the last replica. Those in
// between keep their places; all go on by the new id.
func TestPromotedInChain(t *testing.T) {
	rng := chance.Rand(t)
	instances := []instance{startInstance(t, "redis"), startInstance(t, "stave"), startInstance(t, "stave"), startInstance(t, "redis")}
	var chain []*client
	for i, n := range instances {
		if i > 0 {
			n.follow(instances[i-1])
			awaitCaughtUp(t, instances[i-1].client, n.client)
		}
		chain = append(chain, n.client)
	}
	prepare(chain[0])
	for range 3 {
		work(t, instances[0].address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 600)
		wantChain(t, chain...)
		instances[1].must("REPLICAOF", "NO", "ONE")
		work(t, instances[1].address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 2, 200)
		instances[0].follow(instances[3])
		instances, chain = append(instances[1:], instances[0]), append(chain[1:], chain[0])
		wantChain(t, chain...)
	}
	for i, n := range instances {
		if full := n.info("stats", "sync_full"); full != "1" && full != "0" {
			t.Errorf("%d: %s full synchronizations", i, full)
		}
	}
}

// TestChainWithoutMaster: replicas of a replica stay connected to it while it has lost its master, and go on with it.
func TestChainWithoutMaster(t *testing.T) {
	master := startInstance(t, "redis")
	through := startRelay(t, master.address, func() int { return 0 })
	_, port, _ := net.SplitHostPort(through.Addr().String())
	middle, last, other := startInstance(t, "stave"), startInstance(t, "redis"), startInstance(t, "stave")
	middle.must("REPLICAOF", "127.0.0.1", port)
	awaitCaughtUp(t, master.client, middle.client)
	last.follow(middle)
	other.follow(middle)
	prepare(master.client)
	wantChain(t, master.client, middle.client, last.client)
	wantChain(t, master.client, middle.client, other.client)
	through.hold(true)
	await(t, "the link is down", func() bool { return middle.info("replication", "master_link_status") == "down" })
	for _, n := range []instance{last, other} {
		if up := n.info("replication", "master_link_status"); up != "up" {
			t.Errorf("the link of a replica below is %s", up)
		}
	}
	if reply := middle.do("PSYNC", "?", "-1"); reply != "(error) NOMASTERLINK Can't SYNC while not connected with my master" {
		t.Errorf("PSYNC: %s", reply)
	}
	master.must("SET", "meanwhile", "1")
	through.hold(false)
	wantChain(t, master.client, middle.client, last.client)
	wantChain(t, master.client, middle.client, other.client)
	for _, c := range []*client{master.client, middle.client} {
		if full, partial := c.info("stats", "sync_full"), c.info("stats", "sync_partial_ok"); full == "0" || full > "2" || partial > "1" {
			t.Errorf("%s full and %s partial synchronizations", full, partial)
		}
	}
}
