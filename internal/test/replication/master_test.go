package replication_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// handshake asks for the stream, or for what args say, as a replica that the test plays.
func handshake(t *testing.T, address string, args ...string) *client {
	t.Helper()
	c := dial(t, address)
	c.must("REPLCONF", "listening-port", "6380")
	c.must("REPLCONF", "capa", "eof", "capa", "psync2")
	if _, err := c.conn.Write(resp.AppendCommandStrings(nil, args...)); err != nil {
		t.Fatal(err)
	}
	return c
}

// until reads until the text has come, and returns all that came.
func (c *client) until(text string) string {
	c.t.Helper()
	var all []byte
	buf := make([]byte, 4<<10)
	for !strings.Contains(string(all), text) {
		_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := c.conn.Read(buf)
		if all = append(all, buf[:n]...); err != nil {
			c.t.Fatalf("%v after %d bytes, waiting for %q: %.2000q", err, len(all), text, all)
		}
	}
	return string(all)
}

// TestNothingBeforeTheFirstAck: a replica that still loads the file is sent nothing.
func TestNothingBeforeTheFirstAck(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, address)
			master.must("SET", "before", "1")
			replica := handshake(t, address, "PSYNC", "?", "-1")
			head := replica.until("$EOF:")
			for len(head[strings.Index(head, "$EOF:"):]) < len("$EOF:")+40 {
				head += replica.until("")
			}
			mark := head[strings.Index(head, "$EOF:")+len("$EOF:"):][:40]
			if file := head[strings.Index(head, mark)+40:]; !strings.Contains(file, mark) {
				replica.until(mark)
			}
			master.must("SELECT", "3")
			master.must("SET", "after", "2")
			_ = replica.conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			if n, err := replica.conn.Read(make([]byte, 100)); err == nil {
				t.Fatalf("%d bytes came before the first ACK", n)
			}
			if _, err := replica.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "0")); err != nil {
				t.Fatal(err)
			}
			if stream := replica.until("after"); !strings.HasPrefix(stream, "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n") {
				t.Errorf("the stream begins with %.100q", stream)
			}
		})
	}
}

// TestWait: WAIT counts replicas that have acknowledged what was written.
func TestWait(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	master := dial(t, address)
	_, port, _ := net.SplitHostPort(address)
	if n := master.must("WAIT", "1", "10"); n != "0" {
		t.Errorf("%s replicas, there are none", n)
	}
	replica := startRedis(t, port)
	awaitCaughtUp(t, master, replica)
	for range 50 {
		master.must("INCR", "n")
		if n := master.must("WAIT", "1", "20000"); n != "1" {
			t.Fatalf("%s replicas have acknowledged, want 1", n)
		}
		if have, want := replica.must("GET", "n"), master.must("GET", "n"); have != want {
			t.Fatalf("WAIT has counted a replica with %s, want %s", have, want)
		}
	}
	silent := handshake(t, address, "PSYNC", "?", "-1")
	silent.until("$EOF:")
	master.must("INCR", "n")
	if n := master.must("WAIT", "2", "200"); n != "1" {
		t.Errorf("%s replicas have acknowledged, want that which has", n)
	}
	if n := master.must("WAIT", "0", "0"); n != "1" {
		t.Errorf("WAIT 0 counts %s, want 1", n)
	}
}

// TestFewReplicas: min-replicas-to-write refuses writes, also in EXEC and in scripts, while there are too few.
func TestFewReplicas(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	master := dial(t, address)
	_, port, _ := net.SplitHostPort(address)
	master.must("CONFIG", "SET", "min-replicas-to-write", "1")
	refused := func(args ...string) {
		t.Helper()
		if reply := master.do(args...); !strings.Contains(reply, "NOREPLICAS") {
			t.Errorf("%q: %s, want NOREPLICAS", args, reply)
		}
	}
	refused("SET", "k", "v")
	refused("EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", "k")
	master.must("GET", "k")
	replica := startRedis(t, port)
	awaitCaughtUp(t, master, replica)
	master.must("SET", "k", "v")
	replica.must("REPLICAOF", "NO", "ONE")
	await(t, "the replica has left", func() bool { return master.info("replication", "connected_slaves") == "0" })
	refused("SET", "k", "v")
	if reply := master.do("MULTI"); reply != "OK" {
		t.Fatal(reply)
	}
	refused("SET", "k", "v")
	if reply := master.do("EXEC"); !strings.Contains(reply, "EXECABORT") {
		t.Errorf("EXEC: %s", reply)
	}
}

