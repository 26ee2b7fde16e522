package server_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// operatorScripts are conversations as scripts has them. Moments and addresses are left out of the comparison.
var operatorScripts = map[string]string{
	"monitor of scripts": `
		a: MONITOR
		b: EVAL redis.call('set','q','1');return(redis.call('get','q')) 0
		a: <
		a: <
		a: <
		b: EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
		a: <
		b: EVAL_RO return(redis.call('get','q')) 0
		a: <
		a: <
		b: SCRIPT LOAD return(1)
		a: <
		b: EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 0
		a: <
		b: FCALL none 0
		a: <
		b: EVAL redis.call('incr','q');redis.call('lpush','q','x') 0
		a: <
		a: <
		a: <
		b: EVAL not-lua 0
		a: <
		b: EVAL return(1) 5
		a: <
		b: MULTI
		a: <
		b: GET q
		b: EVAL return(redis.call('get','q')) 0
		b: EXEC
		a: <
		a: <
		a: <
		a: <`,
	"monitor": `
		a: MONITOR
		b: SET k v
		a: <
		b: GET none
		a: <
		b: SELECT 2
		a: <
		b: CONFIG GET port
		b: MULTI
		a: <
		b: SET k w
		b: INCR k
		b: EXEC
		a: <
		a: <
		a: <
		b: HELLO 2 AUTH default secret SETNAME auth NOPE
		a: <
		a: RESET
		b: PING`,
	"slow commands": `
		a: CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 2
		a: SLOWLOG RESET
		a: PING
		a: GET k
		a: ECHO x
		a: SLOWLOG LEN
		a: CONFIG SET slowlog-log-slower-than -1
		a: CONFIG GET slowlog-max-len
		a: CONFIG GET slowlog-log-slower-than
		a: SLOWLOG GET 0
		a: SLOWLOG GET -2
		a: SLOWLOG GET x
		a: SLOWLOG GET 1 2
		a: CONFIG SET slowlog-log-slower-than -2
		a: SLOWLOG RESET
		a: SLOWLOG GET
		a: SLOWLOG NOPE
		a: CONFIG SET slowlog-max-len 128 slowlog-log-slower-than 10000`,
	"whole databases within a transaction": `
		a: SET k zero
		a: RPUSH l a b
		a: SELECT 1
		a: SET k one PX 100000
		a: HSET h f v
		a: SELECT 0
		b: WATCH h
		c: ~BLPOP new 0
		d: SELECT 1
		d: ~BLPOP l 0
		a: MULTI
		a: SWAPDB 0 1
		a: GET k
		a: PERSIST k
		a: LLEN l
		a: SET n v
		a: SWAPDB 1 0
		a: DBSIZE
		a: SWAPDB 0 1
		a: SWAPDB 0 0
		a: SWAPDB 0 99
		a: EXEC
		a: DBSIZE
		d: <
		b: MULTI
		b: GET h
		b: EXEC
		a: HGET h f
		a: SELECT 1
		a: GET k
		a: GET n
		a: LRANGE l 0 -1
		a: MULTI
		a: FLUSHDB
		a: RPUSH l z
		a: EXEC
		a: DBSIZE
		a: SELECT 0
		a: LPUSH new x
		c: <`,
	"keys of streams": `
		a: COMMAND GETKEYS XREAD STREAMS x 1
		a: COMMAND GETKEYS XREAD COUNT 1 x 1
		a: COMMAND GETKEYS XREAD COUNT 1 STREAMS
		a: COMMAND GETKEYS XREAD COUNT 1 STREAMS x
		a: COMMAND GETKEYSANDFLAGS XREADGROUP NOACK GROUP nope bob STREAMS d
		a: COMMAND GETKEYS XREAD COUNT 3 BLOCK -1 STREAMS x s:x a:b 10-0 3
		a: COMMAND GETKEYS XREAD STREAMS streams streams 1 1
		a: COMMAND GETKEYS XREADGROUP GROUP g c STREAMS x y > >
		a: COMMAND GETKEYS XREADGROUP GROUP g c STREAMS x y >`,
	"a stream twice": `
		a: XGROUP CREATE x g 0 MKSTREAM
		a: XADD x 1 f v
		a: XADD x 2 f v
		a: XADD x 3 f v
		a: XREADGROUP GROUP g c COUNT 1 STREAMS x x x > 0 >
		a: XREADGROUP GROUP g c STREAMS x x > >
		a: XREADGROUP GROUP g c STREAMS x x > >
		a: XADD x 4 f v
		a: XREADGROUP GROUP g c COUNT 2 STREAMS x x > >`,
	"role and latency": `
		a: ROLE
		a: LATENCY LATEST
		a: DEBUG SLEEP 0
		a: DEBUG OBJECT none
		a: LATENCY HISTORY command
		a: LATENCY RESET
		a: LATENCY GRAPH command
		a: LOLWUT VERSION x
		a: MULTI
		a: MONITOR
		a: EXEC`,
}

