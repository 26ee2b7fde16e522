package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// What Redis 7.4 says where 7.0, which other tests compare with, does not.
func TestLikeRedis74(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, tt := range []struct{ in, out string }{
		{"BLPOP k inf", "-ERR timeout is out of range\r\n"},
		{"BLPOP k 1e30", "-ERR timeout is out of range\r\n"},
		{"BLPOP k 9223372036854775807", "-ERR timeout is out of range\r\n"},
		{"BLPOP k -inf", "-ERR timeout is negative\r\n"},
		{"BLPOP k nan", "-ERR timeout is not a float or out of range\r\n"},
		{"LPOS k x RANK -9223372036854775808", "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n"},
		{"LMPOP 9223372036854775807 k LEFT", "-ERR syntax error\r\n"},
		{"CLIENT KILL MAXAGE x", "-ERR maxage is not an integer or out of range\r\n"},
		{"CLIENT KILL MAXAGE 1000", ":0\r\n"},
		{"CLIENT KILL MAXAGE 0", "-ERR maxage should be greater than 0\r\n"},
		{"CLIENT KILL MAXAGE -5", "-ERR maxage should be greater than 0\r\n"},
		{"CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n"},
		{"CLIENT KILL TYPE nope", "-ERR Unknown client type 'nope'\r\n"},
		{"CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n"},
		{"CLIENT KILL ID 1 ADDR", "-ERR syntax error\r\n"},
		{"CLIENT KILL 1.2.3.4:5", "-ERR No such client\r\n"},
	} {
		if got := ask(s, tt.in+"\r\n"); got != tt.out {
			t.Errorf("%s: %q, want %q", tt.in, got, tt.out)
		}
	}
}

// What Redis 8.2 to 8.10 and Valkey 9 add to commands that 7.4 has: a case for each sentence of their documents.
func TestLikeRedis8(t *testing.T) {
	const limit = "-ERR LIMIT can't be negative\r\n"
	scored := func(pairs ...string) string {
		reply := fmt.Sprintf("*%d\r\n", len(pairs))
		for _, text := range pairs {
			reply += bulkLine(text)
		}
		return reply
	}
	expectLines(t, []line{
		// BITOP: bits of the first and of none of the others; of others and not of the first; of both; of exactly one.
		{"SET x abc", okLine}, {"SET y a", okLine}, {"SET z AB", okLine}, // 61 62 63; 61; 41 42
		{"BITOP DIFF d x y z", ":3\r\n"}, {"GET d", bulkLine("\x00\x20c")},
		{"BITOP DIFF1 d z x y", ":3\r\n"}, {"GET d", bulkLine("\x20\x20c")},
		{"BITOP andor d x y z", ":3\r\n"}, {"GET d", bulkLine("aB\x00")},
		{"BITOP ONE d x y z", ":3\r\n"}, {"GET d", bulkLine("\x00\x20c")},
		{"BITOP ONE d y", ":1\r\n"}, {"GET d", bulkLine("a")},
		{"BITOP DIFF d none none", ":0\r\n"}, {"EXISTS d", ":0\r\n"},
		{"BITOP diff d x", "-ERR BITOP DIFF must be called with at least two source keys.\r\n"},
		{"BITOP DIFF1 d x", "-ERR BITOP DIFF1 must be called with at least two source keys.\r\n"},
		{"BITOP ANDOR d x", "-ERR BITOP ANDOR must be called with at least two source keys.\r\n"},

		{"SADD s a b c d e", ":5\r\n"}, {"SADD t c d x", ":3\r\n"}, {"SADD u e y", ":2\r\n"},
		{"SDIFFCARD 3 s t u", ":2\r\n"}, {"SDIFFCARD 3 s t u LIMIT 1", ":1\r\n"}, {"SDIFFCARD 2 s none LIMIT 0", ":5\r\n"},
		{"SDIFFCARD 2 none s", ":0\r\n"}, {"SDIFFCARD 1 s LIMIT 9", ":5\r\n"},
		{"SUNIONCARD 2 s t", ":6\r\n"}, {"SUNIONCARD 2 s t LIMIT 3", ":3\r\n"}, {"SUNIONCARD 2 s none", ":5\r\n"},
		{"SUNIONCARD 3 s t u APPROX", ":7\r\n"}, {"SUNIONCARD 3 s t u APPROX LIMIT 2", ":2\r\n"}, {"SUNIONCARD 3 s t u LIMIT 2 APPROX", ":2\r\n"},
		{"SUNIONCARD 1 s LIMIT APPROX", syntaxLine}, {"SDIFFCARD 1 s APPROX", syntaxLine}, {"SDIFFCARD 1 s LIMIT -1", limit}, {"SUNIONCARD 1 s LIMIT x", limit},
		{"SUNIONCARD 0 s", "-ERR numkeys should be greater than 0\r\n"}, {"SDIFFCARD 2 s", "-ERR Number of keys can't be greater than number of args\r\n"},
		{"SDIFFCARD 2 s x", wrongTypeLine}, {"SUNIONCARD 2 x s", wrongTypeLine}, {"SUNIONCARD 1", arityLine("sunioncard")},

		// COUNT: how many have the member, or the sum of their weights.
		{"ZADD z1 100 foo 100 bar", ":2\r\n"}, {"ZADD z2 200 foo 200 bar", ":2\r\n"}, {"ZADD z3 inf foo", ":1\r\n"},
		{"ZUNION 3 z1 z2 z3 AGGREGATE COUNT WITHSCORES", scored("bar", "2", "foo", "3")},
		{"ZUNIONSTORE out 3 z1 z2 z3 WEIGHTS 10 5 3 AGGREGATE COUNT", ":2\r\n"},
		{"ZRANGE out 0 -1 WITHSCORES", scored("bar", "15", "foo", "18")},
		{"ZINTER 3 z1 z2 z3 AGGREGATE count WITHSCORES", scored("foo", "3")},
		{"ZINTERSTORE out 3 z1 z2 z3 WEIGHTS 10 5 3 AGGREGATE COUNT", ":1\r\n"},
		{"ZSCORE out foo", bulkLine("18")},

		{"ZSCAN z3 0 NOSCORES", "*2\r\n" + bulkLine("0") + scored("foo")},
		{"ZSCAN z1 0 MATCH f* noscores COUNT 9", "*2\r\n" + bulkLine("0") + scored("foo")},
		{"ZSCAN none 0 NOSCORES", "*2\r\n" + bulkLine("0") + "*0\r\n"},

		{`SCAN ""`, "-ERR invalid cursor\r\n"}, {`SSCAN s ""`, "-ERR invalid cursor\r\n"}, {"ZSCAN z1 -1", "-ERR invalid cursor\r\n"},
	})
	if c := server.Lookup("hexpire"); c.Flags&command.DenyOOM != 0 {
		t.Error("HEXPIRE is refused for want of memory, as before 8.0")
	}
}

