package replication_test

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestFullFromReplicaIsOfOneMoment: while clients of the master count, each replica of a replica gets every step once: in its
// file, or after it.
func TestFullFromReplicaIsOfOneMoment(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	master := dial(t, r.Socket)
	master.must("DEBUG", "POPULATE", "20000")
	middle := startInstance(t, "stave")
	middle.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, middle.client)
	var stop atomic.Bool
	var counting sync.WaitGroup
	for i := range 3 {
		counting.Go(func() {
			c, key := dial(t, r.Socket), strconv.Itoa(i)
			for !stop.Load() {
				c.pipeline([]string{"INCR", "n"}, []string{"RPUSH", "list" + key, "x"}, []string{"MULTI"}, []string{"INCR", "n"}, []string{"HINCRBY", "hash", key, "1"}, []string{"EXEC"})
			}
		})
	}
	var replicas []instance
	for _, kind := range []string{"stave", "redis", "stave", "redis"} {
		replica := startInstance(t, kind)
		replica.follow(middle)
		await(t, "the replica follows", func() bool { return replica.info("replication", "master_link_status") == "up" })
		replicas = append(replicas, replica)
	}
	stop.Store(true)
	counting.Wait()
	for _, replica := range replicas {
		awaitCaughtUp(t, master, replica.client)
		for _, args := range [][]string{{"GET", "n"}, {"LLEN", "list0"}, {"LLEN", "list1"}, {"LLEN", "list2"}, {"HGETALL", "hash"}, {"DBSIZE"}} {
			want(t, replica.client, master.must(args...), args...)
		}
	}
}

// TestFileSaysDatabase: what a replica passes on may be for a database that was selected before its replica came, which the file
// says.
func TestFileSaysDatabase(t *testing.T) {
	master, middle := startInstance(t, "redis"), startInstance(t, "stave")
	middle.follow(master)
	awaitCaughtUp(t, master.client, middle.client)
	master.must("SELECT", "3")
	master.must("INCR", "n")
	awaitCaughtUp(t, master.client, middle.client)
	for _, kind := range []string{"redis", "stave"} {
		replica := startInstance(t, kind)
		replica.follow(middle)
		awaitCaughtUp(t, middle.client, replica.client)
		master.must("INCR", "n") // in a stream that has selected 3
		awaitCaughtUp(t, master.client, replica.client)
		wantSame(t, master.client, replica.client)
		master.must("SELECT", "3")
	}
}

// TestRestartInChain: a server that is ended and started again goes on where it was, and so do its replicas: as a replica, also
// when the last that it got was nothing to be written; promoted; and demoted.
func TestRestartInChain(t *testing.T) {
	for _, bound := range []bool{false, true} {
		t.Run("bound="+strconv.FormatBool(bound), func(t *testing.T) {
			restartInChain(&restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0", bound: bound})
		})
	}
}

func restartInChain(m *restarting) {
	t := m.T
	middle := m.start()
	defer func() { m.end() }()
	_, port, _ := net.SplitHostPort(m.address)
	master := startInstance(t, "redis")
	below := []instance{startInstance(t, "redis"), startInstance(t, "stave")}
	middle.must("REPLICAOF", "127.0.0.1", master.port)
	awaitCaughtUp(t, master.client, middle)
	master.must("CONFIG", "SET", "repl-ping-replica-period", "1", "repl-backlog-size", "256mb") // whatever the load adds meanwhile
	for _, n := range below {
		n.must("REPLICAOF", "127.0.0.1", port)
	}
	loaded := func() {} // ends the load
	again := func(what string, above *client, below ...instance) {
		t.Helper()
		m.end()
		middle = m.start()
		middle.must("CONFIG", "SET", "repl-ping-replica-period", "1000")
		loaded()
		if above != nil {
			awaitCaughtUp(t, above, middle)
		}
		for _, n := range below {
			awaitCaughtUp(t, middle, n.client)
			wantSame(t, middle, n.client)
		}
		if n := middle.info("stats", "sync_full"); n != "0" {
			t.Errorf("%s: after the restart %s replicas were synchronized as a whole", what, n)
		}
	}
	prepare(master.client)
	pinged := master.info("replication", "master_repl_offset")
	await(t, "a PING comes", func() bool {
		return master.info("replication", "master_repl_offset") != pinged && middle.info("replication", "slave_repl_offset") != pinged
	})
	for _, n := range below {
		awaitCaughtUp(t, middle, n.client)
	}
	again("replica", master.client, below...)
	var counted atomic.Bool
	var counting sync.WaitGroup
	counting.Go(func() {
		for c := dial(t, master.address); !counted.Load(); {
			c.must("INCR", "counted")
		}
	})
	loaded = func() {
		counted.Store(true)
		counting.Wait()
	}
	again("replica, under load", master.client, below...)
	master.must("SET", "after", "1")
	master.must("CONFIG", "SET", "repl-ping-replica-period", "1000")
	awaitCaughtUp(t, master.client, middle)
	for _, n := range below {
		awaitCaughtUp(t, middle, n.client)
	}
	middle.must("CONFIG", "SET", "repl-ping-replica-period", "1000")
	middle.must("REPLICAOF", "NO", "ONE")
	for _, n := range below {
		awaitCaughtUp(t, middle, n.client)
	}
	again("promoted", nil, below...)
	next := below[1]
	next.must("REPLICAOF", "NO", "ONE")
	middle.must("REPLICAOF", "127.0.0.1", "1") // nobody is there
	again("demoted", nil)
	middle.must("REPLICAOF", "127.0.0.1", next.port)
	awaitCaughtUp(t, next.client, middle)
	wantSame(t, next.client, middle)
	if n := next.info("stats", "sync_full"); n != "0" {
		t.Errorf("the demoted one was synchronized as a whole")
	}
}

// TestRestartKeepsFormerID: who knows a promoted replica by the id of before alone goes on with it after a restart.
func TestRestartKeepsFormerID(t *testing.T) {
	m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	promoted := m.start()
	defer func() { m.end() }()
	_, port, _ := net.SplitHostPort(m.address)
	master := startInstance(t, "redis")
	promoted.must("REPLICAOF", "127.0.0.1", master.port)
	prepare(master.client)
	awaitCaughtUp(t, master.client, promoted)
	promoted.must("REPLICAOF", "NO", "ONE")
	m.end()
	promoted = m.start()
	master.must("REPLICAOF", "127.0.0.1", port)
	awaitCaughtUp(t, promoted, master.client)
	promoted.must("SET", "after", "1")
	awaitCaughtUp(t, promoted, master.client)
	wantSame(t, promoted, master.client)
	if n := promoted.info("stats", "sync_full"); n != "0" {
		t.Errorf("the former master was synchronized as a whole")
	}
}