func TestOperatorCommandsAgreeWithRedis(t *testing.T) {
	agreeWithRedis(t, operatorScripts, regexp.MustCompile(`\d+\.\d+ \[(\d+) [^\]]*\]`))
}

// agreeWithRedis runs conversations on both servers and compares the replies, without what unlike finds in them but for
// its groups.
func agreeWithRedis(t *testing.T, scripts map[string]string, unlike *regexp.Regexp) {
	agreeWith(t, startRedis(t), server.Options{}, scripts, unlike)
}

// agreeWith is agreeWithRedis with a server of its own, and options.
func agreeWith(t *testing.T, redis *redisPeer, o server.Options, scripts map[string]string, unlike *regexp.Regexp) {
	t.Helper()
	address := redis.conn.RemoteAddr().String()
	for _, name := range slices.Sorted(maps.Keys(scripts)) { // their settings stay in Redis
		script := scripts[name]
		t.Run(name, func(t *testing.T) {
			if _, err := redis.do([]string{"flushall"}); err != nil {
				t.Fatal(err)
			}
			theirs := talk(t, address, script)
			eachTransport(t, func(t *testing.T, transport server.Transport) {
				o.Transport = transport
				ours := talk(t, serveUnixWith(t, &o), script)
				for i := range ours {
					if a, b := unlike.ReplaceAllString(ours[i], "$1"), unlike.ReplaceAllString(theirs[i], "$1"); a != b {
						t.Errorf("stave %s, redis %s", a, b)
					}
				}
			})
		})
	}
}

// TestDebug has what DEBUG does where it is allowed.
func TestDebug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, openStore(t), &server.Options{Debug: true}).NewSession()
		before := time.Now()
		for _, tt := range [][2]string{
			{"DEBUG SLEEP 1.5", "+OK\r\n"},
			{"DEBUG SLEEP x", "-ERR value is not a valid float\r\n"},
			{"DEBUG OBJECT k", "-ERR no such key\r\n"},
			{"SET k v", "+OK\r\n"},
			{"DEBUG OBJECT k", "+Value at:0x0 refcount:1 encoding:embstr serializedlength:2 lru:0 lru_seconds_idle:0\r\n"},
			{"MULTI", "+OK\r\n"},
			{"DEBUG SLEEP 0", "+QUEUED\r\n"},
			{"DEBUG OBJECT k", "+QUEUED\r\n"}, // would wait for the locks of EXEC
			{"EXEC", "*2\r\n+OK\r\n-ERR Command not allowed inside a transaction\r\n"},
			{"DEBUG PROTOCOL attrib", "$39\r\nSome real reply following the attribute\r\n"},
			{"DEBUG NOPE", "-ERR unknown subcommand or wrong number of arguments for 'NOPE'. Try DEBUG HELP.\r\n"},
		} {
			s.Feed([]byte(tt[0] + "\r\n"))
			if got := string(s.Output()); got != tt[1] {
				t.Errorf("%s: %q", tt[0], got)
			}
			s.Flushed(len(s.Output()))
		}
		if slept := time.Since(before); slept != 1500*time.Millisecond {
			t.Errorf("slept %v", slept)
		}
	})
}