// A session without a connection waits as well, and the bytes after the command run when it ends.
func TestSessionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		s := newSession(t, store, nil)
		start := time.Now()
		if got := ask(s, "PING\r\nBLPOP k 60\r\nPING\r\n"); got != "+PONG\r\n" || !s.Blocked() {
			t.Fatalf("%q, blocked: %v", got, s.Blocked())
		}
		s.Feed([]byte("ECHO x\r\n"))
		s.Wait(context.Background())
		if got := string(s.Output()); got != "*-1\r\n+PONG\r\n$1\r\nx\r\n" || time.Since(start) != time.Minute {
			t.Fatalf("after %v: %q", time.Since(start), got)
		}
		s.Flushed(len(s.Output()))
		if got := string(s.Do([][]byte{[]byte("BLPOP"), []byte("k"), []byte("1.5")})); got != "*-1\r\n" {
			t.Errorf("Do: %q", got)
		}
		// Interrupted, it is given up, and the session goes on.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got := string(s.DoContext(ctx, [][]byte{[]byte("BLPOP"), []byte("k"), []byte("0")})); got != "*-1\r\n" || ctx.Err() == nil || s.Blocked() {
			t.Errorf("Do, interrupted: %q", got)
		}
		if got := string(s.Do([][]byte{[]byte("LLEN"), []byte("k")})); got != ":0\r\n" {
			t.Errorf("Do, after that: %q", got)
		}
		// Closed, it takes nothing any more.
		ask(s, "BLPOP k 0\r\n")
		s.Close()
		if n, err := store.List("k").PushBack([]byte("x")); err != nil || n != 1 || s.Blocked() {
			t.Errorf("pushed: %d, %v", n, err)
		}
		if left, err := store.List("k").Len(); err != nil || left != 1 {
			t.Errorf("left: %d, %v", left, err)
		}
	})
}

