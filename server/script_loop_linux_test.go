package server_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// evalText is EVAL as a client sends it.
func evalText(script string, keysAndArgs ...string) string {
	return wireText(append([]string{"EVAL", script}, keysAndArgs...)...)
}

// TestScriptsInTheLoop: an event loop runs a script that is short, also together with other commands; one that takes
// long, or calls what does, leaves it, having done nothing there, and has the same reply.
func TestScriptsInTheLoop(t *testing.T) {
	v, address := serveByLoop(t, server.Options{})
	c := dial(t, address)
	var elements, scored []string
	for i := range 4000 {
		elements = append(elements, fmt.Sprint("e", i))
		scored = append(scored, fmt.Sprint(i), elements[i])
	}
	c.send(wireText(append([]string{"RPUSH", "large"}, elements...)...) + wireText("RPUSH", "small", "a", "b", "c", "a") +
		wireText(append([]string{"SADD", "set"}, elements...)...) + wireText(append([]string{"ZADD", "scored"}, scored...)...))
	c.expect(":4000\r\n:4\r\n:4000\r\n:4000\r\n")
	for _, test := range []struct {
		script, keys, want string
		leaves             bool
	}{
		{"return redis.call('GET', KEYS[1])", "1 none", "$-1\r\n", false},
		{"redis.call('SET', KEYS[1], '1') return redis.call('INCR', KEYS[1])", "1 n", ":2\r\n", false},
		{"return redis.call('INCR', 'not' .. 'declared')", "0", ":1\r\n", false},
		{"redis.call('SELECT', '1') redis.call('SET', KEYS[1], 'v') return redis.call('DEL', KEYS[1])", "1 k", ":1\r\n", false},
		{"return redis.call('LREM', KEYS[1], '1', 'a')", "1 small", ":1\r\n", false},
		{"return redis.call('LRANGE', KEYS[1], 0, 1)", "1 large", "*2\r\n$2\r\ne0\r\n$2\r\ne1\r\n", false},
		{"redis.call('INCR', KEYS[1]) return redis.error_reply('MY own')", "1 e", "-MY own\r\n", false},
		{"redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')", "1 e", "-WRONGTYPE", false},
		{"return redis.pcall('KEYS', '*').err and 1 or 2", "0", ":2\r\n", true},
		{"redis.call('INCR', KEYS[1]) local n = 0 for i = 1, 100000 do n = n + i end return redis.call('INCR', KEYS[1])", "1 long", ":2\r\n", true},
		{"redis.call('INCR', KEYS[1]) return #redis.call('LRANGE', KEYS[2], 0, -1)", "2 twice large", ":4000\r\n", true},
		{"redis.call('INCR', KEYS[1]) return #redis.call('SMEMBERS', KEYS[2])", "2 twice set", ":4000\r\n", true},
		{"return redis.call('LREM', KEYS[1], 0, 'none')", "1 large", ":0\r\n", true},
		{"return redis.call('LPOS', KEYS[1], 'e3999')", "1 large", ":3999\r\n", true},
		{"return redis.call('LINSERT', KEYS[1], 'BEFORE', 'e2500', 'x')", "1 large", ":4001\r\n", true},
		{"return redis.call('LTRIM', KEYS[1], 2000, -1)", "1 large", "+OK\r\n", false}, // one record, whatever it removes
		{"return redis.call('ZREMRANGEBYRANK', KEYS[1], 0, 2999)", "1 scored", ":3000\r\n", true},
		{"return redis.call('COPY', KEYS[1], KEYS[2]) ", "2 set other", ":1\r\n", true},
		{"return redis.call('PUBLISH', 'channel', 'message')", "0", ":0\r\n", false},
		{"return redis.sha1hex(string.rep('x', 10000000)):len()", "0", ":40\r\n", true},
	} {
		c.load(test.script) // what is unknown leaves the loop to be compiled
		before := v.Asides()
		c.send(evalText(test.script, strings.Fields(test.keys)...))
		if strings.HasSuffix(test.want, "\r\n") {
			c.expect(test.want)
		} else if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, test.want) || err != nil {
			t.Errorf("%s: %q, %v", test.script, line, err)
		}
		if left := v.Asides() > before; left != test.leaves {
			t.Errorf("%s: left the loop: %v, want %v", test.script, left, test.leaves)
		}
	}
}

