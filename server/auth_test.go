package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// call sends one command as an array and returns the reply's text.
func call(t *testing.T, s *server.Session, args ...string) string {
	t.Helper()
	out := s.Do(bytesOf(args))
	r, rest, err := resp.Decode(out)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%q: %q: %v", args, out, err)
	}
	return show(r)
}

func bytesOf(args []string) (list [][]byte) {
	for _, arg := range args {
		list = append(list, []byte(arg))
	}
	return list
}

// expect calls and compares with the beginning of the reply.
func expect(t *testing.T, s *server.Session, want string, args ...string) {
	t.Helper()
	if got := call(t, s, args...); !strings.HasPrefix(got, want) {
		t.Errorf("%q: %s, want %s", args, got, want)
	}
}

// sendArray sends one command as an array.
func (c *testClient) sendArray(args ...string) {
	c.t.Helper()
	c.send(string(resp.AppendCommandStrings(nil, args...)))
}

// line reads one line.
func (c *testClient) line() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// TestAuthentication is the life of a client over a connection: refused, authenticated, limited, disconnected. It runs
// on both transports.
func TestAuthentication(t *testing.T) {
	for _, transport := range transports() {
		t.Run(string(transport), func(t *testing.T) {
			_, address := serve(t, &server.Options{Transport: transport, RequirePass: "secret", Users: []string{
				"alice on >a1 ~a* &news.* +@read +set +multi +exec +discard +subscribe +psubscribe -get +acl|whoami", "bob off >b1 +@all ~*",
			}})
			c := dial(t, address)
			for _, step := range [][2]string{
				{"PING", "-NOAUTH Authentication required."},
				{"GET a", "-NOAUTH Authentication required."},
				{"nope", "-ERR unknown command"},
				{"GET", "-ERR wrong number of arguments for 'get' command"},
				{"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated"},
				{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
				{"AUTH nobody x", "-WRONGPASS"},
				{"AUTH bob b1", "-WRONGPASS"},
				{"AUTH a b c", "-ERR syntax error"},
				{"AUTH secret", "+OK"},
				{"AUTH secret", "+OK"},
				{"ACL WHOAMI", "$7"},
				{"SET a 1", "+OK"},
				{"AUTH alice a1", "+OK"},
				{"ACL WHOAMI", "$5"},
				{"GET a", "-NOPERM this user has no permissions to run the 'get' command"},
				{"SET b 1", "-NOPERM this user has no permissions to access one of the keys used as arguments"},
				{"SET a 2", "+OK"},
				{"STRLEN a", ":1"},
				{"ACL USERS", "-NOPERM this user has no permissions to run the 'acl|users' command"},
				{"SORT_RO a BY x*", "-ERR BY option of SORT denied due to insufficient ACL permissions"},
				{"SORT_RO a GET x", "-ERR GET option of SORT denied due to insufficient ACL permissions"},
				{"MULTI", "+OK"},
				{"SET a 3", "+QUEUED"},
				{"SET b 3", "-NOPERM"},
				{"EXEC", "-EXECABORT"},
				{"SUBSCRIBE other", "-NOPERM this user has no permissions to access one of the channels used as arguments"},
				{"PSUBSCRIBE news.a*", "-NOPERM"},
				{"PSUBSCRIBE news.*", "*3"},
			} {
				c.sendArray(strings.Fields(step[0])...)
				if got := c.line(); !strings.HasPrefix(got, step[1]) {
					t.Fatalf("%s: %s, want %s", step[0], got, step[1])
				}
				switch step[1][0] {
				case '$':
					c.line()
				case '*':
					for range 5 { // a kind, a pattern and a number
						c.line()
					}
				}
			}
			admin := dial(t, address)
			admin.sendArray("AUTH", "secret")
			admin.expect("+OK\r\n")
			admin.sendArray("ACL", "SETUSER", "alice", "resetchannels", "&other")
			admin.expect("+OK\r\n")
			c.expectEnd() // it listened to what it may not any more
			d := dial(t, address)
			d.sendArray("AUTH", "alice", "a1")
			d.expect("+OK\r\n")
			d.sendArray("MULTI")
			d.expect("+OK\r\n")
			d.sendArray("SET", "a", "4")
			d.expect("+QUEUED\r\n")
			admin.sendArray("ACL", "SETUSER", "alice", "-set")
			admin.expect("+OK\r\n")
			d.sendArray("EXEC")
			d.expect("*1\r\n")
			if got := d.line(); got != "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "+
				"This command is no longer allowed for the following reason: no permission to execute the command or subcommand" {
				t.Errorf("EXEC: %s", got)
			}
			admin.sendArray("ACL", "DELUSER", "alice", "nobody")
			admin.expect(":1\r\n")
			d.expectEnd()
		})
	}
}

// TestLimitsBeforeAuth: a client that has not authenticated is served up to each limit, and its connection ends one
// above.
func TestLimitsBeforeAuth(t *testing.T) {
	arg := strings.Repeat("x", 1<<10)
	many := func(n int) string { return fmt.Sprintf("*%d\r\n", n) + strings.Repeat("$1\r\nx\r\n", n) }
	bulk := func(n int) string { return fmt.Sprintf("*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	long := "*8\r\n$4\r\nAUTH\r\n" + strings.Repeat("$1024\r\n"+arg+"\r\n", 7)
	const noAuth = "-NOAUTH Authentication required.\r\n"
	var replies string
	commands := 0
	for len(replies)+len(noAuth) <= 4<<10 {
		replies += noAuth
		commands++
	}
	ping := "*1\r\n$4\r\nPING\r\n"
	// A whole command of n bytes, and pipelines with replies of n bytes.
	whole := func(n int) string {
		rest := strings.Repeat("$1024\r\n"+arg+"\r\n", 7)
		first := n - len("*8\r\n$xxx\r\n\r\n") - len(rest)
		return fmt.Sprintf("*8\r\n$%d\r\n%s\r\n%s", first, strings.Repeat("x", first), rest)
	}
	answered := func(n int) string {
		const unknown = "-ERR unknown command '', with args beginning with: \r\n"
		pings := n/len(noAuth) - 3
		name := n - pings*len(noAuth) - len(unknown)
		return strings.Repeat(ping, pings) + fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", name, strings.Repeat("x", name))
	}
	v := newServer(t, openStore(t), &server.Options{RequirePass: "secret"})
	for _, tt := range []struct {
		name, in, out string
		ends          bool
	}{
		{"8 arguments", many(8), "-ERR unknown command", false},
		{"9 arguments", many(9), "-ERR Protocol error: invalid multibulk length", true},
		{"1 KiB", bulk(1 << 10), "-WRONGPASS", false},
		{"1 KiB and 1 byte", bulk(1<<10 + 1), "-ERR Protocol error: invalid bulk length", true},
		{"nearly 8 KiB", long, "-ERR syntax error", false},
		{"8 KiB", whole(8 << 10), "-ERR unknown command", false},
		{"8 KiB and 1 byte", whole(8<<10 + 1), "-ERR Protocol error: too big command", true},
		{"replies of 4 KiB", answered(4 << 10), noAuth, false},
		{"replies of 4 KiB and 1 byte", answered(4<<10 + 1), noAuth, true},
		{"an inline command", "ECHO x\r\n", "-ERR Protocol error", true},
		{"the request of a browser", "POST / HTTP/1.1\r\n", "-ERR Protocol error", true},
		{"what may become one", "PO", "-ERR Protocol error", true},
		{"inline PING", "PING\r\n", noAuth, false},
		{"inline HELLO", "HELLO 3\r\n", "-NOAUTH HELLO", false},
		{"inline QUIT", "quit\r\n", "+OK\r\n", true},
		{"inline RESET", "RESET\r\n", "-ERR Protocol error", true},
		{"a health check", "AUTH secret\r\nPING\r\nECHO x\r\nQUIT\r\n", "+OK\r\n+PONG\r\n$1\r\nx\r\n+OK\r\n", true},
		{"one with a wrong password", "AUTH wrong\r\nPING\r\nECHO x\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n" + noAuth + "-ERR Protocol error", true},
		{"inline HELLO with AUTH", "HELLO 2 AUTH default secret SETNAME n\r\nECHO x\r\n", "*14\r\n", false},
		{"4 KiB of replies", strings.Repeat(ping, commands), replies, false},
		{"more replies", strings.Repeat(ping, commands+10), replies + noAuth, true},
		{"no subcommand of HELLO", "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", "-NOAUTH HELLO", false},
		{"QUIT", "*1\r\n$4\r\nQUIT\r\n", "+OK\r\n", true},
		{"RESET", "*1\r\n$5\r\nRESET\r\n", "+RESET\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := v.NewSession()
			defer s.Close()
			server.StartUnknown(s)
			out := ask(s, tt.in)
			if !strings.HasPrefix(out, tt.out) || s.Closed() != tt.ends || len(out) > 4<<10+1<<10 {
				t.Errorf("%.100q, %d bytes, closed %v; want %.100q, closed %v", out, len(out), s.Closed(), tt.out, tt.ends)
			}
			if held := s.Held() + server.ReadSize; held > 64<<10 {
				t.Errorf("holds %d bytes", held)
			}
		})
	}
	t.Run("after AUTH", func(t *testing.T) {
		v := newServer(t, openStore(t), &server.Options{RequirePass: "secret"})
		s := v.NewSession()
		server.StartUnknown(s)
		big := strings.Repeat("y", 100<<10)
		in := "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$102400\r\n" + big + "\r\n"
		if out := ask(s, in); out != "+OK\r\n+OK\r\n" {
			t.Errorf("%.200q", out)
		}
	})
}

// TestTimeToAuth: a connection that does not authenticate ends after 10 seconds, whatever it sends; one that does
// stays.
func TestTimeToAuth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 11 seconds")
	}
	t.Parallel()
	for _, transport := range transports() {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			_, address := serve(t, &server.Options{Transport: transport, RequirePass: "secret"}, func(v *server.Server) { v.TimeToAuth(server.DefaultTimeToAuth) })
			start := time.Now()
			silent, busy, good, pooled := dial(t, address), dial(t, address), dial(t, address), dial(t, address)
			good.sendArray("AUTH", "secret")
			good.expect("+OK\r\n")
			pooled.sendArray("AUTH", "secret")
			pooled.sendArray("RESET") // it may take its time
			pooled.expect("+OK\r\n+RESET\r\n")
			for time.Since(start) < 7*time.Second { // well before the end of the time
				busy.sendArray("PING")
				busy.expect("-NOAUTH Authentication required.\r\n")
				busy.sendArray("RESET") // its time runs on
				busy.expect("+RESET\r\n")
				time.Sleep(500 * time.Millisecond)
			}
			silent.expectEnd()
			busy.expectEnd()
			if took := time.Since(start); took < 10*time.Second || took > time.Minute {
				t.Errorf("ended after %s", took)
			}
			good.sendArray("PING")
			good.expect("+PONG\r\n")
			pooled.sendArray("PING")
			pooled.expect("-NOAUTH Authentication required.\r\n")
			pooled.sendArray("AUTH", "secret")
			pooled.expect("+OK\r\n")
		})
	}
}

