//go:build unix

package replication_test

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// counting are clients that count, each a key of its own, at whichever of some servers is the master.
type counting struct {
	ports []string
	stop  chan struct{}
	work  sync.WaitGroup

	mu      sync.Mutex
	counted []int // that the servers have acknowledged
	unknown []int // that may have happened
}

// startCounting starts so many of them.
func startCounting(clients int, ports ...string) *counting {
	l := &counting{ports: ports, stop: make(chan struct{}), counted: make([]int, clients), unknown: make([]int, clients)}
	for i := range clients {
		l.work.Go(func() { l.run(i) })
	}
	return l
}

func (l *counting) run(i int) {
	for n := 0; ; n++ {
		c, err := connect(l.ports[n%len(l.ports)], "", nil)
		if err == nil {
			l.count(c, i)
			_ = c.Close()
		}
		select {
		case <-l.stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// count counts until a server refuses it.
func (l *counting) count(c *caller, i int) {
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		replies, err := c.call([]string{"INCR", "count" + strconv.Itoa(i)})
		l.mu.Lock()
		switch {
		case err != nil:
			l.unknown[i]++
		case !replies[0].IsError():
			l.counted[i]++
		}
		l.mu.Unlock()
		if err != nil || replies[0].IsError() {
			return
		}
	}
}

// sum is how much has been counted.
func (l *counting) sum() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.counted {
		n += one
	}
	return n
}

// awaitProgress waits until more has been counted.
func (l *counting) awaitProgress(t *testing.T) {
	t.Helper()
	enough := l.sum() + 50
	await(t, "counting goes on", func() bool { return l.sum() >= enough })
}

// wantAll ends the counting, and compares it with what a server has.
func (l *counting) wantAll(t *testing.T, master *client) {
	t.Helper()
	close(l.stop)
	l.work.Wait()
	for i, n := range l.counted {
		have, _ := strconv.Atoi(master.must("GET", "count"+strconv.Itoa(i)))
		if have < n || have > n+l.unknown[i] {
			t.Errorf("client %d has counted up to %d, and perhaps %d more; the server has %d", i, n, l.unknown[i], have)
		}
	}
}

// awaitRoles waits until one server is the master of the other, which has everything.
func awaitRoles(t *testing.T, master, replica *client) {
	t.Helper()
	_, port, _ := net.SplitHostPort(master.conn.RemoteAddr().String())
	await(t, "the roles are "+master.conn.RemoteAddr().String()+" and its replica", func() bool {
		return master.info("replication", "role") == "master" && replica.info("replication", "role") == "slave" &&
			replica.info("replication", "master_port") == port && replica.info("replication", "master_link_status") == "up" &&
			master.info("replication", "master_failover_state") == "no-failover" && replica.info("replication", "master_failover_state") == "no-failover"
	})
}

// TestFailover: the role goes to the replica and back again under load, between all pairs. Nothing that was acknowledged is lost, and
// nothing is done twice.
func TestFailover(t *testing.T) {
	redis := func(t *testing.T) *client { return dial(t, "127.0.0.1:"+redisserver.StartMaster(t, "").Port) }
	for name, start := range map[string]func(t *testing.T) *client{"Stave and Stave": startReplica, "Stave and Redis": redis} {
		t.Run(name, func(t *testing.T) {
			a, b := startReplica(t), start(t)
			prepare(a)
			b.must("REPLICAOF", "127.0.0.1", a.port())
			awaitRoles(t, a, b)
			first := a
			l := startCounting(4, a.port(), b.port())
			for i := range 6 {
				awaitCaughtUp(t, a, b)
				l.awaitProgress(t)
				if i < 2 {
					a.must("FAILOVER")
				} else {
					a.must("FAILOVER", "TO", "127.0.0.1", b.port(), "TIMEOUT", "60000")
				}
				awaitRoles(t, b, a)
				a, b = b, a
			}
			l.awaitProgress(t)
			l.wantAll(t, a)
			awaitCaughtUp(t, a, b)
			wantSame(t, a, b)
			for _, c := range []*client{a, b} {
				if n := c.info("stats", "sync_full"); n != map[bool]string{true: "1", false: "0"}[c == first] {
					t.Errorf("%s has served %s full synchronizations", c.port(), n)
				}
			}
		})
	}
}

// TestFailoverRefusals: what Redis refuses, in its words.
func TestFailoverRefusals(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	of := map[string]*client{"Redis": dial(t, "127.0.0.1:"+r.Port), "Stave": startReplica(t)}
	for name, c := range of {
		refused := func(text string, args ...string) {
			t.Helper()
			if have := c.do(args...); have != "(error) ERR "+text {
				t.Errorf("%s: %q: %s, want %s", name, args, have, text)
			}
		}
		refused("syntax error", "FAILOVER", "NOW")
		refused("syntax error", "FAILOVER", "ABORT", "TIMEOUT", "1")
		refused("value is not an integer or out of range", "FAILOVER", "TO", "localhost", "x")
		refused("FAILOVER timeout must be greater than 0", "FAILOVER", "TIMEOUT", "0")
		refused("No failover in progress.", "FAILOVER", "ABORT")
		refused("FAILOVER requires connected replicas.", "FAILOVER")
		c.must("REPLCONF", "capa", "eof")
		refused("PSYNC FAILOVER can't be sent to a master.", "PSYNC", "x", "1", "FAILOVER")
		replica := startReplica(t)
		replica.must("REPLICAOF", "127.0.0.1", c.port())
		awaitCaughtUp(t, c, replica)
		refused("FAILOVER with force option requires both a timeout and target HOST and IP.", "FAILOVER", "FORCE")
		refused("FAILOVER target HOST and PORT is not a replica.", "FAILOVER", "TO", "127.0.0.1", "1")
		c, name = replica, "the replica of "+name
		refused("FAILOVER is not valid when server is a replica.", "FAILOVER")
		c.must("REPLCONF", "capa", "eof")
		refused("PSYNC FAILOVER replid must match my replid.", "PSYNC", strings.Repeat("0", 40), "1", "FAILOVER")
	}
}

// silentReplica plays a replica that has loaded the file, and acknowledges nothing after that.
func silentReplica(t *testing.T, master *client) *client {
	t.Helper()
	silent := handshake(t, master.conn.RemoteAddr().String(), "PSYNC", "?", "-1")
	silent.until("$EOF:")
	await(t, "it is online", func() bool {
		_, _ = silent.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "0")) // what comes before the end of the file does not count
		return strings.Contains(master.info("replication", "slave0"), "state=online")
	})
	master.must("INCR", "lacked")
	return silent
}

