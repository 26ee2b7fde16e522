package replication_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// TestReplicaBeyondMaxDisk: a replica takes what its master has, though its own bound of the disk is lower, and evicts nothing. Once it is
// promoted it keeps its bound.
func TestReplicaBeyondMaxDisk(t *testing.T) {
	const bound, size, keys = 16 << 20, 100_000, 240
	m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	master := m.start()
	defer func() { m.end() }()
	host, port, _ := net.SplitHostPort(m.address)
	store, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // what counts has been checked
	address, _ := serve(t, store, nil)
	replica := dial(t, address)
	replica.must("CONFIG", "SET", "maxdisk", fmt.Sprint(bound), "maxmemory-policy", "allkeys-lru")
	replica.must("REPLICAOF", host, port)
	awaitCaughtUp(t, master, replica)
	for i := range keys {
		master.must("SET", fmt.Sprint("key", i), strings.Repeat("v", size))
	}
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	if st := store.Stats(); st.Evicted != 0 || st.Disk.Used < bound {
		t.Errorf("%d evicted, %+v", st.Evicted, st.Disk)
	}
	want(t, replica, "OK", "REPLICAOF", "NO", "ONE")
	for begin := time.Now(); store.Stats().Disk.Used > bound || store.Stats().Evicted == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the promoted replica has %+v", store.Stats().Disk)
		}
	}
	replica.must("SET", "own", "value")
}