// TestScriptsOfAPipeline: scripts and other commands that arrive together are one commit. One that learns which locks it
// needs has the commit begin again, and one that takes long is executed apart; each is executed once, in its order.
func TestScriptsOfAPipeline(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		store := openStore(t)
		c := serveStoreBy(t, store, server.Options{Transport: transport})()
		learns, long := "redis.call('GET', KEYS[1]) return redis.call('INC' .. 'R', 'a' .. 'b')", "for i = 1, 100000 do redis.call('INCR', KEYS[1]) end return 'done'"
		keyless, slow := "return redis.call('INC' .. 'R', 'c' .. 'd')", "return #redis.call('KEYS', '*') > 0"
		fails := "redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')"
		c.load(learns, keyless, long, slow, fails)
		for round := 1; round <= 3; round++ {
			c.send("SET k v\r\n" + evalText(learns, "1", "k") + evalText(keyless, "0") + evalText(long, "1", "counted") + evalText("return ARGV[1]", "0", "echo") + "GET k\r\n" +
				evalText(fails, "1", "failed") + evalText(slow, "0") + "INCR last\r\n")
			c.expect(fmt.Sprintf("+OK\r\n:%d\r\n:%d\r\n$4\r\ndone\r\n$4\r\necho\r\n$1\r\nv\r\n", round, round))
			if line := c.line(); !strings.HasPrefix(line, "-WRONGTYPE") {
				t.Errorf("%q", line)
			}
			c.expect(fmt.Sprintf(":1\r\n:%d\r\n", round))
		}
		c.send("MGET counted failed\r\n")
		c.expect("*2\r\n$6\r\n300000\r\n$1\r\n3\r\n")
		before := store.Stats().Commits
		c.send("INCR last\r\n" + strings.Repeat(evalText(learns, "1", "k"), 10) + "INCR last\r\n")
		c.expect(":4\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n:11\r\n:12\r\n:13\r\n:5\r\n")
		if made := store.Stats().Commits - before; made != 1 {
			t.Errorf("%d commits", made)
		}
	})
}

// TestScriptsTogether: scripts of many clients, in pipelines and with other commands, are each executed once and as a
// whole, also those that end with an error after they have written.
func TestScriptsTogether(t *testing.T) {
	const clients, rounds, jobs = 12, 25, 100
	move := "local id = redis.call('RPOPLPUSH', KEYS[1], KEYS[2]) redis.call('HINCRBY', ARGV[1] .. id, 'n', 1) redis.call('LREM', KEYS[2], 1, id) " +
		"redis.call('LPUSH', KEYS[1], id) return id"
	fails := "redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')"
	for _, mode := range []db.SyncMode{db.SyncNone, db.SyncAlways} {
		eachTransport(t, func(t *testing.T, transport server.Transport) {
			t.Run(fmt.Sprint(mode), func(t *testing.T) {
				store, err := db.Open(t.TempDir(), &db.Options{Sync: mode})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				})
				connect := serveStoreBy(t, store, server.Options{Transport: transport})
				first := connect()
				first.send("RPUSH wait" + numbered(jobs) + "\r\n")
				first.expect(fmt.Sprintf(":%d\r\n", jobs))
				var work sync.WaitGroup
				for i := range clients {
					c := connect()
					work.Go(func() {
						for n := range rounds {
							c.send(strings.Repeat(evalText(move, "2", "wait", "active", "job:"), 4) + evalText(fails, "1", "failed") +
								fmt.Sprintf("SET own%d %d\r\nGET own%d\r\n", i, n, i))
							for range 4 {
								if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, "$") || err != nil {
									t.Errorf("%q, %v", line, err)
									return
								}
								if _, err := c.in.ReadString('\n'); err != nil {
									t.Error(err)
									return
								}
							}
							if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, "-WRONGTYPE") || err != nil {
								t.Errorf("%q, %v", line, err)
								return
							}
							c.expect(fmt.Sprintf("+OK\r\n$%d\r\n%d\r\n", len(fmt.Sprint(n)), n))
						}
					})
				}
				work.Wait()
				first.send("LLEN wait\r\nEXISTS active\r\nGET failed\r\n" +
					evalText("local n = 0 for i = 0, 99 do n = n + (redis.call('HGET', 'job:' .. i, 'n') or 0) end return n", "0"))
				first.expect(fmt.Sprintf(":%d\r\n:0\r\n$%d\r\n%d\r\n:%d\r\n", jobs, len(fmt.Sprint(clients*rounds)), clients*rounds, 4*clients*rounds))
			})
		})
	}
}

// TestScriptsWaitForTheDisk: what a script of a batch has written is acknowledged when it is on the disk.
func TestScriptsWaitForTheDisk(t *testing.T) { eachTransport(t, scriptsWaitForTheDisk) }

func scriptsWaitForTheDisk(t *testing.T, transport server.Transport) {
	faults := vfstest.NewFault(vfs.NewMem())
	store, err := db.Open("d", seam.With(&db.Options{Sync: db.SyncAlways, NoMerge: true}, seam.Options{FS: faults}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // its disk has failed
	c := serveStoreBy(t, store, server.Options{Transport: transport})()
	set := evalText("return redis.call('SET', KEYS[1], ARGV[1])", "1", "k", "v")
	c.send(set)
	c.expect("+OK\r\n")
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	faults.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "*.data", Sticky: true, Err: syscall.EIO, Do: func(vfstest.Event) { <-gate }})
	c.send("PING\r\n" + set + set)
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if reply, err := c.in.ReadByte(); err == nil {
		t.Fatalf("%c: acknowledged before it is on the disk", reply)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	open()
	if line, err := c.in.ReadString('\n'); line != "+PONG\r\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, "-") || err != nil {
		t.Errorf("the disk has failed: %q, %v", line, err)
	}
	c.expectEnd()
}