// TestHealthChecks: what HAProxy and netcat send, in one packet, byte by byte, and with a wrong password.
func TestHealthChecks(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport, RequirePass: "secret"})
		const check = "AUTH secret\r\nPING\r\nINFO replication\r\nQUIT\r\n"
		for _, size := range []int{1, 5, len(check)} {
			c := dial(t, address)
			for i := 0; i < len(check); i += size {
				c.send(check[i:min(i+size, len(check))])
			}
			c.expect("+OK\r\n+PONG\r\n$")
			for c.line() != "+OK" {
			}
			c.expectEnd()
		}
		c := dial(t, address)
		c.send("PING\r\nAUTH wrong\r\nPING\r\nINFO replication\r\n")
		c.expect("-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n-NOAUTH Authentication required.\r\n" +
			"-ERR Protocol error: inline commands are disabled\r\n")
		c.expectEnd()
	})
}

// TestSlotsBeforeAuth: clients that have not authenticated take a tenth of the places; one more is turned away, and a
// place is free again when one authenticates or leaves.
func TestSlotsBeforeAuth(t *testing.T) {
	for _, transport := range transports() {
		t.Run(string(transport), func(t *testing.T) {
			_, address := serve(t, &server.Options{Transport: transport, RequirePass: "secret", MaxClients: 30})
			var clients []*testClient
			for range 3 {
				c := dial(t, address)
				c.sendArray("PING")
				c.expect("-NOAUTH Authentication required.\r\n")
				clients = append(clients, c)
			}
			const full = "-ERR max number of clients that have not authenticated reached\r\n"
			dial(t, address).expect(full)
			clients[0].sendArray("AUTH", "secret")
			clients[0].expect("+OK\r\n")
			c := dial(t, address)
			c.sendArray("PING")
			c.expect("-NOAUTH Authentication required.\r\n")
			dial(t, address).expect(full)
			c.sendArray("QUIT")
			c.expect("+OK\r\n")
			c.expectEnd()
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				d := dial(t, address)
				d.sendArray("PING")
				if got := d.line(); strings.HasPrefix(got, "-NOAUTH") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the place of a client that left is not free")
				}
			}
		})
	}
}

