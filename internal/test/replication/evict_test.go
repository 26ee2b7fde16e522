package replication_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/stavedb/stave/db/dbtest"
)

// TestReplicaOfCache: a replica deletes what its master evicts, and evicts nothing by itself, though its bound is lower.
func TestReplicaOfCache(t *testing.T) {
	m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	master := m.start()
	defer func() { m.end() }()
	master.must("CONFIG", "SET", "maxmemory", "20000", "maxmemory-policy", "allkeys-lru")
	host, port, _ := net.SplitHostPort(m.address)
	store := dbtest.New(t)
	address, _ := serve(t, store, nil)
	replica := dial(t, address)
	replica.must("CONFIG", "SET", "maxmemory", "100", "maxmemory-policy", "allkeys-lru")
	replica.must("REPLICAOF", host, port)
	awaitCaughtUp(t, master, replica)
	for i := range 5000 {
		master.must("SET", fmt.Sprint("key", i), "value")
	}
	await(t, "the master evicts no more", func() bool {
		now := m.store.Stats()
		return now.EntryBytes <= 20_000 && int(now.Evicted)+m.store.Len() == 5000
	})
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	if n := store.Len(); n < 900 || n > 1001 {
		t.Errorf("%d keys", n)
	}
	want(t, replica, "OK", "REPLICAOF", "NO", "ONE")
	for range 200 {
		replica.must("SET", "own", "value")
	}
	if n := store.Len(); n > 10 {
		t.Errorf("%d keys are left in 100 bytes after the promotion", n)
	}
}
