package replication_test

import (
	"flag"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

var (
	manyCommands = flag.Int("replication.commands", 100_000, "random commands of TestManyCommands, in both directions together")
	manyFor      = flag.Duration("replication.for", 0, "how long TestManyCommands runs, whatever -replication.commands says")
)

// TestManyCommands: a replica is what its master is, again and again, and its connection is cut at any byte meanwhile: a Redis of a
// Stave, and a Stave of a Redis.
func TestManyCommands(t *testing.T) {
	const each = 5000 // commands between two comparisons
	commands := *manyCommands
	if testing.Short() {
		commands = min(commands, 4*each)
	}
	for _, way := range []struct {
		name   string
		master func(t *testing.T) (address, tcp string)
		follow func(t *testing.T, port string) *client
	}{
		{"a Redis follows a Stave", func(t *testing.T) (address, tcp string) {
			address, _ = serve(t, dbtest.New(t), nil)
			return address, address
		}, func(t *testing.T, port string) *client { return startRedis(t, port) }},
		{"a Stave follows a Redis", func(t *testing.T) (address, tcp string) {
			r := redisserver.StartMaster(t, "", "--repl-backlog-size", "64mb")
			return r.Socket, "127.0.0.1:" + r.Port
		}, func(t *testing.T, port string) *client {
			replica := startReplica(t)
			replica.must("REPLICAOF", "127.0.0.1", port)
			return replica
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			rng := chance.Rand(t)
			own := rand.New(rand.NewPCG(rng.Uint64(), 3))
			address, tcp := way.master(t)
			master := dial(t, address)
			prepare(master)
			var cutting atomic.Bool
			through := startRelay(t, tcp, func() int {
				if !cutting.Load() {
					return 0
				}
				return 1000 + own.IntN(100_000)
			})
			_, port, _ := net.SplitHostPort(through.Addr().String())
			replica := way.follow(t, port)
			awaitCaughtUp(t, master, replica)
			start, done := time.Now(), 0
			for *manyFor > 0 && time.Since(start) < *manyFor/2 || *manyFor == 0 && done < commands/2 {
				cutting.Store(true)
				through.cutAll()
				work(t, address, rng, 4, each)
				cutting.Store(false)
				expireAll(master)
				awaitCaughtUp(t, master, replica)
				wantSame(t, master, replica)
				if done += each; t.Failed() {
					break
				}
			}
			if n := master.info("stats", "sync_full"); n != "1" {
				t.Errorf("%s full synchronizations, want the first alone", n)
			}
			t.Logf("%d commands, %d cuts, %s bytes sent", done, through.cuts.Load(), master.info("stats", "total_net_repl_output_bytes"))
		})
	}
}