// TestSecretsAreRedacted sends a password in every way that a command of the table takes one, right and wrong, and
// looks for it where requests are shown.
func TestSecretsAreRedacted(t *testing.T) {
	const secret = "Tr0ub4dor"
	var log bytes.Buffer
	v := newServer(t, openStore(t), &server.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	watcher, s := v.NewSession(), v.NewSession()
	for _, args := range [][]string{{"config", "set", "slowlog-log-slower-than", "0"}, {"config", "set", "slowlog-max-len", "10000"}, {"config", "set", "latency-monitor-threshold", "1"}} {
		expect(t, s, `+"OK"`, args...)
	}
	ask(watcher, "MONITOR\r\n")
	requests := [][]string{
		{"AUTH", secret}, {"AUTH", "user", secret}, {"AUTH", "a", "b", secret}, {"HELLO", "2", "AUTH", "default", secret}, {"HELLO", "9", "AUTH", "default", secret},
		{"HELLO", "2", "SETNAME", "auth", "AUTH", "x", secret}, {"HELLO", "2", "AUTH", secret}, {"ACL", "SETUSER", "u", ">" + secret, "on"},
		{"ACL", "SETUSER", "u", "<" + secret + "x"}, {"ACL", "SETUSER", "u", ">" + secret, "nonsense"}, {"ACL", "DRYRUN", "u", "ping"},
		{"CONFIG", "SET", "timeout", "0", "requirepass", secret}, {"CONFIG", "SET", "masterauth", secret}, {"CONFIG", "SET", "tls-key-file-pass", secret},
		{"CONFIG", "SET", "REQUIREPASS", "", "timeout", "0"}, {"MIGRATE", "host", "1", "key", "0", "10", "AUTH", secret}, {"CONFIG", "SET", "requirepass", secret, "timeout"},
		{"MULTI"}, {"AUTH", "nobody", secret}, {"EXEC"},
	}
	for _, args := range requests {
		s.Do(bytesOf(args))
		for _, outer := range [][]string{{"ACL", "DRYRUN", "default"}, {"COMMAND", "GETKEYS"}, {"command", "getkeysandflags"}, {"acl", "dryrun", "u", "Command", "GetKeys", "ACL", "DryRun", "default"}} {
			nested := slices.Concat(outer, args)
			s.Do(bytesOf(nested))
			ask(s, "MULTI\r\n")
			s.Do(bytesOf(nested))
			ask(s, "EXEC\r\n")
			quoted := make([]string, len(nested)) // in two parts, so that the source does not show it
			for i, arg := range nested {
				quoted[i] = fmt.Sprintf("'%s'..'%s'", arg[:len(arg)/2], arg[len(arg)/2:])
			}
			s.Do(bytesOf([]string{"EVAL", "return redis.pcall(" + strings.Join(quoted, ",") + ")", "0"}))
		}
	}
	watcher.Feed(nil)
	shown := string(watcher.Output()) + call(t, s, "SLOWLOG", "GET", "-1") + call(t, s, "CONFIG", "GET", "*") + call(t, s, "INFO", "everything") +
		call(t, s, "CLIENT", "LIST") + call(t, s, "ACL", "LIST") + call(t, s, "ACL", "GETUSER", "u") + call(t, s, "ACL", "LOG") +
		call(t, s, "LATENCY", "LATEST") + call(t, s, "LATENCY", "DOCTOR") + log.String()
	if strings.Contains(shown, secret) {
		i := strings.Index(shown, secret)
		t.Errorf("a password is shown: %q", shown[max(0, i-200):i+20])
	}
	if !strings.Contains(shown, "(redacted)") {
		t.Error("nothing was shown")
	}
	for name := range server.SecretsOf {
		if server.Lookup(name) == nil && name != "migrate" {
			t.Errorf("%s is redacted, and not in the table", name)
		}
	}
	// Whoever adds a command with such a word has to decide.
	for _, c := range all() {
		usage := strings.ToLower(c.Name + " " + c.Syntax)
		for _, word := range []string{"auth", "password", "secret"} {
			if strings.Contains(usage, word) && server.SecretsOf[c.Name] == nil {
				t.Errorf("%s: its usage has the word %q, and it has no row in redact.Secrets", c.Name, word)
			}
		}
		if _, nests := server.NestedIn[c.Name]; nests != strings.Contains(usage, " command [arg") {
			t.Errorf("%s: its usage is %q, and whether it has a row in redact.Nested: %t", c.Name, c.Syntax, nests)
		}
	}
}

// TestACLFile: ACL SAVE writes what ACL LOAD reads, for its owner only; a file that is wrong changes nothing; users
// that are gone are disconnected.
func TestACLFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.acl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# users\nuser alice on >a1 ~a* +@read\n\nuser default on >root ~* &* +@all\n")
	_, address := serve(t, &server.Options{ACLFile: path})
	admin, alice := dial(t, address), dial(t, address)
	alice.sendArray("AUTH", "alice", "a1")
	alice.expect("+OK\r\n")
	admin.sendArray("AUTH", "root")
	admin.expect("+OK\r\n")
	admin.sendArray("ACL", "SETUSER", "bob", "on", ">bobs-own", "(+get ~b)")
	admin.expect("+OK\r\n")
	admin.sendArray("ACL", "SAVE")
	admin.expect("+OK\r\n")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || strings.Contains(string(text), "bobs-own") || !strings.Contains(string(text), "user bob on #$2a$10$") {
		t.Errorf("mode %v: %s", info.Mode(), text)
	}
	admin.sendArray("ACL", "LOAD")
	admin.expect("+OK\r\n")
	alice.sendArray("GET", "a")
	alice.expect("$-1\r\n")
	write("user alice on\nuser alice off\nuser bob nonsense\nuse carol\n")
	admin.sendArray("ACL", "LOAD")
	if got := admin.line(); !strings.Contains(got, "line 2: duplicate user 'alice' found; line 3: Error in ACL SETUSER modifier 'nonsense': Syntax error; line 4: ") {
		t.Error(got)
	}
	alice.sendArray("GET", "a")
	alice.expect("$-1\r\n")
	write("user bob on >b2\n")
	admin.sendArray("ACL", "LOAD")
	admin.expect("+OK\r\n")
	alice.expectEnd()
	admin.sendArray("ACL", "USERS")
	admin.expect("*2\r\n$3\r\nbob\r\n$7\r\ndefault\r\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	admin.sendArray("ACL", "LOAD")
	if got := admin.line(); strings.Contains(got, path) || !strings.HasPrefix(got, "-ERR") {
		t.Errorf("an error for a client: %s", got)
	}
	if _, err := server.New(openStore(t), &server.Options{ACLFile: path}); err == nil {
		t.Error("a server without its file of users")
	}
	if _, err := server.New(openStore(t), &server.Options{Users: []string{"alice nonsense"}}); err == nil {
		t.Error("a server with a user that is wrong")
	}
}

// TestACLLog: what is refused is counted once, the newest first.
func TestACLLog(t *testing.T) {
	v := newServer(t, openStore(t), &server.Options{Users: []string{"alice on nopass ~a +@all -@dangerous &c"}})
	s, admin := v.NewSession(), v.NewSession()
	expect(t, s, `-"WRONGPASS`, "AUTH", "carol", "x")
	expect(t, s, `+"OK"`, "AUTH", "alice", "any")
	for range 3 {
		expect(t, s, `-"NOPERM`, "GET", "b")
	}
	expect(t, s, `-"NOPERM`, "KEYS", "*")
	expect(t, s, `+"OK"`, "MULTI")
	expect(t, s, `-"NOPERM`, "PUBLISH", "d", "m")
	for _, entry := range []string{
		`$"count" :"1" $"reason" $"channel" $"context" $"multi" $"object" $"d" $"username" $"alice"`,
		`$"count" :"1" $"reason" $"command" $"context" $"toplevel" $"object" $"keys" $"username" $"alice"`,
		`$"count" :"3" $"reason" $"key" $"context" $"toplevel" $"object" $"b" $"username" $"alice"`,
		`$"count" :"1" $"reason" $"auth" $"context" $"toplevel" $"object" $"AUTH" $"username" $"carol"`,
	} {
		if got := call(t, admin, "ACL", "LOG"); !strings.Contains(got, entry) {
			t.Errorf("%s\nhas no %s", got, entry)
		}
	}
	expect(t, admin, "*[*[$\"count\" :\"1\" $\"reason\" $\"channel\"", "ACL", "LOG", "1")
	expect(t, admin, `+"OK"`, "ACL", "LOG", "RESET")
	expect(t, admin, "*[]", "ACL", "LOG")
}

// TestRulesChangeWhileBlocked: a client that waits gets nothing that its user may not take any more, and the next one
// gets it.
func TestRulesChangeWhileBlocked(t *testing.T) {
	for _, transport := range transports() {
		t.Run(string(transport), func(t *testing.T) {
			v, address := serve(t, &server.Options{Transport: transport, Users: []string{"alice on >a1 ~* +@all"}})
			admin, alice, other := dial(t, address), dial(t, address), dial(t, address)
			alice.sendArray("AUTH", "alice", "a1")
			alice.expect("+OK\r\n")
			for i, c := range []*testClient{alice, other} {
				c.sendArray("BLPOP", "list", "0")
				for !strings.Contains(v.Info("clients"), fmt.Sprintf("blocked_clients:%d\r\n", i+1)) {
					time.Sleep(time.Millisecond)
				}
			}
			admin.sendArray("ACL", "SETUSER", "alice", "resetkeys", "~a*")
			admin.expect("+OK\r\n")
			admin.sendArray("RPUSH", "list", "element")
			admin.expect(":1\r\n")
			if got := alice.line(); got != "-NOPERM this user has no permissions to access one of the keys used as arguments" {
				t.Errorf("the client that has lost the key: %q", got)
			}
			other.expect("*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n")
		})
	}
}