// TestFailoverEnds: one whose replica does not catch up pauses writes, and those alone, until its time is over or ABORT. Neither CLIENT
// UNPAUSE nor REPLICAOF ends it.
func TestFailoverEnds(t *testing.T) {
	master := startReplica(t)
	silentReplica(t, master)
	for _, how := range []string{"TIMEOUT", "ABORT"} {
		if how == "TIMEOUT" {
			master.must("FAILOVER", "TIMEOUT", "1500")
		} else {
			master.must("FAILOVER", "TO", "127.0.0.1", "6380")
		}
		wantInfo(t, master, "master_failover_state", "waiting-for-sync")
		want(t, master, "(error) ERR FAILOVER already in progress.", "FAILOVER")
		want(t, master, "(error) ERR REPLICAOF not allowed while failing over.", "REPLICAOF", "NO", "ONE")
		master.must("CLIENT", "PAUSE", "50", "ALL")
		master.must("CLIENT", "UNPAUSE")
		writer, written := dial(t, master.conn.RemoteAddr().String()), make(chan string, 1)
		go func() { written <- writer.do("INCR", "paused") }()
		select {
		case reply := <-written:
			if master.info("replication", "master_failover_state") != "no-failover" {
				t.Errorf("INCR: %s", reply)
			}
			written <- reply
		case <-time.After(100 * time.Millisecond):
		}
		want(t, master, "(nil)", "GET", "none")
		if how == "ABORT" {
			master.must("FAILOVER", "ABORT")
		}
		if reply := <-written; strings.HasPrefix(reply, "(error)") {
			t.Errorf("INCR: %s", reply)
		}
		wantInfo(t, master, "master_failover_state", "no-failover")
		wantInfo(t, master, "role", "master")
	}
	want(t, master, "2", "GET", "paused")
}

// TestFailoverNotToATool: what has everything, and has not said where it listens, is not made the master.
func TestFailoverNotToATool(t *testing.T) {
	master := startReplica(t)
	tool := dial(t, master.conn.RemoteAddr().String())
	tool.must("REPLCONF", "capa", "eof", "capa", "psync2")
	if _, err := tool.conn.Write(resp.AppendCommandStrings(nil, "PSYNC", "?", "-1")); err != nil {
		t.Fatal(err)
	}
	tool.until("$EOF:")
	await(t, "it has everything", func() bool {
		_, _ = tool.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "100000000"))
		return master.must("WAIT", "1", "10") == "1"
	})
	master.must("FAILOVER", "TIMEOUT", "300")
	await(t, "its time is over", func() bool {
		_, _ = tool.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "100000000"))
		return master.info("replication", "master_failover_state") == "no-failover"
	})
	wantInfo(t, master, "role", "master")
	want(t, master, "OK", "SET", "a", "1")
}

