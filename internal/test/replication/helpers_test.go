package replication_test

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/leak"
	"github.com/stavedb/stave/internal/test/redisserver"
	"github.com/stavedb/stave/server"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDirectory); dir != "" {
		serveChild(dir)
		return
	}
	if file := os.Getenv(childConfig); file != "" {
		os.Exit(cli.Run([]string{"stave", "serve", "--config", file}, os.Stdin, os.Stdout, os.Stderr))
	}
	leak.VerifyTestMain(m)
}

// childConfig names the file of settings of a process that this test binary is started as: stave serve.
const childConfig = "STAVE_TEST_CONFIG"

// client is a connection to either server.
type client struct {
	t       testing.TB
	conn    net.Conn
	decoder *resp.Decoder
}

// dial connects to an address, which is the path of a socket if it begins with a slash.
func dial(t testing.TB, address string) *client {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn, resp.NewDecoder(conn)}
}

// do executes a command and returns the reply as text; an error reply begins with (error).
func (c *client) do(args ...string) string {
	c.t.Helper()
	return text(c.pipeline(args)[0])
}

// must is do that is not refused.
func (c *client) must(args ...string) string {
	c.t.Helper()
	reply := c.do(args...)
	if strings.HasPrefix(reply, "(error)") {
		c.t.Fatalf("%q: %s", args, reply)
	}
	return reply
}

// pipeline executes commands that are sent together.
func (c *client) pipeline(commands ...[]string) []resp.Reply {
	c.t.Helper()
	var in []byte
	for _, args := range commands {
		in = resp.AppendCommandStrings(in, args...)
	}
	if _, err := c.conn.Write(in); err != nil {
		c.t.Fatal(err)
	}
	replies := make([]resp.Reply, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = c.decoder.Read(); err != nil {
			c.t.Fatalf("%q: %v", commands[i], err)
		}
	}
	return replies
}

// info is a field of INFO.
func (c *client) info(section, field string) string {
	c.t.Helper()
	for line := range strings.Lines(c.must("INFO", section)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value
		}
	}
	return ""
}

// serve serves a store on a port of its own until the test ends, or stop is called.
func serve(t testing.TB, store *db.Store, o *server.Options) (address string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = ln.Addr().String()
	v, err := server.New(store, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.Serve(ctx, ln) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return address, stop
}

// startReplica is a Stave of an empty store.
func startReplica(t *testing.T) *client {
	t.Helper()
	address, _ := serve(t, dbtest.New(t), nil)
	return dial(t, address)
}

// startRedis starts a Redis as a replica of a master on this machine, and connects to it.
func startRedis(t *testing.T, port string, flags ...string) *client {
	t.Helper()
	r := redisserver.StartMaster(t, "", append([]string{"--replicaof", "127.0.0.1 " + port, "--repl-diskless-load", "swapdb"}, flags...)...)
	return dial(t, r.Socket)
}

// patience is how long a condition may take to hold.
const patience = 2 * time.Minute

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("in vain for %v: %s", patience, what)
		}
	}
}

// awaitCaughtUp waits until a replica has applied all that its master has done.
func awaitCaughtUp(t testing.TB, master, replica *client) {
	t.Helper()
	began, told := time.Now(), false
	await(t, "the replica catches up", func() bool {
		if text := replica.info("replication", "master_link_error"); strings.Contains(text, "failed here") {
			t.Fatal(text)
		}
		if !told && time.Since(began) > patience-time.Second {
			told = true
			t.Logf("the master says\n%s\nand the replica\n%s", master.must("INFO", "replication"), replica.must("INFO", "replication"))
		}
		id, want := master.info("replication", "master_replid"), master.info("replication", "master_repl_offset") // with PINGs
		if replica.info("replication", "master_link_status") != "up" || replica.info("replication", "master_replid") != id {
			return false
		}
		reached, err := strconv.ParseInt(want, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		have, err := strconv.ParseInt(replica.info("replication", "slave_repl_offset"), 10, 64)
		return err == nil && have >= reached
	})
}

// offset is how far the stream of a server is.
func offset(t *testing.T, c *client) int64 {
	t.Helper()
	n, err := strconv.ParseInt(c.info("replication", "master_repl_offset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// text is a reply as text.
func text(r resp.Reply) string {
	switch r.Kind {
	case resp.Error:
		return "(error) " + string(r.Text)
	case resp.Array:
		parts := make([]string, len(r.Items))
		for i, e := range r.Items {
			parts[i] = text(e)
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	if r.Null {
		return "(nil)"
	}
	return r.String()
}
