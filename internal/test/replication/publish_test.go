package replication_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/redisserver"
	"github.com/stavedb/stave/server"
)

// listener is a client that has subscribed to something.
type listener struct{ *client }

// next returns the payload of the next message, and what it came to.
func (l listener) next() (channel, payload string) {
	l.t.Helper()
	if err := l.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		l.t.Fatal(err)
	}
	r, err := l.decoder.Read()
	if err != nil {
		l.t.Fatalf("waiting for a message: %v", err)
	}
	n := len(r.Items)
	if n < 3 || !strings.HasSuffix(string(r.Items[0].Text), "message") {
		l.t.Fatalf("%.200s is no message", text(r))
	}
	return string(r.Items[n-2].Text), string(r.Items[n-1].Text)
}

// until returns the payloads of the messages before one that ends them.
func (l listener) until(end string) (list []string) {
	l.t.Helper()
	for {
		_, payload := l.next()
		if payload == end {
			return list
		}
		list = append(list, payload)
	}
}

// staveReplica starts a Stave that is the replica of a master on this machine, and returns its address.
func staveReplica(t *testing.T, masterPort string, o *server.Options) (address string) {
	t.Helper()
	address, _ = serve(t, dbtest.New(t), o)
	dial(t, address).must("REPLICAOF", "127.0.0.1", masterPort)
	return address
}

// follows waits until a replica's link is up, as both see it.
func follows(t *testing.T, master, replica *client) {
	t.Helper()
	await(t, "the replica follows", func() bool {
		return replica.info("replication", "master_link_status") == "up" && strings.Contains(master.info("replication", "slave0"), "online")
	})
}

// publishing are the ways to publish: what is sent, and the messages that come of it.
var publishing = []struct {
	send [][]string
	want string
}{
	{[][]string{{"PUBLISH", "c", "alone"}}, "alone"},
	{[][]string{{"SPUBLISH", "shard", "to shard"}}, "to shard"},
	{[][]string{{"PUBLISH", "c", "binary\x00\r\n"}}, "binary\x00\r\n"},
	{[][]string{{"PUBLISH", "nobody", "x"}}, ""},
	{[][]string{{"SELECT", "3"}, {"PUBLISH", "c", "of database 3"}, {"SET", "k3", "v"}, {"SELECT", "0"}}, "of database 3"},
	{[][]string{{"MULTI"}, {"SET", "a", "1"}, {"PUBLISH", "c", "one"}, {"SET", "b", "1"}, {"SPUBLISH", "shard", "two"}, {"EXEC"}}, "one two"},
	{[][]string{{"MULTI"}, {"PUBLISH", "c", "without keys"}, {"EXEC"}}, "without keys"},
	{[][]string{{"MULTI"}, {"GET", "a"}, {"PUBLISH", "c", "reads only"}, {"EXEC"}}, "reads only"},
	{[][]string{{"MULTI"}, {"PUBLISH", "c", "dropped"}, {"DISCARD"}}, ""},
	{[][]string{{"MULTI"}, {"PUBLISH", "c", "refused"}, {"NOSUCHCOMMAND"}, {"EXEC"}}, ""},
	{[][]string{{"MULTI"}, {"SET", "text", "x"}, {"INCR", "text"}, {"PUBLISH", "c", "after an error"}, {"EXEC"}}, "after an error"},
	{[][]string{{"EVAL", "redis.call('SET', KEYS[1], 1) redis.call('PUBLISH', 'c', 'script') return redis.call('PUBLISH', 'c', 'again')", "1", "s"}}, "script again"},
	{[][]string{{"EVAL", "return redis.call('PUBLISH', 'c', 'script without keys')", "0"}}, "script without keys"},
	{[][]string{{"EVAL", "redis.call('PUBLISH', 'c', 'before the error') error('x')", "0"}}, "before the error"},
	{[][]string{{"MULTI"}, {"EVAL", "redis.call('PUBLISH', 'c', 'script in a transaction')", "0"}, {"PUBLISH", "c", "next"}, {"EXEC"}}, "script in a transaction next"},
	{[][]string{{"FUNCTION", "LOAD", "REPLACE", "#!lua name=p\nredis.register_function('say', function(keys, args) return redis.call('PUBLISH', keys[1], args[1]) end)"},
		{"FCALL", "say", "1", "c", "function"}}, "function"},
	{[][]string{{"PUBLISH", "c", strings.Repeat("long ", 60_000)}}, strings.Repeat("long ", 60_000)},
}

