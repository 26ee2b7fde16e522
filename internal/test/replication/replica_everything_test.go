package replication_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestFollow: a full synchronization, and what the master does after it.
func TestFollow(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	master := dial(t, r.Socket)
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

// TestEverything: all types and ways to write, as a file, as a stream, and both again by a second synchronization.
func TestEverything(t *testing.T) {
	for _, counted := range []string{"yes", "no"} { // repl-diskless-sync: the file ends with a marker, or has a length
		t.Run("diskless "+counted, func(t *testing.T) {
			r := redisserver.StartMaster(t, "", "--repl-diskless-sync", counted)
			master := dial(t, r.Socket)
			master.pipeline(everything("file_")...)
			replica := startReplica(t)
			replica.must("REPLICAOF", "127.0.0.1", r.Port)
			awaitCaughtUp(t, master, replica)
			for _, reply := range master.pipeline(everything("stream_")...) {
				if reply.IsError() {
					t.Error(text(reply))
				}
			}
			time.Sleep(30 * time.Millisecond) // what is to expire does
			master.must("GET", "stream_soon")
			master.must("GET", "stream_soonhash")
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
			replica.must("REPLICAOF", "NO", "ONE")
			replica.must("SET", "own", "1")
			replica.must("REPLICAOF", "127.0.0.1", r.Port)
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
		})
	}
}
