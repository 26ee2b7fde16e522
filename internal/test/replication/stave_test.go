package replication_test

import (
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestStaveFollowsStave: the replica of a Stave may be a Stave, and goes on where it was when that was ended and started
// again, though the last that it got was nothing to be written: a question how far it is.
func TestStaveFollowsStave(t *testing.T) {
	rng := chance.Rand(t)
	m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	master := m.start()
	defer func() { m.end() }()
	prepare(master)
	host, port, _ := net.SplitHostPort(m.address)
	address, _ := serve(t, dbtest.New(t), nil)
	replica := dial(t, address)
	replica.must("REPLICAOF", host, port)
	awaitCaughtUp(t, master, replica)
	for range 3 {
		work(t, m.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 300)
		m.end()
		master = m.start()
		work(t, m.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 100)
		awaitCaughtUp(t, master, replica)
		wantSame(t, master, replica)
		wantSyncs(t, master, replica, 0)
	}
}
