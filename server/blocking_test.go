package server_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// scripts are conversations of several clients with one server. A line is a client and a command, whose reply comes at once;
// with ~ before it the command waits, and < reads the reply. Both servers must reply the same.
var scripts = map[string]string{
	"served by a push": `
		a: ~BLPOP k 0
		b: LPUSH k x y
		a: <
		b: LRANGE k 0 -1`,
	"first come first served": `
		a: ~BLPOP k 0
		b: ~BRPOP other k 0
		c: ~BLMPOP 0 1 k LEFT COUNT 10
		d: RPUSH k 1 2 3 4 5
		a: <
		b: <
		c: <
		d: EXISTS k`,
	"the next command of the pusher finds nothing": `
		a: ~BLPOP k 0
		b: *RPUSH k x | LLEN k | RPUSH k y | LRANGE k 0 -1
		a: <`,
	"keys of a transaction serve in the order in which they came to hold something": `
		a: ~BLPOP k s m 0
		b: MULTI
		b: SET s x
		b: DEL s
		b: LPUSH k 1
		b: RPUSH s 2
		b: EXEC
		a: <
		b: LRANGE s 0 -1`,
	"a move is over before the next command of the pusher": `
		a: ~BRPOPLPUSH k m 0
		b: *LPUSH k c | ZADD k 3 d | LLEN m | LPUSH l 1 2
		a: <
		b: ZRANGE k 0 -1`,
	"a transaction is over before anybody is served": `
		a: ~BLPOP k 0
		b: MULTI
		b: RPUSH k x y z
		b: LPOP k
		b: LLEN k
		b: EXEC
		a: <
		b: LRANGE k 0 -1`,
	"what is gone at the end of a transaction serves nobody": `
		a: ~BLPOP k 0.2
		b: MULTI
		b: RPUSH k x
		b: DEL k
		b: EXEC
		a: <`,
	"nothing waits within a transaction": `
		a: MULTI
		a: BLPOP k 0
		a: BLMOVE k l LEFT RIGHT 0
		a: BZPOPMIN k 0
		a: BLMPOP 0 1 k LEFT
		a: BZMPOP 0 1 k MIN
		a: BRPOPLPUSH k l 0
		a: EXEC`,
	"time-outs": `
		a: BLPOP k 0.01
		a: BLMOVE k l LEFT RIGHT 0.01
		a: BRPOPLPUSH k l 0.01
		a: BZMPOP 0.01 2 k l MAX
		a: PING`,
	"a pipeline after a waiting command": `
		a: ~BLPOP k 0
		a: ~PING
		a: ~LPUSH k z
		b: RPUSH k x
		a: <
		a: <
		a: <`,
	"moves in a chain": `
		a: ~BLMOVE k1 k2 LEFT RIGHT 0
		b: ~BLMOVE k2 k3 LEFT RIGHT 0
		c: ~BRPOPLPUSH k3 k4 0
		d: *LPUSH k1 x | LRANGE k4 0 -1
		a: <
		b: <
		c: <`,
	"a move to itself": `
		a: ~BLMOVE k k LEFT RIGHT 0
		b: RPUSH k 1 2
		a: <
		b: LRANGE k 0 -1`,
	"a move to a wrong type": `
		b: SET to x
		a: ~BLMOVE k to LEFT RIGHT 0
		b: RPUSH k 1
		a: <
		b: LRANGE k 0 -1`,
	"wrong types": `
		b: SET k x
		a: BLPOP none k 0
		a: BZPOPMIN none k 0
		a: BLMOVE k none LEFT RIGHT 0`,
	"another type does not serve": `
		a: ~BLPOP k 0.3
		b: ~BZPOPMAX k 0
		c: ZADD k 1 x 2 y
		b: <
		c: ZRANGE k 0 -1 WITHSCORES
		a: <`,
	"a sorted set for each": `
		a: ~BZPOPMIN k 0
		b: ~BZPOPMAX l k 0
		c: ~BZMPOP 0 2 k l MIN COUNT 2
		d: ZADD k 1 a 2 b 3 c 4 d
		a: <
		b: <
		c: <
		d: EXISTS k`,
	"doubles in RESP3": `
		a: HELLO3
		a: ~BZPOPMIN k 0
		b: ZADD k 1.5 x
		a: <
		a: BZMPOP 0.01 1 k MIN`,
	"served by a rename": `
		a: ~BLPOP k 0
		b: RPUSH l x
		b: RENAME l k
		a: <`,
	"served by a stored set": `
		a: ~BZPOPMIN k 0
		b: ZADD z 1 x 2 y
		b: ZRANGESTORE k z 1 1
		a: <
		b: EXISTS k`,
	"served in another database": `
		a: SELECT 3
		a: ~BLPOP k 0
		b: RPUSH k zero
		b: SELECT 3
		b: RPUSH k three
		a: <`,
	"served by a swap": `
		a: ~BLPOP k 0
		b: SELECT 3
		b: RPUSH k three
		b: SWAPDB 0 3
		a: <`,
	"unblocked": `
		a: ~BLPOP k 0
		b: UNBLOCK a
		a: <
		a: ~BLPOP k 0
		b: UNBLOCK a ERROR
		a: <
		b: UNBLOCK a
		b: CLIENT UNBLOCK 999999
		b: CLIENT UNBLOCK x
		b: CLIENT UNBLOCK 1 nope
		b: RPUSH k x`,
	"a client that is gone takes nothing": `
		a: ~BLPOP k 0
		a: quit
		b: RPUSH k x
		b: LRANGE k 0 -1`,
	"watched": `
		a: WATCH k
		b: SET k x
		a: MULTI
		a: SET k y
		a: EXEC
		a: GET k
		a: MULTI
		a: SET k z
		a: EXEC`,
	"watched and untouched": `
		b: SADD s m
		a: WATCH k s
		b: SET other x
		b: SADD s m
		b: SELECT 1
		b: SET k x
		a: MULTI
		a: PING
		a: EXEC`,
	"unwatched": `
		a: WATCH k
		b: SET k x
		a: UNWATCH
		a: MULTI
		a: EXEC
		a: WATCH k
		b: SET k x
		a: MULTI
		a: DISCARD
		a: MULTI
		a: EXEC`,
	"watch within multi": `
		a: MULTI
		a: WATCH k
		a: SET k x
		a: EXEC`,
	"watched, expired": `
		b: SET k x PX 30
		a: WATCH k
		b: sleep
		a: MULTI
		a: EXEC
		a: WATCH k
		b: DEL k
		a: MULTI
		a: EXEC`,
	"watched, flushed": `
		a: WATCH none
		b: FLUSHALL
		a: MULTI
		a: EXEC
		b: SET k x
		a: WATCH k
		b: FLUSHDB
		a: MULTI
		a: EXEC`,
	"watched, swapped": `
		b: SET k x
		a: WATCH k
		b: SWAPDB 0 1
		a: MULTI
		a: EXEC
		a: WATCH none
		b: SWAPDB 0 1
		a: MULTI
		a: EXEC
		b: SWAPDB 0 99
		b: SWAPDB x 1
		b: SWAPDB 0 x
		b: SWAPDB 1 1`,
	"spoiled and watched": `
		a: WATCH k
		b: SET k x
		a: MULTI
		a: nope
		a: EXEC`,
}

