package replication_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
)

// TestWaitaof: WAITAOF counts Staves whose disks have what was written, in each sync mode, and no Redis before 7.2.
func TestWaitaof(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	master := dial(t, address)
	_, port, _ := net.SplitHostPort(address)
	for _, args := range [][]string{{"2", "0", "0"}, {"x", "0", "0"}, {"0", "-1", "0"}, {"0", "1", "-1"}} {
		if reply := master.do(append([]string{"WAITAOF"}, args...)...); !strings.HasPrefix(reply, "(error)") {
			t.Errorf("%q: %s", args, reply)
		}
	}
	redis := startRedis(t, port)
	awaitCaughtUp(t, master, redis)
	master.must("SET", "k", "v")
	if reply := master.must("WAITAOF", "0", "1", "300"); reply != "[1 0]" {
		t.Errorf("a Redis of 7.0 as the only replica: %s", reply)
	}
	want := 0
	for _, kind := range []struct {
		db.Options
		rounds int
	}{{db.Options{Sync: db.SyncAlways}, 20}, {db.Options{SyncEvery: 50 * time.Millisecond}, 3}} { // which says so once a second
		at, _ := serve(t, dbtest.New(t, dbtest.InDirectory(), dbtest.WithOptions(kind.Options)), nil)
		replica := dial(t, at)
		replica.must("REPLICAOF", "127.0.0.1", port)
		want++
		for n := range kind.rounds {
			master.must("SET", "k", fmt.Sprint(n))
			if n%2 == 1 {
				master.must("PUBLISH", "c", "m")
			}
			if reply, all := master.must("WAITAOF", "1", fmt.Sprint(want), "60000"), fmt.Sprintf("[1 %d]", want); reply != all {
				t.Fatalf("with %+v: %s, want %s", kind, reply, all)
			}
			if have := replica.must("GET", "k"); have != fmt.Sprint(n) {
				t.Fatalf("a replica was counted that has %q, not %d", have, n)
			}
		}
	}
	if reply := text(master.pipeline([]string{"MULTI"}, []string{"WAITAOF", "1", "0", "0"}, []string{"EXEC"})[2]); !strings.HasPrefix(reply, "[[0 ") {
		t.Errorf("within EXEC: %s", reply)
	}
}

// skipFile reads the file of a full synchronization, whose end is a mark that is announced before it.
func (c *client) skipFile() {
	c.t.Helper()
	all := c.until("$EOF:")
	for {
		if _, after, _ := strings.Cut(all, "$EOF:"); len(after) >= 40 && strings.Contains(after[40:], after[:40]) {
			return
		}
		buf := make([]byte, 4<<10)
		n, err := c.conn.Read(buf)
		if err != nil {
			c.t.Fatal(err)
		}
		all += string(buf[:n])
	}
}

// TestWaitaofOfOthers: a replica counts up to the offset that it says is on its disk, not up to the one that it has applied.
func TestWaitaofOfOthers(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	master := dial(t, address)
	replica := handshake(t, address, "PSYNC", "?", "-1")
	replica.skipFile()
	says := func(args ...string) {
		t.Helper()
		if _, err := replica.conn.Write(resp.AppendCommandStrings(nil, append([]string{"REPLCONF"}, args...)...)); err != nil {
			t.Fatal(err)
		}
	}
	says("ACK", "0", "FACK", "0")
	master.must("SET", "k", "v")
	replica.until("SET")
	offset := master.info("replication", "master_repl_offset")
	says("ACK", offset, "FACK", "0")
	await(t, "the replica has applied it", func() bool { return master.must("WAIT", "1", "10") == "1" })
	if reply := master.must("WAITAOF", "0", "1", "100"); reply != "[1 0]" {
		t.Errorf("it is not on its disk: %s", reply)
	}
	waiter := dial(t, address)
	got := make(chan string, 1)
	go func() { got <- waiter.must("WAITAOF", "1", "1", "0") }()
	await(t, "the client waits", func() bool { return master.info("clients", "blocked_clients") == "1" })
	says("ACK", offset, "FACK", offset)
	if reply := <-got; reply != "[1 1]" {
		t.Errorf("it is on its disk: %s", reply)
	}
}

// TestWaitsAtAReplica: WAIT and WAITAOF are of masters. Those that wait when the server becomes a replica end.
func TestWaitsAtAReplica(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	_, port, _ := net.SplitHostPort(address)
	at, _ := serve(t, dbtest.New(t), nil)
	replica := dial(t, at)
	got := make(chan string, 2)
	for _, command := range [][]string{{"WAIT", "1", "0"}, {"WAITAOF", "1", "1", "0"}} {
		waiter := dial(t, at)
		go func() { got <- command[0] + ": " + waiter.do(command...) }()
	}
	await(t, "both wait", func() bool { return replica.info("clients", "blocked_clients") == "2" })
	replica.must("REPLICAOF", "127.0.0.1", port)
	for range 2 {
		if reply := <-got; !strings.Contains(reply, "UNBLOCKED") {
			t.Error(reply)
		}
	}
	for _, command := range [][]string{{"WAIT", "0", "0"}, {"WAITAOF", "0", "0", "0"}} {
		if reply := replica.do(command...); !strings.Contains(reply, command[0]+" cannot be used with replica instances") {
			t.Errorf("%s: %s", command[0], reply)
		}
	}
	replica.must("REPLICAOF", "NO", "ONE")
	if reply := replica.must("WAITAOF", "1", "0", "0"); reply != "[1 0]" {
		t.Error(reply)
	}
}
