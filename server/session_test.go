package server_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/storetest"
	"github.com/stavedb/stave/server"
)

func openStore(t testing.TB) *db.Store {
	t.Helper()
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newServer makes a server for a test, which fails if the options are refused.
func newServer(t testing.TB, store *db.Store, o *server.Options) *server.Server {
	t.Helper()
	v, err := server.New(store, withLoops(o))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// serverLoops is how many event loops a server has whose test does not say: several under the race detector, which looks at what they
// share.
var serverLoops = flag.Int("loops", map[bool]int{true: 3, false: 1}[storetest.UnderRace], "event loops of a listener")

// withLoops gives a server that many, unless a test wants a number.
func withLoops(o *server.Options) *server.Options {
	var own server.Options
	if o != nil {
		own = *o
	}
	own.Loops = cmp.Or(own.Loops, *serverLoops)
	return &own
}

// New makes a session with a server of its own for a test.
func newSession(t testing.TB, store *db.Store, o *server.Options) *server.Session {
	t.Helper()
	return newServer(t, store, o).NewSession()
}

// ask feeds a session and takes its output.
func ask(s *server.Session, in string) string {
	s.Feed([]byte(in))
	out := string(s.Output())
	s.Flushed(len(out))
	return out
}

func TestSessionConversation(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, tt := range []struct{ in, out string }{
		{"PING\r\n", "+PONG\r\n"},
		{"ping hello\r\n", "$5\r\nhello\r\n"},
		{"PING a b\r\n", "-ERR wrong number of arguments for 'ping' command\r\n"},
		{"ECHO \"a\\x00b\"\r\n", "$3\r\na\x00b\r\n"},
		{"get\r\n", "-ERR wrong number of arguments for 'get' command\r\n"},
		{"nope a b\r\n", "-ERR unknown command 'nope', with args beginning with: 'a' 'b' \r\n"},
		{"nope\r\n", "-ERR unknown command 'nope', with args beginning with: \r\n"},
		{"CLIENT NOPE\r\n", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n"},
		{"client\r\n", "-ERR wrong number of arguments for 'client' command\r\n"},
		{"client setname\r\n", "-ERR wrong number of arguments for 'client|setname' command\r\n"},
		{"SET k v\r\n", "+OK\r\n"},
		{"GET k\r\nGET none\r\n", "$1\r\nv\r\n$-1\r\n"},
		{"SELECT 1\r\nGET k\r\nSELECT 0\r\nGET k\r\n", "+OK\r\n$-1\r\n+OK\r\n$1\r\nv\r\n"},
		{"SELECT 16\r\n", "-ERR DB index is out of range\r\n"},
		{"SELECT x\r\n", "-ERR value is not an integer or out of range\r\n"},
		{"LPUSH k a\r\n", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
		{"CLIENT SETNAME me\r\nCLIENT GETNAME\r\n", "+OK\r\n$2\r\nme\r\n"},
		{"CLIENT SETINFO lib-name x\r\n", "+OK\r\n"},
		{"CLIENT SETINFO nope x\r\n", "-ERR Unrecognized option 'nope'\r\n"},
		{"HELLO 3\r\nGET none\r\n", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n8.0.6\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n" +
			"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n_\r\n"},
		{"HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n"},
		{"RESET\r\nGET none\r\nCLIENT GETNAME\r\n", "+RESET\r\n$-1\r\n$-1\r\n"},
	} {
		if got := ask(s, tt.in); got != tt.out {
			t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.out)
		}
	}
}

func TestSessionTransaction(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, tt := range []struct{ in, out string }{
		{"EXEC\r\n", "-ERR EXEC without MULTI\r\n"},
		{"DISCARD\r\n", "-ERR DISCARD without MULTI\r\n"},
		{"MULTI\r\nMULTI\r\nEXEC\r\n", "+OK\r\n-ERR MULTI calls can not be nested\r\n*0\r\n"},
		{"MULTI\r\nSET a 1\r\nINCR a\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:2\r\n"},
		{"MULTI\r\nSET a x\r\nINCR a\r\nSET b y\r\nEXEC\r\nMGET a b\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n" +
			"-ERR value is not an integer or out of range\r\n+OK\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n"},
		{"MULTI\r\nSET a 5\r\nnope\r\nEXEC\r\nGET a\r\n", "+OK\r\n+QUEUED\r\n-ERR unknown command 'nope', with args beginning with: \r\n" +
			"-EXECABORT Transaction discarded because of previous errors.\r\n$1\r\nx\r\n"},
		{"MULTI\r\nSET a 5\r\nDISCARD\r\nGET a\r\n", "+OK\r\n+QUEUED\r\n+OK\r\n$1\r\nx\r\n"},
		{"MULTI\r\nSELECT 1\r\nSET a 9\r\nGET a\r\nSELECT 0\r\nGET a\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n" +
			"*5\r\n+OK\r\n+OK\r\n$1\r\n9\r\n+OK\r\n$1\r\nx\r\n"},
		{"MULTI\r\nSET c 1\r\nDBSIZE\r\nFLUSHDB\r\nDBSIZE\r\nSET d 2\r\nKEYS *\r\nEXEC\r\n", "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 6) +
			"*6\r\n+OK\r\n:3\r\n+OK\r\n:0\r\n+OK\r\n*1\r\n$1\r\nd\r\n"},
		{"SADD s m\r\nMULTI\r\nSREM s m\r\nDBSIZE\r\nSADD s n\r\nDBSIZE\r\nEXEC\r\n", ":1\r\n+OK\r\n" + strings.Repeat("+QUEUED\r\n", 4) +
			"*4\r\n:1\r\n:1\r\n:1\r\n:2\r\n"},
		{"MULTI\r\nPING\r\nRESET\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+RESET\r\n-ERR EXEC without MULTI\r\n"},
	} {
		if got := ask(s, tt.in); got != tt.out {
			t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.out)
		}
	}
}

func TestSessionEnds(t *testing.T) {
	store := openStore(t)
	for _, tt := range []struct{ name, in, out string }{
		{"QUIT", "QUIT\r\nPING\r\n", "+OK\r\n"},
		{"a violation of the protocol", "PING\r\n*x\r\nPING\r\n", "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"},
		{"a browser's request", "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n", ""},
		{"a browser's header", "GET / other/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n", "-ERR wrong number of arguments for 'get' command\r\n"},
		{"a request without Host:", "GET / HTTP/1.0\r\n\r\nSET a 1\r\n", ""},
		{"a request of another method", "PUT /key HTTP/1.1\r\n\r\nSET a 1\r\n", ""},
		{"such a request within MULTI", "MULTI\r\nOPTIONS / HTTP/1.1\r\nSET a 1\r\nEXEC\r\n", "+OK\r\n"},
		{"a subscriber's browser", "SUBSCRIBE c\r\nPOST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"},
		{"a subscriber's browser, its header", "SUBSCRIBE c\r\nHost: localhost\r\nPING\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"},
		{"a browser within MULTI", "MULTI\r\nPOST / HTTP/1.1\r\n\r\nEXEC\r\n", "+OK\r\n"},
		{"QUIT within MULTI", "MULTI\r\nQUIT\r\n", "+OK\r\n+OK\r\n"},
	} {
		s := newSession(t, store, nil)
		if got := ask(s, tt.in); got != tt.out || !s.Closed() {
			t.Errorf("%s: %q, closed %t, want %q", tt.name, got, s.Closed(), tt.out)
		}
		if !s.Feed([]byte("PING\r\n")) || len(s.Output()) > 0 {
			t.Errorf("%s: goes on: %q", tt.name, s.Output())
		}
	}
	if got := ask(newSession(t, store, nil), "GET a\r\n"); got != "$-1\r\n" {
		t.Errorf("a command after a browser's request was executed: %q", got)
	}
}

// TestSessionAnySplit feeds the same bytes in different pieces, which makes different batches of them, and takes the
// replies in different pieces. The clock stands still meanwhile, so that no deadline passes in one run and not in
// another.
func TestSessionAnySplit(t *testing.T) {
	g := &generator{r: chance.Rand(t)} // here: the seed comes from a clock that moves
	synctest.Test(t, func(t *testing.T) { sessionAnySplit(t, g) })
}

func sessionAnySplit(t *testing.T, g *generator) {
	var stream []byte
	for range 2000 {
		args := g.command()
		name := strings.ToLower(args[0])
		// Chance and the clock would make a difference.
		if name != "spop" && !strings.Contains(name, "rand") && !strings.Contains(name, "ttl") && !strings.Contains(name, "time") && name != "hello" && !expiresSoon(args) {
			stream = resp.AppendCommandStrings(stream, args...)
		}
	}
	store := openStore(t)
	run := func(largest, pause int) []byte {
		v := newServer(t, store, nil)
		v.PauseAt(pause)
		ask(v.NewSession(), "FLUSHALL\r\n")
		s := v.NewSession()
		defer s.Close() // its last wait would otherwise reach the next run
		var out []byte
		for rest := stream; len(rest) > 0; {
			n := min(1+g.r.IntN(largest), len(rest))
			s.Feed(rest[:n])
			rest = rest[n:]
			for len(s.Output()) > 0 {
				n := 1 + g.r.IntN(len(s.Output()))
				out = append(out, s.Output()[:n]...)
				s.Flushed(n)
			}
		}
		return out
	}
	// A byte at a time nothing can be batched, and nothing waits.
	want := run(1, 1<<20)
	for _, largest := range []int{3, 50, 4000, len(stream)} {
		for _, pause := range []int{1, 100, 3000, 1 << 20} {
			got := run(largest, pause)
			if !bytes.Equal(got, want) {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Errorf("in pieces up to %d, pausing at %d bytes, different from byte %d on:\n got %.200q\nwant %.200q", largest, pause, at, got[at:], want[at:])
			}
		}
	}
}

func TestSessionPausesForSlowClients(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	v.PauseAt(1000)
	s := v.NewSession()
	value := strings.Repeat("x", 300)
	ask(s, "SET k "+value+"\r\n")
	const pipelined = 50
	s.Feed([]byte(strings.Repeat("GET k\r\n", pipelined) + "SET done 1\r\n"))
	if n := len(s.Output()); n > 1000+400 || !s.Paused() {
		t.Fatalf("%d bytes of replies wait, paused %t", n, s.Paused())
	}
	var got bytes.Buffer
	for range 1000 {
		n := min(len(s.Output()), 7*len(value)/3)
		got.Write(s.Output()[:n])
		s.Flushed(n)
		if n == 0 {
			break
		}
	}
	want := strings.Repeat(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value), pipelined) + "+OK\r\n"
	if got.String() != want {
		t.Errorf("%d bytes of replies, want %d", got.Len(), len(want))
	}
}

func TestSessionLimits(t *testing.T) {
	s := newSession(t, openStore(t), &server.Options{MaxReply: 1000, MaxQueue: 500})
	ask(s, "SET k "+strings.Repeat("x", 600)+"\r\n")
	for _, tt := range []struct{ in, out string }{
		{"MGET k k\r\n", "-ERR the reply is too large; ask for it in parts\r\n"},
		{"STRLEN k\r\n", ":600\r\n"},
		{"SADD s a b c\r\nSRANDMEMBER s -9223372036854775807\r\n", ":3\r\n-ERR the reply is too large; ask for it in parts\r\n"},
		{"MULTI\r\nSET z " + strings.Repeat("x", 600) + "\r\nEXEC\r\n", "+OK\r\n-ERR the transaction is too large\r\n" +
			"-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"RPUSH l " + strings.Repeat("0123456789 ", 99) + "\r\nLPOP l 99\r\nLLEN l\r\n", ":99\r\n-ERR the reply is too large; ask for it in parts\r\n:99\r\n"},
	} {
		if got := ask(s, tt.in); got != tt.out {
			t.Errorf("%.40q:\n got %q\nwant %q", tt.in, got, tt.out)
		}
	}
}

func TestSessionDo(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	do := func(args ...string) string {
		list := make([][]byte, len(args))
		for i := range args {
			list[i] = []byte(args[i])
		}
		return string(s.Do(list))
	}
	if got := do("set", "a", "1"); got != "+OK\r\n" {
		t.Error(got)
	}
	if got := do("GET", "a"); got != "$1\r\n1\r\n" {
		t.Error(got)
	}
	if do("multi"); !s.InTransaction() {
		t.Error("not in a transaction")
	}
	do("select", "3")
	do("exec")
	if s.InTransaction() || s.Namespace() != 3 {
		t.Error("transaction", s.InTransaction(), "namespace", s.Namespace())
	}
	// An EXEC that is refused ends the watch too.
	do("watch", "w")
	do("exec", "x")
	do("set", "w", "1")
	do("multi")
	if got := do("exec"); got != "*0\r\n" {
		t.Errorf("exec after a refused one: %q", got)
	}
	if got := do("quit"); got != "+OK\r\n" || !s.Closed() {
		t.Error(got, s.Closed())
	}
}

func TestInfoAndConfig(t *testing.T) {
	v := newServer(t, openStore(t), &server.Options{Version: "1.2.3", Settings: map[string]string{"dir": "/data"}})
	s := v.NewSession()
	ask(s, "SET a 1\r\nGET a\r\nGET b\r\nSET c 1 EX 1000\r\nnope\r\nINCR\r\nLPUSH a 1\r\n")
	ask(s, "EVAL \"return 1 --"+strings.Repeat("x", 1027)+"\" 0\r\n")
	info, _, err := resp.Decode([]byte(ask(s, "INFO everything\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"redis_version:8.0.6", "server_name:stave", "stave_version:1.2.3", "redis_mode:standalone", "role:master", "loading:0", "maxmemory_policy:noeviction",
		"connected_clients:0", "keyspace_hits:1", "keyspace_misses:1", "total_error_replies:3", "errorstat_ERR:count=2", "errorstat_WRONGTYPE:count=1",
		"cluster_enabled:0", "number_of_cached_scripts:1",
	} {
		if !strings.Contains(string(info.Text), line+"\r\n") {
			t.Errorf("INFO lacks %s", line)
		}
	}
	scripts := fieldOf(t, string(info.Text), "used_memory_scripts_eval") // source and compiled code
	if scripts < 1038 || scripts > 1038+2048 || fieldOf(t, string(info.Text), "used_memory_scripts") != scripts || !strings.Contains(string(info.Text), fmt.Sprintf("used_memory_scripts_human:%.2fK\r\n", float64(scripts)/1024)) {
		t.Errorf("a script of 1038 bytes takes %d", scripts)
	}
	for _, part := range []string{
		"# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=", "used_memory:", "cmdstat_get:calls=2,", "cmdstat_incr:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
		"cmdstat_lpush:calls=1,", "storage_segments:",
	} {
		if !strings.Contains(string(info.Text), part) {
			t.Errorf("INFO lacks %s", part)
		}
	}
	if got := ask(s, "INFO replication\r\n"); strings.Contains(got, "# Server") || !strings.Contains(got, "role:master") {
		t.Errorf("INFO replication: %q", got)
	}
	if got, want := ask(s, "CONFIG GET save dir DATABASE?\r\n"), "*6\r\n$9\r\ndatabases\r\n$2\r\n16\r\n$3\r\ndir\r\n$5\r\n/data\r\n$4\r\nsave\r\n$0\r\n\r\n"; got != want {
		t.Errorf("CONFIG GET: %q", got)
	}
	ask(s, "CONFIG RESETSTAT\r\n")
	if got := ask(s, "INFO stats\r\n"); !strings.Contains(got, "keyspace_hits:0\r\n") || !strings.Contains(got, "total_commands_processed:1\r\n") {
		t.Errorf("after CONFIG RESETSTAT: %q", got)
	}
}