// TestSlowlog looks at what an entry says.
func TestSlowlog(t *testing.T) {
	s := newServer(t, openStore(t), nil).NewSession()
	peer := &stavePeer{s}
	do := func(args ...string) resp.Reply {
		t.Helper()
		reply, err := peer.do(args)
		if err != nil || reply.IsError() {
			t.Fatal(args, reply, err)
		}
		return reply
	}
	do("CLIENT", "SETNAME", "me")
	do("CONFIG", "SET", "slowlog-log-slower-than", "0")
	do(append([]string{"RPUSH", "list", strings.Repeat("x", 200)}, strings.Fields(strings.Repeat("y ", 60))...)...)
	entry := do("SLOWLOG", "GET", "1").Items[0]
	args := texts(entry.Items[3])
	if len(entry.Items) != 6 || len(args) != 32 || args[0] != "RPUSH" || args[2] != strings.Repeat("x", 128)+"... (72 more bytes)" || args[31] != "... (32 more arguments)" {
		t.Errorf("%q", args)
	}
	if entry.Items[1].Int == 0 || string(entry.Items[5].Text) != "me" {
		t.Errorf("at %d by %s", entry.Items[1].Int, entry.Items[5].Text)
	}
	do("MULTI")
	do("SET", "k", "v")
	do("EXEC")
	if args := texts(do("SLOWLOG", "GET", "1").Items[0].Items[3]); fmt.Sprint(args) != "[SET k v]" {
		t.Errorf("after EXEC: %q", args)
	}
	s.Feed([]byte("GET a\r\nGET b\r\nGET c\r\n"))
	s.Flushed(len(s.Output()))
	if args := texts(do("SLOWLOG", "GET", "1").Items[0].Items[3]); fmt.Sprint(args) != "[GET a ... (2 more commands of a pipeline)]" {
		t.Errorf("after a pipeline: %q", args)
	}
}

// TestSlowLogHidesPasswords: MONITOR's half of this is among the operatorScripts.
func TestSlowLogHidesPasswords(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ask(s, "CONFIG SET slowlog-log-slower-than 0\r\n")
	ask(s, "HELLO 2 SETNAME auth AUTH default secret\r\n")
	got := ask(s, "SLOWLOG GET 1\r\n")
	if strings.Contains(got, "secret") || !strings.Contains(got, "AUTH\r\n$10\r\n(redacted)\r\n$10\r\n(redacted)\r\n") {
		t.Errorf("SLOWLOG GET: %q", got)
	}
}

// TestSlowlogOfAWait: a command that waits is in the slow log when it has been served, or its time is over, and not
// before.
func TestSlowlogOfAWait(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		admin := v.NewSession()
		do(admin, "CONFIG", "SET", "slowlog-log-slower-than", "0")
		for _, tt := range []struct{ wait, end string }{{"BLPOP k 0", "RPUSH k v"}, {"BZPOPMIN z 0", "ZADD z 1 a"}, {"XREAD BLOCK 0 STREAMS s $", "XADD s 1-1 f v"}} {
			c := dial(t, address)
			c.send(tt.wait + "\r\n")
			for began := time.Now(); !strings.Contains(v.Info("clients"), "blocked_clients:1\r\n"); time.Sleep(time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("%s does not wait", tt.wait)
				}
			}
			name := strings.Fields(tt.wait)[0]
			if log := do(admin, "SLOWLOG", "GET"); strings.Contains(log, "\r\n"+name+"\r\n") {
				t.Errorf("%s waits, and is in the slow log: %q", tt.wait, log)
			}
			do(admin, "SLOWLOG", "RESET")
			do(admin, strings.Fields(tt.end)...)
			c.line()
			if log := do(admin, "SLOWLOG", "GET"); !strings.Contains(log, "\r\n"+name+"\r\n") {
				t.Errorf("%s has been served, and is not in the slow log: %q", tt.wait, log)
			}
			c.Close()
		}
	})
}

