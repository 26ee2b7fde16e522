//go:build unix

package replication_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// held keeps everything of a store locked for others until release is called, so that what changes its role waits.
func held(t *testing.T, store *db.Store) (release func()) {
	t.Helper()
	tx, err := store.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _, _ = tx.End(nil) })
	t.Cleanup(release)
	return release
}

// later sends a command whose reply comes later.
func later(c *client, args ...string) (reply <-chan string) {
	replies := make(chan string, 1)
	go func() { replies <- c.do(args...) }()
	return replies
}

// TestRepointedIsAReplica: a replica that is given another master is a replica all the while, of the one before until it is that of
// the other one.
func TestRepointedIsAReplica(t *testing.T) {
	first, second := falseMaster(t, nil), falseMaster(t, nil)
	store := dbtest.New(t)
	address, _ := serve(t, store, nil)
	c := dial(t, address)
	c.must("REPLICAOF", "127.0.0.1", first)
	await(t, "it follows", func() bool { return c.info("replication", "master_link_status") == "up" })
	release := held(t, store)
	changed := later(dial(t, address), "REPLICAOF", "127.0.0.1", second)
	await(t, "its master is being changed", func() bool { return c.info("replication", "master_link_status") != "up" })
	want(t, c, "[slave 127.0.0.1 "+first+" connect...", "ROLE")
	wantInfo(t, c, "role", "slave")
	want(t, c, "[replicaof 127.0.0.1 "+first+"]", "CONFIG", "GET", "replicaof")
	want(t, c, readOnly, "SET", "a", "1")
	release()
	if reply := <-changed; reply != "OK" {
		t.Error(reply)
	}
	await(t, "it follows the other one", func() bool { return c.info("replication", "master_link_status") == "up" })
	want(t, c, "[slave 127.0.0.1 "+second+" connected...", "ROLE")
	c.must("REPLICAOF", "NO", "ONE")
}

// TestNothingIsInstalledOfAFormerMaster: what a server loads of a master is dropped when it is told meanwhile to follow that no
// more, though it has all of the file.
func TestNothingIsInstalledOfAFormerMaster(t *testing.T) {
	for _, to := range []string{"NO ONE", "127.0.0.1 1"} {
		t.Run(to, func(t *testing.T) {
			r := startRelay(t, net.JoinHostPort("127.0.0.1", falseMaster(t, nil)), func() int { return 0 })
			r.hold(true)
			store := dbtest.New(t)
			address, _ := serve(t, store, nil)
			c := dial(t, address)
			c.must("SET", "kept", "1")
			_, port, _ := net.SplitHostPort(r.Addr().String())
			c.must("REPLICAOF", "127.0.0.1", port)
			release := held(t, store)
			r.hold(false)
			await(t, "it loads everything", func() bool { return c.info("replication", "master_sync_in_progress") == "1" })
			changed := later(dial(t, address), append([]string{"REPLICAOF"}, strings.Fields(to)...)...)
			await(t, "its role is being changed", func() bool { return c.info("replication", "master_sync_in_progress") != "1" })
			release()
			if reply := <-changed; reply != "OK" {
				t.Error(reply)
			}
			want(t, c, "1", "GET", "kept")
			c.must("REPLICAOF", "NO", "ONE")
		})
	}
}

// runs reports whether some goroutine is in a function.
func runs(function string) bool {
	stacks := make([]byte, 4<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), function)
}

// TestRoleHasOneOwner: of a REPLICAOF and a FAILOVER at the same time one is refused, and the server is a replica, or a master
// that hands over. The REPLICAOF has been let in, and waits for a CONFIG REWRITE, when the FAILOVER comes.
func TestRoleHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(path, []byte("replicaof 127.0.0.1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := server.NewConfig()
	if _, err := config.Load(path); err != nil {
		t.Fatal(err)
	}
	store := dbtest.New(t)
	address, _ := serve(t, store, &server.Options{Config: config})
	c := dial(t, address)
	c.must("REPLICAOF", "NO", "ONE")
	silentReplica(t, c)
	release := held(t, store)
	rewritten := later(dial(t, address), "CONFIG", "REWRITE")
	await(t, "CONFIG REWRITE waits for the store", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && string(text) == "replicaof no one\n"
	})
	changed := later(dial(t, address), "REPLICAOF", "127.0.0.1", "2")
	await(t, "REPLICAOF waits", func() bool { return runs("shared.(*Following).set(") })
	failing := later(dial(t, address), "FAILOVER")
	await(t, "FAILOVER waits, or has replied", func() bool { return len(failing) > 0 || runs("shared.(*Failover).Begin(") })
	release()
	if reply := <-rewritten; reply != "OK" {
		t.Error(reply)
	}
	replies := []string{<-changed, <-failing}
	role, state := c.info("replication", "role"), c.info("replication", "master_failover_state")
	if refused := strings.HasPrefix(replies[0], "(error)"); refused == strings.HasPrefix(replies[1], "(error)") || refused == (state == "no-failover") || refused != (role == "master") {
		t.Errorf("REPLICAOF: %s; FAILOVER: %s; the server is a %s, %s", replies[0], replies[1], role, state)
	}
}