// talk runs a script and returns the replies.
func talk(t *testing.T, address, script string) (replies []string) {
	t.Helper()
	clients := map[string]*redisPeer{}
	ids := map[string]string{}
	client := func(name string) *redisPeer {
		if clients[name] == nil {
			conn, err := net.Dial("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			clients[name] = &redisPeer{conn, resp.NewDecoder(conn)}
			id, err := clients[name].do([]string{"client", "id"})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = fmt.Sprint(id.Int)
		}
		return clients[name]
	}
	count := regexp.MustCompile(`\r\nblocked_clients:(\d+)\r\n`)
	blocked := func() string {
		t.Helper()
		info, err := client("").do([]string{"info", "clients"})
		if err != nil {
			t.Fatal(err)
		}
		if m := count.FindSubmatch(info.Text); m != nil {
			return string(m[1])
		}
		t.Fatalf("no blocked_clients: %q", info.Text)
		return ""
	}
	// settle waits until another number of clients wait than before, or for a while if that is not to be.
	settle := func(before string, while time.Duration) {
		t.Helper()
		for end := time.Now().Add(while); blocked() == before && time.Now().Before(end); {
			time.Sleep(100 * time.Microsecond)
		}
	}
	read := func(line string, p *redisPeer) {
		t.Helper()
		if err := p.conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		reply, err := p.decoder.Read()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		replies = append(replies, line+": "+show(reply))
	}
	for line := range strings.Lines(strings.TrimSpace(script)) {
		line = strings.TrimSpace(line)
		name, cmd, _ := strings.Cut(line, ": ")
		p := client(name)
		rest, waits := strings.CutPrefix(cmd, "~")
		pipeline, pipelined := strings.CutPrefix(cmd, "*")
		var out []byte
		var n int
		switch {
		case cmd == "<":
			n = 1
		case cmd == "sleep":
			time.Sleep(50 * time.Millisecond)
		case cmd == "quit":
			before := blocked()
			_ = p.conn.Close()
			settle(before, 30*time.Millisecond)
		case cmd == "HELLO3":
			if _, err := p.do([]string{"hello", "3"}); err != nil {
				t.Fatal(err)
			}
		case pipelined:
			for part := range strings.SplitSeq(pipeline, " | ") {
				out = resp.AppendCommandStrings(out, strings.Fields(part)...)
				n++
			}
		default:
			words := strings.Fields(rest)
			if words[0] == "UNBLOCK" {
				words = append([]string{"CLIENT", "UNBLOCK", ids[words[1]]}, words[2:]...)
			}
			out = resp.AppendCommandStrings(nil, words...)
			if !waits {
				n = 1
			}
		}
		before := ""
		if waits {
			before = blocked()
		}
		if _, err := p.conn.Write(out); len(out) > 0 && err != nil {
			t.Fatal(err)
		}
		if waits {
			while := 30 * time.Millisecond
			if strings.HasPrefix(rest, "B") {
				while = 5 * time.Second // however busy the machine, the one who comes first is to be there first
			}
			settle(before, while)
		}
		for range n {
			read(line, p)
		}
	}
	return replies
}

// serveUnix serves an empty store on a unix socket.
func serveUnix(t *testing.T, transport server.Transport) string {
	t.Helper()
	address := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	store := openStore(t)
	go func() { done <- server.Serve(ctx, ln, store, &server.Options{Transport: transport}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return address
}

func TestScriptsAgreeWithRedis(t *testing.T) {
	redis := startRedis(t)
	address := redis.conn.RemoteAddr().String()
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			if _, err := redis.do([]string{"flushall"}); err != nil {
				t.Fatal(err)
			}
			theirs := talk(t, address, script)
			eachTransport(t, func(t *testing.T, transport server.Transport) {
				ours := talk(t, serveUnix(t, transport), script)
				for i := range ours {
					if ours[i] != theirs[i] {
						t.Errorf("stave %s, redis %s", ours[i], theirs[i])
					}
				}
			})
		})
	}
}