// COMMANDLOG came with Valkey 8.1: a case for each sentence of its documents.
func TestCommandLog(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ask(s, "CLIENT SETNAME me\r\n")
	logged := func(kind string) string {
		t.Helper()
		reply, _, err := resp.Decode([]byte(ask(s, "COMMANDLOG GET -1 "+kind+"\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range reply.Items {
			if len(e.Items) != 6 || e.Items[1].Int < time.Now().Add(-time.Hour).Unix() || e.Items[5].String() != "me" {
				t.Errorf("an entry of %s: %v", kind, e)
			}
			if args := texts(e.Items[3]); args[0] != "CONFIG" && args[0] != "COMMANDLOG" && args[0] != "SLOWLOG" {
				list = append(list, fmt.Sprint(e.Items[2].Int, " ", args))
			}
		}
		return strings.Join(list, ", ")
	}
	expect := func(in, want string) {
		t.Helper()
		if got := ask(s, in+"\r\n"); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
	const kinds = "-ERR type should be one of the following: slow, large-request, large-reply\r\n"
	for _, in := range []string{"COMMANDLOG LEN fast", "COMMANDLOG GET 1 fast", "COMMANDLOG RESET fast"} {
		expect(in, kinds)
	}
	expect("COMMANDLOG GET -2 slow", "-ERR count should be greater than or equal to -1\r\n")
	expect("COMMANDLOG GET slow", "-ERR wrong number of arguments for 'commandlog|get' command\r\n")
	expect("COMMANDLOG LEN", "-ERR wrong number of arguments for 'commandlog|len' command\r\n")
	expect("CONFIG GET commandlog-re*", "*4\r\n"+bulkLine("commandlog-reply-larger-than")+bulkLine("1048576")+bulkLine("commandlog-request-larger-than")+bulkLine("1048576"))
	expect("COMMANDLOG LEN large-request", ":0\r\n")

	ask(s, "CONFIG SET commandlog-request-larger-than 20 commandlog-reply-larger-than 20\r\n")
	ask(s, "SET k 0123456789012345\r\nSET k 01234567890123456\r\nGET k\r\n") // 20 bytes, 21 and a reply of 24, in one batch
	if got := logged("large-request"); got != "21 [SET k 01234567890123456], 20 [SET k 0123456789012345]" {
		t.Errorf("large requests: %q", got)
	}
	if got := logged("large-reply"); got != "24 [GET k]" {
		t.Errorf("large replies: %q", got)
	}
	expect("COMMANDLOG RESET large-reply", okLine)
	expect("COMMANDLOG RESET large-request", okLine)
	ask(s, "MULTI\r\nSET k 0123456789012345\r\nGET k\r\nEXEC\r\n") // the commands of a transaction, not EXEC
	if got := logged("large-reply"); got != "23 [GET k]" {
		t.Errorf("large replies in a transaction: %q", got)
	}
	if got := logged("large-request"); got != "20 [SET k 0123456789012345]" {
		t.Errorf("large requests in a transaction: %q", got)
	}
	expect("COMMANDLOG RESET large-reply", okLine)
	ask(s, "AUTH default 01234567890123456789\r\n")
	if got := logged("large-request"); strings.Contains(got, "0123456789012345678") || !strings.HasPrefix(got, "31 [AUTH (redacted) (redacted)]") {
		t.Errorf("passwords: %q", got)
	}

	ask(s, "CONFIG SET commandlog-request-larger-than -1 commandlog-reply-larger-than 0 commandlog-large-reply-max-len 3 slowlog-log-slower-than 0\r\n")
	ask(s, "COMMANDLOG RESET large-reply\r\nCOMMANDLOG RESET large-request\r\nSLOWLOG RESET\r\n")
	ask(s, "GET k\r\n")
	ask(s, "BLPOP none 0.001\r\n")
	s.Wait(t.Context())
	ask(s, "")
	ask(s, "ECHO x\r\n") // -1 is none, 0 is all, and the length bounds it
	if got := logged("large-reply"); got != "7 [ECHO x], 5 [BLPOP none 0.001], 23 [GET k]" {
		t.Errorf("all replies: %q", got)
	}
	expect("COMMANDLOG LEN large-request", ":0\r\n")
	expect("COMMANDLOG LEN large-reply", ":3\r\n")
	if got := logged("slow"); !strings.Contains(got, "[ECHO x]") { // it is SLOWLOG
		t.Errorf("slow commands: %q", got)
	}
}

// TestCommandLogOfAWait: a command that waits is noted once, when its wait is over.
func TestCommandLogOfAWait(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ask(s, "CONFIG SET commandlog-request-larger-than 0\r\n")
	ask(s, "BLPOP none 0.001\r\n")
	s.Wait(t.Context())
	ask(s, "")
	if got := ask(s, "COMMANDLOG GET -1 large-request\r\n"); strings.Count(got, "BLPOP") != 1 {
		t.Errorf("%q", got)
	}
}