// TestPublishReachesReplicas: each way to publish, from each master to subscribers at each replica: Redis and Stave. A
// replica that takes less in a transaction than its master sends as one message gets it all the same.
func TestPublishReachesReplicas(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	_, port, _ := net.SplitHostPort(address)
	redis := redisserver.StartMaster(t, "")
	small := &server.Options{MaxQueue: 100_000}
	t.Run("Stave to Redis", func(t *testing.T) {
		replica := startRedis(t, port)
		publishTo(t, dial(t, address), replica, dial(t, replica.conn.RemoteAddr().String()))
	})
	t.Run("Stave to Stave", func(t *testing.T) {
		at := staveReplica(t, port, small)
		publishTo(t, dial(t, address), dial(t, at), dial(t, at))
	})
	t.Run("Redis to Stave", func(t *testing.T) {
		at := staveReplica(t, redis.Port, small)
		publishTo(t, dial(t, redis.Socket), dial(t, at), dial(t, at))
	})
}

// publishTo publishes at a master, and compares what a subscriber of its replica gets.
func publishTo(t *testing.T, master, replica, subscriber *client) {
	follows(t, master, replica)
	subscriber.pipeline([]string{"SUBSCRIBE", "c"}, []string{"SSUBSCRIBE", "shard"}, []string{"PSUBSCRIBE", "[e]nd"})
	l := listener{subscriber}
	for i, p := range publishing {
		master.pipeline(p.send...)
		end := "end " + strconv.Itoa(i)
		master.must("PUBLISH", "end", end)
		if got := strings.Join(l.until(end), " "); got != p.want {
			t.Errorf("%.300q: the messages are %.100q, want %.100q", p.send, got, p.want)
		}
	}
	// They are counted by WAIT, and said at the replica, they stay there.
	master.must("PUBLISH", "nobody", "x")
	if n := master.must("WAIT", "1", "60000"); n == "0" {
		t.Error("WAIT after PUBLISH: no replica has it")
	}
	if n := replica.must("PUBLISH", "c", "at the replica"); n != "1" {
		t.Errorf("PUBLISH at the replica: %s", n)
	}
	if _, got := l.next(); got != "at the replica" {
		t.Errorf("the subscriber got %q", got)
	}
	awaitCaughtUp(t, master, replica)
}

// TestPublishKeepsOrder: at a replica each client's messages and commits come in the order in which it made them, and those
// of a transaction after its commit, whatever the others do.
func TestPublishKeepsOrder(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	_, port, _ := net.SplitHostPort(address)
	replica := startRedis(t, port, "--notify-keyspace-events", "E$")
	follows(t, dial(t, address), replica)
	l := listener{dial(t, replica.conn.RemoteAddr().String())}
	l.pipeline([]string{"PSUBSCRIBE", "*"})
	const clients, rounds = 3, 100
	var wait sync.WaitGroup
	for i := range clients {
		c := dial(t, address)
		wait.Go(func() {
			me := strconv.Itoa(i)
			for round := range rounds {
				n := strconv.Itoa(round)
				c.pipeline([]string{"SET", me + ":a" + n, ""}, []string{"PUBLISH", "m", me + ":m" + n}, []string{"SET", me + ":b" + n, ""},
					[]string{"MULTI"}, []string{"SET", me + ":c" + n, ""}, []string{"PUBLISH", "m", me + ":n" + n}, []string{"EXEC"},
					[]string{"EVAL", "redis.call('SET', KEYS[1], '') redis.call('PUBLISH', 'm', ARGV[1])", "1", me + ":d" + n, me + ":o" + n})
			}
		})
	}
	var got, want [clients][]string
	for range clients * rounds * 7 {
		_, payload := l.next()
		i, what, _ := strings.Cut(payload, ":")
		n, err := strconv.Atoi(i)
		if err != nil {
			t.Fatal(payload)
		}
		got[n] = append(got[n], what)
	}
	wait.Wait()
	for i := range clients {
		for round := range rounds {
			for _, what := range []string{"a", "m", "b", "c", "n", "d", "o"} {
				want[i] = append(want[i], fmt.Sprint(what, round))
			}
		}
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("client %d: %q", i, got[i])
		}
	}
}

// TestPublishWithoutReplicas: messages are kept for nobody.
func TestPublishWithoutReplicas(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	c := dial(t, address)
	c.pipeline([]string{"PUBLISH", "c", "x"}, []string{"MULTI"}, []string{"PUBLISH", "c", "y"}, []string{"EXEC"})
	if offset := c.info("replication", "master_repl_offset"); offset != "0" {
		t.Errorf("the stream has got to %s", offset)
	}
}
