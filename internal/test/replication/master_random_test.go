package replication_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// transports are those of this platform.
var transports = []server.Transport{server.TransportEventLoop, server.TransportGoroutines}

// TestFull: a Redis that becomes a replica under load gets all that there is, and follows. None of the commands that it is
// sent fails.
func TestFull(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			rng := chance.Rand(t)
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, address)
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

// TestMasterIsCut: a replica whose connection is cut at any byte goes on where it was.
func TestMasterIsCut(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			rng := chance.Rand(t)
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, address)
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