// TestFailoverForced: at the end of its time the target becomes the master, though it answers nothing. While it does not, the server
// is a replica, also after it was killed; ABORT makes it the master again.
func TestFailoverForced(t *testing.T) {
	g := &group{t: t}
	g.add(false, "")
	g.add(false, "")
	a, b := g.nodes[0], g.nodes[1]
	await(t, "it follows", func() bool { return b.info("master_link_status") == "up" })
	force := func() {
		t.Helper()
		b.signal(syscall.SIGSTOP)
		master := dial(t, "127.0.0.1:"+a.port)
		master.must("INCR", "lacked")
		master.must("FAILOVER", "TO", "127.0.0.1", b.port, "FORCE", "TIMEOUT", "100")
		await(t, "it is handed over", func() bool { return a.info("master_failover_state") == "failover-in-progress" })
		want(t, master, readOnly, "INCR", "lacked")
	}
	force()
	master := dial(t, "127.0.0.1:"+a.port)
	want(t, master, "(error) NOMASTERLINK...", "PSYNC", "?", "-1")
	master.must("FAILOVER", "ABORT")
	want(t, master, "2", "INCR", "lacked")
	b.signal(syscall.SIGCONT)
	awaitRoles(t, master, dial(t, "127.0.0.1:"+b.port))
	force()
	a.signal(syscall.SIGKILL)
	a.start()
	master = dial(t, "127.0.0.1:"+a.port)
	wantInfo(t, master, "master_failover_state", "failover-in-progress")
	want(t, master, readOnly, "INCR", "lacked")
	b.signal(syscall.SIGCONT)
	successor := dial(t, "127.0.0.1:"+b.port)
	awaitRoles(t, successor, master)
	awaitCaughtUp(t, successor, master)
	wantSame(t, successor, master)
}

// TestFailoverRefusedByTarget: a replica that refuses to become the master leaves the master what it was.
func TestFailoverRefusedByTarget(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c := resp.NewDecoder(conn)
			for range 6 { // PING, three REPLCONF, INFO, PSYNC
				r, err := c.Read()
				if err != nil {
					break
				}
				answer := "+OK\r\n"
				if string(r.Items[0].Text) == "PSYNC" {
					answer = "-ERR not today\r\n"
				}
				_, _ = conn.Write([]byte(answer))
			}
			_ = conn.Close()
		}
	}()
	master := startReplica(t)
	master.must("SET", "a", "1")
	silent := dial(t, master.conn.RemoteAddr().String())
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	silent.must("REPLCONF", "listening-port", port, "capa", "eof", "capa", "psync2")
	if _, err := silent.conn.Write(resp.AppendCommandStrings(nil, "PSYNC", "?", "-1")); err != nil {
		t.Fatal(err)
	}
	silent.until("$EOF:")
	master.must("FAILOVER")
	await(t, "it has failed", func() bool {
		_, _ = silent.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "100000000")) // it has everything; what comes before the end of the file does not count
		return master.info("replication", "master_failover_state") == "no-failover"
	})
	await(t, "it is a master", func() bool { return master.info("replication", "role") == "master" })
	want(t, master, "OK", "SET", "b", "1")
	want(t, master, "1", "GET", "a")
}

// TestFailoverKilled: whichever of the two is killed at whatever moment of a FAILOVER, after it was started again there is one
// master and one replica, without anybody's help, and what was acknowledged is there.
func TestFailoverKilled(t *testing.T) {
	rng := chance.Rand(t)
	g := &group{t: t}
	g.add(false, "")
	g.add(false, "")
	a, b := g.nodes[0], g.nodes[1]
	l := startCounting(3, a.port, b.port)
	for round := range 6 {
		await(t, "one is the master, the other one its replica", func() bool {
			if a.info("role") == "slave" {
				a, b = b, a
			}
			return a.info("role") == "master" && b.info("master_link_status") == "up" && b.info("master_port") == a.port &&
				a.info("master_failover_state") == "no-failover" && b.info("master_failover_state") == "no-failover"
		})
		l.awaitProgress(t)
		dial(t, "127.0.0.1:"+a.port).must("FAILOVER")
		time.Sleep(time.Duration(rng.IntN(30_000)) * time.Microsecond)
		killed := g.nodes[rng.IntN(2)]
		killed.signal(syscall.SIGKILL)
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		killed.start()
		t.Logf("round %d: the FAILOVER of %s, and %s was killed", round, a.name(), killed.name())
	}
	await(t, "one is the master, the other one its replica", func() bool {
		if a.info("role") == "slave" {
			a, b = b, a
		}
		return a.info("role") == "master" && b.info("master_link_status") == "up" &&
			a.info("master_failover_state") == "no-failover" && b.info("master_failover_state") == "no-failover"
	})
	master, replica := dial(t, "127.0.0.1:"+a.port), dial(t, "127.0.0.1:"+b.port)
	l.wantAll(t, master)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
}

// TestFailoverIsOverWithAnotherMaster: a server that was killed while it handed over, and is started with another master in its settings, hands
// nothing over any more: its role can be changed.
func TestFailoverIsOverWithAnotherMaster(t *testing.T) {
	for _, setting := range []string{"no one", "localhost 3"} {
		store := dbtest.New(t)
		if err := serverside.DB.SetReplicaOf(store, []byte("r\nlocalhost 1\nlocalhost 2\nfailover\n"), true); err != nil {
			t.Fatal(err)
		}
		address, _ := serve(t, store, configured(t, "replicaof", setting))
		c := dial(t, address)
		if state := c.info("replication", "master_failover_state"); state != "no-failover" {
			t.Errorf("replicaof %s: %s", setting, state)
		}
		want(t, c, "OK", "REPLICAOF", "localhost", "4")
	}
}
