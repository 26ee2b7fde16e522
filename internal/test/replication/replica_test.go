package replication_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/redisserver"
	"github.com/stavedb/stave/server"
)

// want compares a reply, or its beginning where that ends with dots.
func want(t *testing.T, c *client, reply string, args ...string) {
	t.Helper()
	have := c.do(args...)
	if beginning, is := strings.CutSuffix(reply, "..."); have != reply && !(is && strings.HasPrefix(have, beginning)) {
		t.Errorf("%q: %q, want %q", args, have, reply)
	}
}

const readOnly = "(error) READONLY You can't write against a read only replica."

// TestReplicaIsReadOnly: clients read, and write nothing, in whatever way they try; those who wait for an element get an
// error, and who waits for an entry of a stream gets it.
func TestReplicaIsReadOnly(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	master := dial(t, r.Socket)
	master.must("PFADD", "hll", "a", "b")
	address, _ := serve(t, dbtest.New(t), nil)
	replica, waits, follows, exec := dial(t, address), dial(t, address), dial(t, address), dial(t, address)
	exec.must("MULTI")
	exec.must("SET", "queued", "1")
	blocked := make(chan string, 1)
	go func() { blocked <- waits.do("BLPOP", "list", "0") }()
	await(t, "BLPOP waits", func() bool { return replica.info("clients", "blocked_clients") == "1" })
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	if text := <-blocked; !strings.HasPrefix(text, "(error) UNBLOCKED force") {
		t.Errorf("BLPOP: %s", text)
	}
	awaitCaughtUp(t, master, replica)
	want(t, exec, readOnly, "EXEC")
	for _, args := range [][]string{
		{"SET", "a", "1"}, {"BLPOP", "list", "1"}, {"FLUSHALL"}, {"SWAPDB", "0", "1"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}, {"FUNCTION", "FLUSH"}, {"EXPIRE", "hll", "1"}, {"GETEX", "a", "EX", "1"},
	} {
		want(t, replica, readOnly, args...)
	}
	want(t, replica, "(error) READONLY...", "EVAL", "return redis.call('SET', 'a', 1)", "1", "a")
	want(t, replica, "OK", "MULTI")
	want(t, replica, readOnly, "SET", "a", "1")
	want(t, replica, "(error) EXECABORT...", "EXEC")
	want(t, replica, "2", "PFCOUNT", "hll")
	want(t, replica, "0", "PUBLISH", "c", "m")
	want(t, replica, "[slave 127.0.0.1 "+r.Port+" connected "+replica.info("replication", "slave_repl_offset")+"]", "ROLE")
	want(t, replica, "OK Already connected to specified master", "SLAVEOF", "127.0.0.1", r.Port)
	go func() { blocked <- follows.do("XREAD", "BLOCK", "0", "STREAMS", "stream", "$") }()
	await(t, "XREAD waits", func() bool { return replica.info("clients", "blocked_clients") == "1" })
	master.must("RPUSH", "list", "a")
	master.must("XADD", "stream", "1-1", "f", "v")
	if text := <-blocked; text != "[[stream [[1-1 [f v]]]]]" {
		t.Errorf("XREAD: %s", text)
	}
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
}