func TestClientKill(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		me, idle, waiting := dial(t, address), dial(t, address), dial(t, address)
		idle.send("PING\r\n")
		idle.expect("+PONG\r\n")
		waiting.send("PING\r\nBLPOP k 0\r\n")
		waiting.expect("+PONG\r\n") // all three are in the list
		for listed := ""; !strings.Contains(listed, "flags=b"); {
			me.send("CLIENT LIST\r\n")
			header, err := me.in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			listed = header
			for range 3 {
				line, err := me.in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				listed += line
			}
			me.expect("\r\n")
		}
		me.send("CLIENT KILL ADDR " + idle.LocalAddr().String() + "\r\n")
		me.expect(":1\r\n")
		idle.expectEnd()
		me.send("CLIENT KILL TYPE normal\r\n")
		me.expect(":1\r\n")
		waiting.expectEnd()
		me.send("RPUSH k x\r\nLLEN k\r\n")
		me.expect(":1\r\n:1\r\n")
		me.send("CLIENT KILL SKIPME no TYPE normal\r\n")
		me.expect(":1\r\n")
		me.expectEnd()
	})
}

// A client that was killed is not listed, counted, found or killed again, though its goroutine has not ended yet.
func TestKilledOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		me, other := dial(t, address), dial(t, address)
		me.send("CLIENT ID\r\n")
		mine := me.line()
		other.send("CLIENT ID\r\n")
		id := strings.TrimPrefix(other.line(), ":")
		me.send("CLIENT KILL ID " + id + "\r\nCLIENT KILL ID " + id + "\r\nCLIENT KILL TYPE normal\r\nCLIENT KILL " + other.LocalAddr().String() +
			"\r\nCLIENT LIST ID " + id + "\r\nCLIENT UNBLOCK " + id + "\r\nCLIENT TRACKING on REDIRECT " + id + "\r\nCLIENT ID\r\n")
		me.expect(":1\r\n:0\r\n:0\r\n-ERR No such client\r\n$0\r\n\r\n:0\r\n-ERR The client ID you want redirect to does not exist\r\n" + mine + "\r\n")
		other.expectEnd()
		third := dial(t, address)
		third.send("CLIENT ID\r\n")
		id = strings.TrimPrefix(third.line(), ":")
		me.send("CLIENT KILL ID " + id + "\r\nINFO clients\r\n")
		me.expect(":1\r\n")
		for line := me.line(); ; line = me.line() {
			if n, ok := strings.CutPrefix(line, "connected_clients:"); ok {
				if n != "1" {
					t.Errorf("%s clients", n)
				}
				break
			}
		}
	})
}

// A client that sends much while it waits is not read on for ever, and is answered all the same.
func TestMuchBehindAWaitingCommand(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport}, func(v *server.Server) { v.PauseAt(4 << 10) })
		waiting, other := dial(t, address), dial(t, address)
		const pings = 5000
		sent := make(chan error, 1)
		go func() {
			_, err := waiting.Write([]byte("BLPOP k 0\r\n" + strings.Repeat("PING\r\n", pings)))
			sent <- err
		}()
		time.Sleep(50 * time.Millisecond)
		other.send("RPUSH k x\r\n")
		other.expect(":1\r\n")
		waiting.expect("*2\r\n$1\r\nk\r\n$1\r\nx\r\n" + strings.Repeat("+PONG\r\n", pings))
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

// A server that shuts down does not wait for those who wait: the cleanup of serve would take an hour.
func TestShutdownEndsWaiting(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport, ShutdownGrace: time.Hour})
		waiting := dial(t, address)
		waiting.send("PING\r\nBLPOP k 0\r\n")
		waiting.expect("+PONG\r\n")
		time.Sleep(20 * time.Millisecond)
	})
}

// TestKilledInALongPipeline: of a pipeline of commands that wait one after the other, and that is longer than the server
// reads meanwhile, replies arrive one by one, and nothing more is executed once the client is killed.
func TestKilledInALongPipeline(t *testing.T) { eachTransport(t, killedInALongPipeline) }

func killedInALongPipeline(t *testing.T, transport server.Transport) {
	v, address := serve(t, &server.Options{Transport: transport}, func(v *server.Server) { v.PauseAt(16 << 10) })
	other := dial(t, address)
	waits := wireText("BLPOP", strings.Repeat("x", 100), "0.03")
	c := dial(t, address)
	go func() { _, _ = c.Conn.Write([]byte(strings.Repeat(waits+"INCR count\r\n", 500))) }()
	c.line()
	c.expect(":1\r\n")
	count := func() string {
		other.send("GET count\r\n")
		other.line()
		return other.line()
	}
	if now := count(); len(now) > len("99\r\n") {
		t.Errorf("the first reply arrived when count was %q", now)
	}
	other.send("CLIENT KILL ADDR " + c.Conn.LocalAddr().String() + "\r\n")
	other.expect(":1\r\n")
	awaitClients(t, v, 1)
	killed := count()
	time.Sleep(300 * time.Millisecond)
	if now := count(); now != killed {
		t.Errorf("killed when count was %q, and then it was %q", killed, now)
	}
}
