package replication_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/redisserver"
	"github.com/stavedb/stave/server"
)

// wantInfo compares a field of INFO replication.
func wantInfo(t *testing.T, c *client, field, value string) {
	t.Helper()
	if have := c.info("replication", field); have != value {
		t.Errorf("%s:%s, want %s", field, have, value)
	}
}

// port is that of the server that a client is connected to.
func (c *client) port() string {
	_, port, _ := net.SplitHostPort(c.conn.RemoteAddr().String())
	return port
}

// TestPriority: INFO has what Sentinel chooses by, and HELLO the role. A replica that has nothing of its master yet, or is
// loading it, is not to be promoted.
func TestPriority(t *testing.T) {
	r := redisserver.StartMaster(t, "", "--rdb-key-save-delay", "2000")
	master := dial(t, r.Socket)
	master.must("DEBUG", "POPULATE", "20000", "key", "100") // 40 s
	replica := startReplica(t)
	want(t, replica, "[server redis version 8.0.6 proto 2 id "+replica.must("CLIENT", "ID")+" mode standalone role master modules []]", "HELLO")
	replica.must("CONFIG", "SET", "slave-priority", "7", "replica-announced", "no")
	replica.must("REPLICAOF", "127.0.0.1", "1")
	want(t, replica, "[server redis version 8.0.6 proto 2 id "+replica.must("CLIENT", "ID")+" mode standalone role replica modules []]", "HELLO")
	wantInfo(t, replica, "slave_priority", "0")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	await(t, "it loads", func() bool { return replica.info("replication", "master_sync_in_progress") == "1" })
	wantInfo(t, replica, "slave_priority", "0")
	wantInfo(t, replica, "replica_announced", "0")
	master.must("CONFIG", "SET", "rdb-key-save-delay", "0")
	master.must("CLIENT", "KILL", "TYPE", "replica")
	awaitCaughtUp(t, master, replica)
	wantInfo(t, replica, "slave_priority", "7")
	replica.must("CONFIG", "SET", "replica-priority", "0", "replica-announced", "yes")
	wantInfo(t, replica, "slave_priority", "0")
	wantInfo(t, replica, "replica_announced", "1")
	want(t, replica, "[slave-priority 0]", "CONFIG", "GET", "slave-priority")
}

// TestPositionSurvivesRestart: a replica that was started again while its master is gone says how far it had got, by which Sentinel
// chooses.
func TestPositionSurvivesRestart(t *testing.T) {
	store := dbtest.New(t)
	main := startReplica(t) // the master: a Stave
	address, stop := serve(t, store, nil)
	replica := dial(t, address)
	host, port, _ := net.SplitHostPort(main.conn.RemoteAddr().String())
	replica.must("REPLICAOF", host, port)
	awaitCaughtUp(t, main, replica)
	main.must("SET", "a", "1")
	awaitCaughtUp(t, main, replica)
	before := replica.info("replication", "slave_repl_offset")
	stop()
	main.must("CONFIG", "SET", "requirepass", "now a secret")
	address, _ = serve(t, store, nil)
	replica = dial(t, address)
	wantInfo(t, replica, "slave_repl_offset", before)
	wantInfo(t, replica, "slave_priority", "100")
	wantInfo(t, replica, "master_link_status", "down")
}

// TestAnnounced: the master shows the address that the replica announces, a Redis and a Stave.
func TestAnnounced(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	for name, master := range map[string]*client{"Redis": dial(t, "127.0.0.1:"+r.Port), "Stave": startReplica(t)} {
		t.Run(name, func(t *testing.T) {
			master.t = t
			host, port, _ := net.SplitHostPort(master.conn.RemoteAddr().String())
			replica := startReplica(t)
			_, own, _ := net.SplitHostPort(replica.conn.RemoteAddr().String())
			shows := func(beginning string) {
				t.Helper()
				await(t, "the master shows "+beginning, func() bool { return strings.HasPrefix(master.info("replication", "slave0"), beginning) })
			}
			replica.must("REPLICAOF", host, port)
			shows("ip=127.0.0.1,port=" + own + ",state=online")
			replica.must("CONFIG", "SET", "replica-announce-ip", "10.1.2.3", "replica-announce-port", "7777")
			master.must("CLIENT", "KILL", "TYPE", "replica")
			shows("ip=10.1.2.3,port=7777,state=online")
			replica.must("CONFIG", "SET", "slave-announce-ip", "", "slave-announce-port", "0")
			master.must("CLIENT", "KILL", "TYPE", "replica")
			shows("ip=127.0.0.1,port=" + own + ",state=online")
		})
	}
}