// TestExpiryIsTheMasters: what has expired by the replica's clock is hidden there, and stays until the master deletes it;
// a replica that is promoted deletes it itself.
func TestExpiryIsTheMasters(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	master := dial(t, r.Socket)
	replica := startReplica(t)
	master.must("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	master.must("SET", "loaded", "v", "PX", "1")
	time.Sleep(5 * time.Millisecond)
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, replica)
	master.must("SET", "k", "v", "PX", "30")
	master.must("HSET", "h", "f", "v")
	awaitCaughtUp(t, master, replica)
	time.Sleep(300 * time.Millisecond) // three runs of the expiry cycle
	want(t, replica, "(nil)", "GET", "k")
	want(t, replica, "3", "DBSIZE")
	// What the master has not noticed either goes on where it was.
	master.must("DEBUG", "SET-ACTIVE-EXPIRE", "1")
	await(t, "the master deletes what has expired", func() bool { return master.must("DBSIZE") == "1" })
	awaitCaughtUp(t, master, replica)
	want(t, replica, "1", "DBSIZE")
	master.must("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	master.must("SET", "again", "v", "PX", "1")
	awaitCaughtUp(t, master, replica)
	want(t, replica, "2", "DBSIZE")
	replica.must("REPLICAOF", "NO", "ONE")
	await(t, "the promoted replica deletes what has expired", func() bool { return replica.must("DBSIZE") == "1" })
	want(t, replica, "OK", "SET", "own", "1")
	want(t, replica, "[master ...", "ROLE")
}

// configured is a server's options with settings.
func configured(t *testing.T, settings ...string) *server.Options {
	t.Helper()
	c := server.NewConfig()
	for i := 0; i < len(settings); i += 2 {
		if err := c.Set(settings[i], settings[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return &server.Options{Config: c}
}

// TestMasterSurvivesRestart: whose replica a server is, is kept in the store, and a restart goes on where it was. The setting
// counts when it is another one than before: who was promoted stays a master although his unit file names the old one.
func TestMasterSurvivesRestart(t *testing.T) {
	r := redisserver.StartMaster(t, "", "--repl-backlog-size", "1mb")
	master := dial(t, r.Socket)
	store := dbtest.New(t)
	address, stop := serve(t, store, nil)
	replica := dial(t, address)
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	master.must("SET", "a", "1")
	awaitCaughtUp(t, master, replica)
	stop()
	master.must("INCR", "a")
	address, stop = serve(t, store, nil)
	replica = dial(t, address)
	awaitCaughtUp(t, master, replica)
	want(t, replica, "2", "GET", "a")
	if full, partial := master.info("stats", "sync_full"), master.info("stats", "sync_partial_ok"); full != "1" || partial != "1" {
		t.Errorf("%s full and %s partial synchronizations", full, partial)
	}
	replica.must("REPLICAOF", "NO", "ONE")
	stop()
	setting := []string{"replicaof", "127.0.0.1:" + r.Port}
	address, stop = serve(t, store, configured(t, setting...))
	replica = dial(t, address)
	awaitCaughtUp(t, master, replica) // the setting is new
	want(t, replica, "[replicaof 127.0.0.1 "+r.Port+"]", "CONFIG", "GET", "replicaof")
	replica.must("REPLICAOF", "NO", "ONE")
	stop()
	address, stop = serve(t, store, configured(t, setting...))
	replica = dial(t, address)
	want(t, replica, "[master ...", "ROLE") // it is not
	want(t, replica, "[replicaof ]", "CONFIG", "GET", "replicaof")
	want(t, replica, "OK", "SET", "own", "1")
	stop()
	address, stop = serve(t, store, configured(t, "replicaof", "localhost "+r.Port))
	replica = dial(t, address)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	want(t, replica, "(error) ERR Invalid master port", "REPLICAOF", "localhost", "0")
	want(t, replica, "(error) ERR Invalid master host", "REPLICAOF", "local\nhost", "1")
	want(t, replica, "(error) ERR Invalid master host", "REPLICAOF", "", "1")
	stop()
	address, stop = serve(t, store, nil) // without a setting, as a shell on the directory
	want(t, dial(t, address), "[slave localhost "+r.Port+" conn...", "ROLE")
	stop()
	address, _ = serve(t, store, configured(t, "replicaof", "no one"))
	want(t, dial(t, address), "[master ...", "ROLE")
}

// TestMasterWithPassword: without the password INFO says what to set; once it is set the link comes up by itself.
func TestMasterWithPassword(t *testing.T) {
	r := redisserver.StartMaster(t, "secret")
	master := dial(t, r.Socket)
	master.must("AUTH", "secret")
	master.must("SET", "a", "1")
	master.must("ACL", "SETUSER", "replicator", "on", ">p4ss", "+psync", "+replconf", "+ping")
	replica := startReplica(t)
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	await(t, "the link says what is wrong", func() bool {
		return strings.Contains(replica.info("replication", "master_link_error"), "set masterauth")
	})
	replica.must("CONFIG", "SET", "masterauth", "secret")
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	replica.must("REPLICAOF", "NO", "ONE")
	replica.must("CONFIG", "SET", "masteruser", "replicator", "masterauth", "p4ss")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
}

// TestDivergedStops: a command that fails here stops the link, which names it; with replica-ignore-errors it is skipped and
// counted.
func TestDivergedStops(t *testing.T) {
	r := redisserver.StartMaster(t, "", "--databases", "32")
	master := dial(t, r.Socket)
	replica := startReplica(t)
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, replica)
	master.must("SET", "a", "1")
	master.must("SELECT", "20")
	master.must("SET", "b", "secret")
	await(t, "the link stops", func() bool { return strings.Contains(replica.info("replication", "master_link_error"), "failed here") })
	if text := replica.info("replication", "master_link_error"); !strings.Contains(text, `"SET" "b"`) || !strings.Contains(text, "database 20") {
		t.Errorf("it says %s", text)
	}
	wantInfo(t, replica, "slave_priority", "0")
	want(t, replica, "[slave 127.0.0.1 "+r.Port+" none...", "ROLE")
	time.Sleep(300 * time.Millisecond)
	if n := master.info("replication", "connected_slaves"); n != "0" {
		t.Errorf("%s replicas", n)
	}
	replica.must("CONFIG", "SET", "replica-ignore-errors", "yes")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, replica)
	wantInfo(t, replica, "slave_priority", "100")
	want(t, replica, "1", "GET", "a")
	if n := replica.info("replication", "replica_ignored_errors"); n != "1" {
		t.Errorf("%s commands were skipped", n)
	}
	if n := master.info("stats", "sync_full"); n != "1" {
		t.Errorf("%s full synchronizations", n)
	}
}

// TestFileRefused: a master whose data cannot be held leaves the replica's own as they were.
func TestFileRefused(t *testing.T) {
	r := redisserver.StartMaster(t, "", "--databases", "32")
	master := dial(t, r.Socket)
	master.must("SET", "a", "1")
	master.must("SELECT", "20")
	master.must("SET", "of customer 4711", "1")
	var log lockedBuffer
	address, _ := serve(t, dbtest.New(t), &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	replica := dial(t, address)
	replica.must("SET", "old", "1")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	await(t, "the link says why", func() bool { return strings.Contains(replica.info("replication", "master_link_error"), "database 20") })
	if text := replica.info("replication", "master_link_error"); !strings.Contains(text, "customer 4711") {
		t.Errorf("it says %s", text)
	}
	await(t, "the log says it", func() bool { return strings.Contains(log.String(), "link to the master is down") })
	if !strings.Contains(log.String(), "a key of 16 bytes in database 20") || strings.Contains(log.String(), "4711") {
		t.Errorf("the log names a key: %s", log.String())
	}
	want(t, replica, "1", "GET", "old")
	want(t, replica, "1", "DBSIZE")
	want(t, replica, "(nil)", "GET", "a")
	if text := replica.info("keyspace", "db0"); text == "" || strings.Contains(replica.must("INFO", "keyspace"), "db6") {
		t.Errorf("INFO keyspace: %s", replica.must("INFO", "keyspace"))
	}
	master.must("DEL", "of customer 4711")
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
}

// TestStaleData: with replica-serve-stale-data no a replica without its master refuses reads.
func TestStaleData(t *testing.T) {
	replica := startReplica(t)
	replica.must("SET", "a", "1")
	replica.must("REPLICAOF", "127.0.0.1", "1")
	want(t, replica, "1", "GET", "a")
	replica.must("CONFIG", "SET", "replica-serve-stale-data", "no")
	want(t, replica, "(error) MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "GET", "a")
	await(t, "the link says why", func() bool { return strings.Contains(replica.info("replication", "master_link_error"), "refused") })
	want(t, replica, "[slave 127.0.0.1 1 conn...", "ROLE")
	replica.must("REPLICAOF", "NO", "ONE")
	want(t, replica, "1", "GET", "a")
}

// TestPromotedWhileLoading: while everything is synchronized the old data are read; REPLICAOF NO ONE ends that soon, and
// leaves them, and nothing else.
func TestPromotedWhileLoading(t *testing.T) {
	r := redisserver.StartMaster(t, "", "--rdb-key-save-delay", "2000")
	master := dial(t, r.Socket)
	master.must("DEBUG", "POPULATE", "20000", "key", "100") // 40 s
	store := dbtest.New(t)
	address, _ := serve(t, store, nil)
	replica := dial(t, address)
	replica.must("SET", "old", "1")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	await(t, "something is loaded", func() bool { return len(store.Log().Namespaces()) > 1 })
	want(t, replica, "1", "GET", "old")
	want(t, replica, "1", "DBSIZE")
	if text := replica.must("INFO", "keyspace"); strings.Count(text, "keys=") != 1 {
		t.Errorf("INFO: %s", text)
	}
	if syncing := replica.info("replication", "master_sync_in_progress"); syncing != "1" {
		t.Errorf("master_sync_in_progress:%s", syncing)
	}
	want(t, replica, "[slave 127.0.0.1 "+r.Port+" sync -1]", "ROLE")
	replica.must("REPLICAOF", "NO", "ONE")
	want(t, replica, "1", "GET", "old") // which it would not have, had that waited for the end of the file
	want(t, replica, "OK", "SET", "own", "1")
	want(t, replica, "2", "DBSIZE")
	if n := len(store.Log().Namespaces()); n != 1 {
		t.Errorf("%d namespaces hold keys", n)
	}
}
