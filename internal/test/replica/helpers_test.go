package replica_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/leak"
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

func dial(t testing.TB, network, address string) *client {
	t.Helper()
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
	return dial(t, "tcp", address)
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("in vain for a minute: %s", what)
		}
	}
}

// awaitCaughtUp waits until a replica has applied all that its master has done.
func awaitCaughtUp(t testing.TB, master, replica *client) {
	t.Helper()
	want := master.info("replication", "master_repl_offset")
	n, err := strconv.Atoi(want)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the replica catches up", func() bool {
		if text := replica.info("replication", "master_link_error"); strings.Contains(text, "failed here") {
			t.Fatal(text)
		}
		have, _ := strconv.Atoi(replica.info("replication", "slave_repl_offset"))
		return replica.info("replication", "master_link_status") == "up" && have >= n
	})
}

// state is everything that a server holds, by database and key.
func state(c *client) map[string]string {
	c.t.Helper()
	libraries := sorted(c.pipeline([]string{"FUNCTION", "LIST", "WITHCODE"})[0].Items, 1)
	all := map[string]string{"functions": strings.Join(libraries, " ")}
	for n := range 16 {
		c.must("SELECT", strconv.Itoa(n))
		keys := c.pipeline([]string{"KEYS", "*"})[0].Items
		for _, key := range keys {
			name := string(key.Text)
			all[fmt.Sprintf("%d %q", n, name)] = value(c, name)
		}
	}
	c.must("SELECT", "0")
	return all
}

// value is what a key holds, with its type and deadline.
func value(c *client, key string) string {
	c.t.Helper()
	typ := c.must("TYPE", key)
	what := map[string][]string{
		"string": {"GET", key}, "list": {"LRANGE", key, "0", "-1"}, "set": {"SMEMBERS", key}, "hash": {"HGETALL", key},
		"zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}, "stream": {"XINFO", "STREAM", key, "FULL", "COUNT", "0"},
	}[typ]
	if what == nil {
		return typ
	}
	reply := c.pipeline(what)[0]
	var parts []string
	switch typ {
	case "set":
		parts = sorted(reply.Items, 1)
	case "hash":
		parts = sorted(reply.Items, 2)
	case "zset": // versions of Redis print scores in different ways
		for i, e := range reply.Items {
			if i%2 == 1 {
				score, err := strconv.ParseFloat(string(e.Text), 64)
				if err != nil {
					c.t.Fatal(err)
				}
				parts = append(parts, strconv.FormatFloat(score, 'g', -1, 64))
			} else {
				parts = append(parts, text(e))
			}
		}
	case "stream":
		parts = []string{streamText(&reply)}
	default:
		parts = []string{text(reply)}
	}
	return typ + " " + c.must("PEXPIRETIME", key) + " " + strings.Join(parts, " ")
}

func sorted(elements []resp.Reply, width int) (list []string) {
	for chunk := range slices.Chunk(elements, width) {
		one := ""
		for _, e := range chunk {
			one += " " + text(e)
		}
		list = append(list, one)
	}
	slices.Sort(list)
	return list
}

// streamText is XINFO STREAM FULL without what the two count in ways of their own: nodes of their indexes, and the times at
// which consumers were seen. How many entries a group has read is known to the master alone: what it sends of XREADGROUP is
// XCLAIM with LASTID, after which a replica of Redis's does not know that either.
func streamText(r *resp.Reply) string {
	skip := []string{"radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time", "lag", "entries-read"}
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(r.Items); i++ {
		e := &r.Items[i]
		if slices.Contains(skip, string(e.Text)) {
			i++
			continue
		}
		if len(e.Items) > 0 {
			b.WriteString(streamText(e))
		} else {
			b.WriteString(text(*e))
		}
		b.WriteByte(' ')
	}
	b.WriteByte(']')
	return b.String()
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

// wantSame compares what two servers hold.
func wantSame(t testing.TB, master, replica *client) {
	t.Helper()
	want, have := state(master), state(replica)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if have[key] != want[key] {
			t.Errorf("%s:\nhas  %.600s\nwant %.600s", key, have[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[key]; !ok {
			t.Errorf("%s is too much: %.300s", key, have[key])
		}
	}
}
