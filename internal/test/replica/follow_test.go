package replica_test

import (
	"testing"

	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestFollow: a full synchronization, and what the master does after it.
func TestFollow(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	master := dial(t, "unix", r.Socket)
	replica := startReplica(t)
	replica.must("SET", "old", "of the replica alone")
	master.must("SET", "a", "1")
	master.must("RPUSH", "list", "a", "b")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	master.must("SET", "b", "2")
	master.must("INCR", "a")
	master.must("SELECT", "3")
	master.must("SADD", "s", "x", "y")
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
}