// written starts a server with a file of settings, and returns what the file has now.
func written(t *testing.T, content string) (c *client, file func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config := server.NewConfig()
	if _, err := config.Load(path); err != nil {
		t.Fatal(err)
	}
	address, _ := serve(t, dbtest.New(t), &server.Options{Config: config})
	return dial(t, address), func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// sentinelSends is the transaction by which Sentinel changes the role of a server.
func sentinelSends(c *client, host, port string) string {
	c.t.Helper()
	var last string
	for _, args := range [][]string{
		{"MULTI"}, {"SLAVEOF", host, port}, {"CONFIG", "REWRITE"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "KILL", "TYPE", "pubsub"}, {"EXEC"},
	} {
		last = c.must(args...)
	}
	return last
}

// TestSentinelsTransaction: what Sentinel sends holds when EXEC has replied: the role is the other one, the file of settings
// has it, and the other clients are gone. The sender is not.
func TestSentinelsTransaction(t *testing.T) {
	c, file := written(t, "# own\nreplicaof 127.0.0.1 1\nmaxclients 77\n")
	other, subscriber := dial(t, c.conn.RemoteAddr().String()), dial(t, c.conn.RemoteAddr().String())
	other.must("PING")
	subscriber.must("SUBSCRIBE", "channel")
	if reply := sentinelSends(c, "NO", "ONE"); reply != "[OK OK 1 1]" {
		t.Errorf("EXEC: %s", reply)
	}
	want(t, c, "[master 0 []]", "ROLE")
	if text := file(); text != "# own\nreplicaof no one\nmaxclients 77\n" {
		t.Errorf("the file has\n%s", text)
	}
	want(t, c, "OK", "SET", "a", "1")
	for _, gone := range []*client{other, subscriber} {
		if _, err := gone.decoder.Read(); err == nil {
			t.Error("a client was left")
		}
	}
	if reply := sentinelSends(c, "localhost", "2"); reply != "[OK OK 0 0]" {
		t.Errorf("EXEC: %s", reply)
	}
	want(t, c, "[slave localhost 2 conn...", "ROLE")
	if text := file(); text != "# own\nreplicaof localhost 2\nmaxclients 77\n" {
		t.Errorf("the file has\n%s", text)
	}
}

// TestSentinelsTransactionWithKeys: also within an EXEC that has locked keys, though by then its reply is written.
func TestSentinelsTransactionWithKeys(t *testing.T) {
	c, file := written(t, "maxclients 77\n")
	for _, args := range [][]string{{"MULTI"}, {"SET", "a", "1"}, {"REPLICAOF", "localhost", "2"}, {"CONFIG", "REWRITE"}} {
		c.must(args...)
	}
	want(t, c, "[OK OK OK]", "EXEC")
	want(t, c, "[slave localhost 2 conn...", "ROLE")
	want(t, c, "1", "GET", "a")
	if text := file(); !strings.HasSuffix(text, "replicaof localhost 2\n") {
		t.Errorf("the file has\n%s", text)
	}
}

// TestAnnouncedFromTheBeginning: a server that is started as a replica tells its master the port from its first connection on.
func TestAnnouncedFromTheBeginning(t *testing.T) {
	master, store := startReplica(t), dbtest.New(t)
	for range 20 {
		v, err := server.New(store, configured(t, "replicaof", "127.0.0.1 "+master.port()))
		if err != nil {
			t.Fatal(err)
		}
		listen := server.Listen{Addr: "127.0.0.1:0"}
		bound, err := listen.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(bound.Addrs()[0].String())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.ServeBound(ctx, bound) }()
		await(t, "the replica comes", func() bool { return master.info("replication", "connected_slaves") == "1" })
		if text := master.info("replication", "slave0"); !strings.HasPrefix(text, "ip=127.0.0.1,port="+port+",") {
			t.Errorf("the master shows %s, the port is %s", text, port)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		await(t, "the replica leaves", func() bool { return master.info("replication", "connected_slaves") == "0" })
	}
}

// TestPromotedAfterRewriteStaysMaster: what CONFIG REWRITE has written is not taken for a new wish of an operator at the next start: a server
// that was promoted since is a master, and one that was demoted since a replica.
func TestPromotedAfterRewriteStaysMaster(t *testing.T) {
	for _, before := range []string{"maxclients 77\n", "replicaof no one\n", "replicaof localhost 1\n"} {
		path, store := filepath.Join(t.TempDir(), "stave.conf"), dbtest.New(t)
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		start := func() (c *client, stop func()) {
			config := server.NewConfig()
			if _, err := config.Load(path); err != nil {
				t.Fatal(err)
			}
			address, stop := serve(t, store, &server.Options{Config: config})
			return dial(t, address), stop
		}
		for _, written := range [][]string{{"localhost", "2"}, {"NO", "ONE"}} {
			for _, since := range [][]string{{"NO", "ONE"}, {"localhost", "3"}} {
				c, stop := start()
				for _, args := range [][]string{append([]string{"REPLICAOF"}, written...), {"CONFIG", "REWRITE"}, append([]string{"REPLICAOF"}, since...)} {
					c.must(args...)
				}
				role := func() string { return strings.Join(strings.Fields(c.must("ROLE"))[:3], " ") }
				was := role()
				stop()
				c, stop = start()
				if now := role(); now != was {
					t.Errorf("%q, %q written, then %q: ROLE is %s, and was %s", before, written, since, now, was)
				}
				stop()
			}
		}
	}
}

// TestAnnouncedAddressIsOne: what a replica says of itself comes to lines of INFO, and to the record of a store that hands over to it.
func TestAnnouncedAddressIsOne(t *testing.T) {
	c := startReplica(t)
	for _, address := range []string{"a b", "a\nrole:slave", "a\r\n", " "} {
		if reply := c.do("REPLCONF", "ip-address", address); !strings.HasPrefix(reply, "(error)") {
			t.Errorf("%q: %s", address, reply)
		}
	}
	for _, address := range []string{"", "10.0.0.1", "::1", "redis.example"} {
		want(t, c, "OK", "REPLCONF", "ip-address", address)
	}
}