// TestTakesOverOnlyFromAReplica: a replica that is asked to become the master stays one if who asks could not become its replica: that
// one is the master still.
func TestTakesOverOnlyFromAReplica(t *testing.T) {
	replica := startReplica(t)
	replica.must("REPLICAOF", "127.0.0.1", falseMaster(t, nil))
	await(t, "it follows", func() bool { return replica.info("replication", "master_link_status") == "up" })
	master := dial(t, replica.conn.RemoteAddr().String())
	want(t, master, "(error) ERR the file is sent with a mark...", "PSYNC", replica.info("replication", "master_replid"), "2", "FAILOVER")
	wantInfo(t, replica, "role", "slave")
	replica.must("REPLICAOF", "NO", "ONE")
}

// TestStreamStandsWhereTheStoreDoes: a commit of what the master has sent that fails only when it is to be synced was made: the stream
// says so, too, or the next link would ask for the same once more.
func TestStreamStandsWhereTheStoreDoes(t *testing.T) {
	for _, when := range []string{"command", "file"} {
		t.Run(when, func(t *testing.T) {
			fault := vfstest.NewFault(vfs.NewMem())
			store, err := db.Open("store", seam.With(&db.Options{Sync: db.SyncAlways, NoMerge: true}, seam.Options{FS: fault}))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close() // which fails
			fail := sync.OnceFunc(func() { fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO, Sticky: true}) })
			port := falseMaster(t, func(c net.Conn, offset int64) {
				if when == "command" && offset == 1 {
					fail()
					_, _ = c.Write(resp.AppendCommandStrings(nil, "SET", "a", "1"))
				}
			})
			address, _ := serve(t, store, nil)
			c := dial(t, address)
			if when == "file" {
				r := startRelay(t, net.JoinHostPort("127.0.0.1", port), func() int { return 0 })
				r.hold(true)
				_, relayed, _ := net.SplitHostPort(r.Addr().String())
				c.must("REPLICAOF", "127.0.0.1", relayed)
				release := held(t, store)
				r.hold(false)
				await(t, "it loads everything", func() bool { return c.info("replication", "master_sync_in_progress") == "1" })
				fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Skip: 1, Err: syscall.EIO, Sticky: true}) // after the one that begins to load
				release()
			} else {
				c.must("REPLICAOF", "127.0.0.1", port)
			}
			offset, at := map[string]int64{"command": 28, "file": 1}[when], serverside.Origin{}
			await(t, "the commit was made, and fails", func() bool {
				at, _ = serverside.DB.Origin(store)
				return at.Offset == offset && c.info("replication", "master_link_status") == "down" && c.info("replication", "master_sync_in_progress") == "0"
			})
			wantInfo(t, c, "master_repl_offset", strconv.FormatInt(at.Offset, 10))
			wantInfo(t, c, "master_replid", string(at.ReplID[:]))
		})
	}
}

// TestRestartedWithAnotherMaster: the setting replicaof, changed while a server is down, makes a master a replica that gets everything,
// for it has no stream yet; a replica goes on where it was, if the other master has its stream.
func TestRestartedWithAnotherMaster(t *testing.T) {
	master := startReplica(t)
	prepare(master)
	store := dbtest.New(t)
	syncs := func(full, partial string, role ...string) {
		t.Helper()
		address, stop := serve(t, store, configured(t, "replicaof", strings.Join(role, " ")))
		defer stop()
		c := dial(t, address)
		awaitCaughtUp(t, master, c)
		wantSame(t, master, c)
		if have := c.info("replication", "replica_full_syncs"); have != full {
			t.Errorf("replicaof %s: %s full synchronizations", role, have)
		}
		if have := c.info("replication", "replica_partial_syncs"); have != partial {
			t.Errorf("replicaof %s: %s partial synchronizations", role, have)
		}
	}
	syncs("1", "0", "127.0.0.1", master.port())
	syncs("0", "1", "localhost", master.port())
	address, stop := serve(t, store, configured(t, "replicaof", "no one"))
	want(t, dial(t, address), "[master ...", "ROLE")
	stop()
	syncs("1", "0", "127.0.0.1", master.port())
}
