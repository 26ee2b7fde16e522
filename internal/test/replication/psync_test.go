package replication_test

import (
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// instance is a server of either kind, empty and a master at first.
type instance struct {
	*client
	address, port string
}

// startInstance starts a Stave or a Redis. It sends no PING, with which a master would be ahead of a replica that is promoted.
func startInstance(t *testing.T, kind string) instance {
	t.Helper()
	if kind == "redis" {
		r := redisserver.StartMaster(t, "", "--repl-diskless-load", "swapdb", "--repl-ping-replica-period", "1000")
		return instance{dial(t, r.Socket), "127.0.0.1:" + r.Port, r.Port}
	}
	address, _ := serve(t, dbtest.New(t), nil)
	_, port, _ := net.SplitHostPort(address)
	c := dial(t, address)
	c.must("CONFIG", "SET", "repl-ping-replica-period", "1000")
	return instance{c, address, port}
}

// follow makes a instance a replica of another one.
func (n instance) follow(master instance) { n.must("REPLICAOF", "127.0.0.1", master.port) }

// TestSwitch: a replica is promoted, and its former sibling and its former master become its replicas: both go on where they
// were, with the new id, and nothing is synchronized as a whole again. So does the master of before when it is promoted again.
func TestSwitch(t *testing.T) {
	for _, kinds := range []string{"stave stave redis", "redis stave stave", "stave redis stave", "stave stave stave", "redis stave redis"} {
		t.Run(kinds, func(t *testing.T) {
			rng := chance.Rand(t)
			kind := strings.Fields(kinds)
			first, second, third := startInstance(t, kind[0]), startInstance(t, kind[1]), startInstance(t, kind[2])
			prepare(first.client)
			second.follow(first)
			third.follow(first)
			master, others := first, []instance{second, third}
			for round := range 3 {
				for _, n := range others {
					awaitCaughtUp(t, master.client, n.client)
				}
				work(t, master.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 600)
				expireAll(master.client)
				for _, n := range others {
					awaitCaughtUp(t, master.client, n.client)
				}
				id, offset := master.info("replication", "master_replid"), master.info("replication", "master_repl_offset")
				next := others[0]
				next.must("REPLICAOF", "NO", "ONE")
				if former := next.info("replication", "master_replid2"); former != id {
					t.Errorf("round %d: the promoted one has the second id %s, want %s", round, former, id)
				}
				if up := next.info("replication", "second_repl_offset"); len(up) < len(offset) {
					t.Errorf("round %d: the second id counts up to %s, want %s, or a little more", round, up, offset)
				}
				work(t, next.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 2, 200) // while nobody follows
				full := next.info("stats", "sync_full")
				others = append(others[1:], master)
				master = next
				for _, n := range others {
					n.follow(master)
				}
				for _, n := range others {
					awaitCaughtUp(t, master.client, n.client)
				}
				expireAll(master.client)
				for _, n := range others {
					awaitCaughtUp(t, master.client, n.client)
					wantSame(t, master.client, n.client)
				}
				if now := master.info("stats", "sync_full"); now != full {
					t.Errorf("round %d: %s full synchronizations, before %s", round, now, full)
				}
			}
		})
	}
}
