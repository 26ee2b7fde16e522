package replication_test

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestReplicaRandom: after ten thousand random commands the two have the same.
func TestReplicaRandom(t *testing.T) {
	rng := chance.Rand(t)
	r := redisserver.StartMaster(t, "")
	master := dial(t, r.Socket)
	work(t, r.Socket, rng, 1, 500)
	replica := startReplica(t)
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	work(t, r.Socket, rng, 4, 10_000)
	expireAll(master)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
}

// TestReplicaIsCut: a connection that is cut at any byte of the stream loses nothing and repeats nothing.
func TestReplicaIsCut(t *testing.T) {
	rng := chance.Rand(t)
	r := redisserver.StartMaster(t, "", "--repl-backlog-size", "64mb")
	master := dial(t, r.Socket)
	var cutting atomic.Bool
	own := rand.New(rand.NewPCG(rng.Uint64(), 3))
	through := startRelay(t, "127.0.0.1:"+r.Port, func() int {
		if !cutting.Load() {
			return 0
		}
		return 100 + own.IntN(30_000)
	})
	replica := startReplica(t)
	_, port, _ := net.SplitHostPort(through.Addr().String())
	replica.must("REPLICAOF", "127.0.0.1", port)
	awaitCaughtUp(t, master, replica)
	cutting.Store(true)
	through.cutAll()
	for through.cuts.Load() < 8 {
		work(t, r.Socket, rng, 3, 1_000)
	}
	cutting.Store(false)
	expireAll(master)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	if n := master.info("stats", "sync_full"); n != "1" {
		t.Errorf("%s full synchronizations, want the first alone", n)
	}
	t.Logf("%d cuts", through.cuts.Load())
}