// TestShown: ROLE, INFO and CLIENT LIST know replicas.
func TestShown(t *testing.T) {
	address, _ := serve(t, dbtest.New(t), nil)
	master := dial(t, address)
	_, port, _ := net.SplitHostPort(address)
	replica := startRedis(t, port, "--replica-announce-port", "7777", "--replica-announce-ip", "10.1.2.3")
	awaitCaughtUp(t, master, replica)
	master.must("SET", "k", "v")
	master.must("WAIT", "1", "20000")
	if role := master.must("ROLE"); !strings.HasPrefix(role, "[master ") || !strings.Contains(role, "[[10.1.2.3 7777 ") {
		t.Errorf("ROLE: %s", role)
	}
	if line := master.info("replication", "slave0"); !strings.HasPrefix(line, "ip=10.1.2.3,port=7777,state=online,offset=") {
		t.Errorf("INFO: %s", line)
	}
	if list := master.must("CLIENT", "LIST", "TYPE", "replica"); !strings.Contains(list, "flags=S ") || strings.Count(list, "id=") != 1 {
		t.Errorf("CLIENT LIST: %s", list)
	}
	if n := master.must("CLIENT", "KILL", "TYPE", "slave"); n != "1" {
		t.Errorf("CLIENT KILL has ended %s replicas", n)
	}
	await(t, "the replica comes back", func() bool { return master.info("stats", "sync_partial_ok") == "1" })
}

// TestRedisCLI: redis-cli --rdb gets a file that a Redis loads.
func TestRedisCLI(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed")
	}
	for _, transport := range transports {
		address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
		prepare(dial(t, address))
		_, port, _ := net.SplitHostPort(address)
		file := filepath.Join(t.TempDir(), "dump.rdb")
		if out, err := exec.Command(cli, "-p", port, "--rdb", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if check, err := exec.LookPath("redis-check-rdb"); err == nil {
			if out, err := exec.Command(check, file).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
		if content, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(content), "REDIS0010") {
			t.Errorf("%v, %.20q", err, content)
		}
	}
}

// TestRedisCLIFollows: redis-cli --replica prints the stream, and goes on doing so although it acknowledges nothing.
func TestRedisCLIFollows(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed")
	}
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, address)
			prepare(master)
			master.must("CONFIG", "SET", "repl-timeout", "2")
			_, port, _ := net.SplitHostPort(address)
			tool := exec.Command(cli, "-p", port, "--replica")
			file := filepath.Join(t.TempDir(), "out")
			out, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			tool.Stdout = out
			if err := tool.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = tool.Process.Kill()
				_ = tool.Wait()
			}()
			await(t, "it follows", func() bool { return strings.Contains(master.info("replication", "slave0"), "state=online") })
			began := time.Now()
			for n := 0; time.Since(began) < 5*time.Second; n++ { // some silent timeouts
				master.must("HSET", "h", strconv.Itoa(n), "v")
				want := `"HSET","h","` + strconv.Itoa(n) + `","v"`
				await(t, "it prints "+want, func() bool {
					printed, err := os.ReadFile(file)
					return err == nil && strings.Contains(string(printed), want)
				})
			}
			if n := master.info("replication", "connected_slaves"); n != "1" {
				t.Errorf("%s replicas are connected", n)
			}
		})
	}
}

// TestOverLimit: a replica that reads nothing is closed when more waits for it than client-output-buffer-limit allows, and
// holds nobody up.
func TestOverLimit(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, address)
			master.must("CONFIG", "SET", "client-output-buffer-limit", "replica 4mb 0 0", "repl-backlog-size", "1mb")
			replica := handshake(t, address, "PSYNC", "?", "-1")
			replica.until("$EOF:")
			value := strings.Repeat("x", 512<<10)
			for range 60 { // far more than the buffers of the sockets
				master.must("SET", "k", value)
			}
			await(t, "the replica is cut off", func() bool { return master.info("replication", "connected_slaves") == "0" })
			if n := master.info("replication", "repl_backlog_histlen"); len(n) > len("1600000") {
				t.Errorf("%s bytes are kept, limit 1 MiB", n)
			}
		})
	}
}

// TestMemoryOfThoseWhoNeverRead: a replica that takes nothing keeps no more of the stream in memory than its limit, and none
// of what is written after it has left, however it left.
func TestMemoryOfThoseWhoNeverRead(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			store, err := db.Open(t.TempDir(), nil) // on a disk: it is not to be counted
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			address, stop := serve(t, store, &server.Options{Transport: transport})
			defer stop()
			master := dial(t, address)
			master.must("CONFIG", "SET", "client-output-buffer-limit", "replica 4mb 0 0", "repl-backlog-size", "1mb")
			value := strings.Repeat("x", 1<<20)
			gone := func() bool { return master.info("replication", "connected_slaves") == "0" }
			for _, leave := range []func(*client){
				func(*client) {}, // is cut off by the limit
				func(c *client) { _ = c.conn.Close() },
				func(*client) { master.must("CLIENT", "KILL", "TYPE", "replica") },
			} {
				replica := handshake(t, address, "PSYNC", "?", "-1")
				replica.until("$EOF:")
				leave(replica)
				for range 20 { // far more than the buffers of the sockets
					master.must("SET", "k", value)
				}
				await(t, "the replica has left", gone)
			}
			before := heap()
			for range 200 {
				master.must("SET", "k", value)
			}
			if more := heap() - before; more > 32<<20 {
				t.Errorf("%d MiB more are in use after 200 MiB of the stream, limit 1", more>>20)
			}
		})
	}
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what a finalizer or a pool held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
