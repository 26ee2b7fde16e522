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

// scripts are conversations of several clients with one server. A line is a client and a command, whose reply comes at
// once; with ~ before it the command waits, and < reads the reply. Both servers must reply the same.
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
	"every reader of a stream gets the entry": `
		a: ~XREAD BLOCK 0 STREAMS s $
		b: ~XREAD BLOCK 0 COUNT 1 STREAMS other s 0 0
		c: ~XREAD BLOCK 0 STREAMS s 5-0
		d: XADD s 1-1 f v
		a: <
		b: <
		d: XADD s 5-0 f v
		d: XADD s 6-0 f v
		c: <
		d: XRANGE s - +`,
	"entries of one transaction come together": `
		a: ~XREAD BLOCK 0 STREAMS s 0
		b: MULTI
		b: XADD s 1-1 f v
		b: XADD s 2-1 f v
		b: XDEL s 1-1
		b: EXEC
		a: <`,
	"a stream that arrives under another name": `
		a: XADD t 3-1 f v
		b: ~XREAD BLOCK 0 STREAMS s 1
		a: RENAME t s
		b: <`,
	"what is there is read at once": `
		a: XADD s 1-1 f v
		a: XADD t 1-1 f v
		a: XREAD BLOCK 0 STREAMS s none t 0 0 0
		a: XREAD BLOCK 20 STREAMS s t 1-1 $
		a: XREAD BLOCK 20 STREAMS s t x $`,
	"no reader waits within a transaction": `
		a: MULTI
		a: XREAD BLOCK 0 STREAMS s $
		a: EXEC`,
	"a group serves its readers in the order in which they came": `
		a: XGROUP CREATE s g $ MKSTREAM
		a: ~XREADGROUP GROUP g alice BLOCK 0 COUNT 1 STREAMS s >
		b: ~XREADGROUP GROUP g bob BLOCK 0 COUNT 1 STREAMS s >
		c: ~XREAD BLOCK 0 STREAMS s $
		d: XADD s 1-1 f v
		a: <
		c: <
		d: XADD s 2-1 f v
		b: <
		d: XPENDING s g
		d: XREADGROUP GROUP g bob STREAMS s 0`,
	"entries of one transaction are shared out": `
		a: XGROUP CREATE s g $ MKSTREAM
		a: XGROUP CREATE s h $
		a: ~XREADGROUP GROUP g alice BLOCK 0 COUNT 2 STREAMS s >
		b: ~XREADGROUP GROUP g bob BLOCK 0 NOACK STREAMS s >
		c: ~XREADGROUP GROUP h alice BLOCK 0 STREAMS s >
		d: MULTI
		d: XADD s 1-1 f v
		d: XADD s 2-1 f v
		d: XADD s 3-1 f v
		d: XADD s 4-1 f v
		d: EXEC
		a: <
		b: <
		c: <
		d: XPENDING s g
		d: XPENDING s h`,
	"what the group has not delivered is read at once": `
		a: XADD s 1-1 f v
		a: XGROUP CREATE s g 0
		a: XGROUP CREATE t g 0 MKSTREAM
		a: XREADGROUP GROUP g alice BLOCK 0 STREAMS t s > >
		a: XREADGROUP GROUP g alice BLOCK 20 STREAMS s t > >
		a: XREADGROUP GROUP g alice BLOCK 0 STREAMS s t > 0
		a: XREADGROUP GROUP g alice BLOCK 0 STREAMS s t 0 0
		b: ~XREADGROUP GROUP g alice BLOCK 0 STREAMS s t > >
		a: XADD t 7-7 f v
		b: <
		a: MULTI
		a: XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
		a: EXEC`,
	"a reader of a key of another type": `
		a: SET k v
		a: XREAD BLOCK 0 STREAMS s k 0 0
		b: ~XREAD BLOCK 0 STREAMS s 0
		c: LPUSH s x
		c: DEL s
		c: XADD s 1-1 f v
		b: <`,
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
		b: SET k x PX 300
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
	waiting := map[string]bool{} // in a command that blocks
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
		if err := p.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
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
			delete(waiting, name)
		case cmd == "sleep":
			time.Sleep(500 * time.Millisecond)
		case cmd == "quit":
			before := blocked()
			_ = p.conn.Close()
			while := 500 * time.Millisecond
			if waiting[name] {
				while = patience
			}
			settle(before, while)
		case cmd == "HELLO3", cmd == "HELLO2":
			if _, err := p.do([]string{"hello", cmd[5:]}); err != nil {
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
			for i, word := range words {
				if of, isID := strings.CutPrefix(word, "id:"); isID {
					client(of)
					words[i] = ids[of]
				}
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
			if strings.HasPrefix(rest, "B") || strings.HasPrefix(rest, "XREAD") {
				waiting[name] = true
				while = patience // however busy the machine, the one who comes first is to be there first
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
	return serveUnixWith(t, &server.Options{Transport: transport})
}

// serveUnixWith is serveUnix with any options.
func serveUnixWith(t *testing.T, o *server.Options) string {
	t.Helper()
	address := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	store := openStore(t)
	go func() { done <- server.Serve(ctx, ln, store, withLoops(o)) }()
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

// TestManyWaiters: one command serves many clients that wait, each once and in their order; an event loop does not do
// that itself, but it gives a single element to the first of many.
func TestManyWaiters(t *testing.T) {
	const waiters = 600
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		for _, test := range []struct {
			name, wait, give string
			reply            func(i int) string
			gives            string // its reply
			leaves           bool
		}{
			{"elements", "BLPOP q 0\r\n", "RPUSH q" + numbered(waiters) + "\r\n",
				func(i int) string { return fmt.Sprintf("*2\r\n$1\r\nq\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i) }, fmt.Sprintf(":%d\r\n", waiters), true},
			{"one entry", "XREAD BLOCK 0 STREAMS s $\r\n", "XADD s 1-1 f v\r\n",
				func(int) string {
					return "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
				}, "$3\r\n1-1\r\n", true},
			{"an element, in turn", "BLPOP one 0\r\n", "RPUSH one 0\r\n",
				func(int) string { return "*2\r\n$3\r\none\r\n$1\r\n0\r\n" }, ":1\r\n", false},
			{"EXEC", "BLPOP q 0\r\n", "MULTI\r\nRPUSH q" + numbered(waiters) + "\r\nEXEC\r\n",
				func(i int) string { return fmt.Sprintf("*2\r\n$1\r\nq\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i) },
				fmt.Sprintf("+OK\r\n+QUEUED\r\n*1\r\n:%d\r\n", waiters), true},
		} {
			t.Run(test.name, func(t *testing.T) {
				clients := make([]*testClient, waiters)
				for i := range clients {
					clients[i] = dial(t, address)
					clients[i].send(test.wait)
					for fieldOf(t, v.Info("clients"), "blocked_clients") <= i {
						time.Sleep(50 * time.Microsecond)
					}
				}
				giver, before := dial(t, address), v.Asides()
				for i, c := range clients {
					if i == 0 || !test.leaves {
						giver.send(test.give)
						giver.expect(test.gives)
					}
					c.expect(test.reply(i))
				}
				if left := v.Asides() > before; left != (test.leaves && transport == server.TransportEventLoop) {
					t.Errorf("left the event loop: %v, want %v", left, test.leaves)
				}
				for _, c := range clients {
					_ = c.Close()
				}
			})
		}
	})
}

// TestLongWaiterLeaves: a client that waits in a command longer than what is read ahead, and leaves, is noticed.
func TestLongWaiterLeaves(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		c := dial(t, address)
		c.send("*52\r\n$5\r\nBLPOP\r\n" + strings.Repeat("$50000\r\n"+strings.Repeat("k", 50_000)+"\r\n", 50) + "$1\r\n0\r\n")
		for _, waiting := range []int{1, 0} {
			for began := time.Now(); fieldOf(t, v.Info("clients"), "blocked_clients") != waiting; time.Sleep(time.Millisecond) {
				if time.Since(began) > 10*time.Second {
					t.Fatalf("not %d clients wait", waiting)
				}
			}
			_ = c.Close()
		}
	})
}

// TestPausedClientLeaves: a client that leaves is noticed in every state in which the server reads no more of what it
// has sent, and takes nothing afterwards.
func TestPausedClientLeaves(t *testing.T) {
	rest := strings.Repeat("PING\r\n", (1<<20+100<<10)/6) // more than what is read ahead, and no more than the sockets take
	leave := func(c *testClient) { _ = c.Close() }
	reset := func(c *testClient) { _ = c.Conn.(*net.TCPConn).SetLinger(0); _ = c.Close() }
	for name, row := range map[string]struct {
		setup, command string
		leave          func(*testClient)
	}{
		"blocked":                {"", "BLPOP l 0\r\n", leave},
		"blocked, reset":         {"", "BLPOP l 0\r\n", reset},
		"CLIENT PAUSE":           {"CLIENT PAUSE 600000 WRITE\r\n", "LPOP l\r\n", leave},
		"CLIENT PAUSE, reset":    {"CLIENT PAUSE 600000 WRITE\r\n", "LPOP l\r\n", reset},
		"without room, reset":    {"CLIENT NO-EVICT ON\r\n" + strings.Repeat(mgetAll, 3), mgetAll, reset},
		"does not read, reset":   {"", strings.Repeat(mgetAll, 2), reset},
		"does not read, and FIN": {"", strings.Repeat(mgetAll, 2), leave},
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, transport server.Transport) {
				v, address, _ := longReplies(t, transport, server.Options{}, time.Hour)
				holder := dial(t, address)
				holder.send(row.setup)
				if row.setup != "" {
					if _, err := holder.in.Peek(1); err != nil { // it has been executed
						t.Fatal(err)
					}
				}
				c := dial(t, address)
				awaitClients(t, v, 3)
				before := fieldOf(t, v.Info("stats"), "total_net_input_bytes")
				c.send(row.command)
				for fieldOf(t, v.Info("stats"), "total_net_input_bytes") < before+len(row.command) {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(20 * time.Millisecond)
				c.send(rest)
				time.Sleep(20 * time.Millisecond)
				began := time.Now()
				row.leave(c)
				for fieldOf(t, v.Info("clients"), "connected_clients") > 2 {
					if time.Since(began) > 15*time.Second { // for half of the time after which a client is closed that does not read
						t.Fatal("it is not noticed")
					}
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// numbered are the numbers below n, each after a space.
func numbered(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, " %d", i)
	}
	return text.String()
}
