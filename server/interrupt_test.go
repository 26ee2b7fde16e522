package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// longCommands are commands that take minutes or hours on what fillForLong has made.
func longCommands() map[string][]string {
	pattern := "*" + strings.Repeat("a", 20_000) + "b"
	many := func(n int, words ...string) (list []string) {
		for range n {
			list = append(list, words...)
		}
		return list
	}
	numbered := func(n int, word string) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(word, i))
		}
		return list
	}
	with := func(words []string, more ...string) []string { return append(words, more...) }
	return map[string][]string{
		"KEYS":              {"KEYS", pattern},
		"SCAN":              {"SCAN", "0", "COUNT", "1000000", "MATCH", pattern},
		"SSCAN":             {"SSCAN", "names", "0", "COUNT", "1000000", "MATCH", pattern},
		"HSCAN":             {"HSCAN", "fields", "0", "COUNT", "1000000", "MATCH", pattern},
		"ZSCAN":             {"ZSCAN", "members", "0", "COUNT", "1000000", "MATCH", pattern},
		"PUBLISH":           {"PUBLISH", strings.Repeat("a", 400_000), "m"},
		"SUNION":            with([]string{"SUNION"}, many(200_000, "big")...),
		"SUNIONSTORE":       with([]string{"SUNIONSTORE", "to"}, many(200_000, "big")...),
		"SINTERCARD":        with([]string{"SINTERCARD", "500000"}, many(500_000, "big")...),
		"ZUNIONSTORE":       with([]string{"ZUNIONSTORE", "to", "200000"}, many(200_000, "big")...),
		"SORT":              with([]string{"SORT", "big", "LIMIT", "0", "1000"}, many(100_000, "GET", "none_*")...),
		"SORT STORE":        with([]string{"SORT", "big", "STORE", "to"}, many(20_000, "GET", "none_*")...),
		"PFCOUNT":           with([]string{"PFCOUNT"}, many(900_000, "hll")...),
		"EVAL":              {"EVAL", "while true do redis.call('EXISTS', 'text') end", "1", "text"},
		"EVAL of no calls":  {"EVAL", "while true do end", "0"},
		"BITOP":             with([]string{"BITOP", "OR", "to"}, many(400_000, "text")...),
		"ACL SETUSER":       with([]string{"ACL", "SETUSER", "nobody"}, numbered(300_000, "+get|")...),
		"ACL SETUSER (...)": {"ACL", "SETUSER", "nobody", "(" + strings.Join(numbered(300_000, "+get|"), " ") + ")"},
		"CONFIG GET":        with([]string{"CONFIG", "GET"}, numbered(1_000_000, "*b*c*d*e*")...),
		"DEBUG STRINGMATCH": {"DEBUG", "STRINGMATCH-LEN", "1000000", "*" + strings.Repeat("A", 500_000) + "b"},
	}
}

// fillForLong makes what longCommands take long for.
func fillForLong(t *testing.T, address string) {
	c := dial(t, address)
	name := strings.Repeat("a", 60_000)
	var all strings.Builder
	for i := range 5000 { // its sketch is dense
		all.WriteString(requestOf("PFADD", "hll", fmt.Sprint(i)))
	}
	for i := range 60 {
		own := fmt.Sprint(name, i)
		all.WriteString(requestOf("SET", own, "x") + requestOf("SADD", "names", own) + requestOf("HSET", "fields", own, "x") + requestOf("ZADD", "members", "1", own))
	}
	for i := range 2000 {
		all.WriteString(requestOf("SADD", "big", fmt.Sprint(i)))
	}
	all.WriteString(requestOf("SET", "text", strings.Repeat("abcdefg", 60_000)))
	all.WriteString(requestOf("ECHO", "filled"))
	c.send(all.String())
	for line := ""; line != "filled\r\n"; {
		var err error
		if line, err = c.in.ReadString('\n'); err != nil || line[0] == '-' {
			t.Fatal(line, err)
		}
	}
	_ = c.Close()
	subscriber := dial(t, address)
	subscriber.send(requestOf("PSUBSCRIBE", "*"+strings.Repeat("a", 200_000)+"b"))
	if _, err := subscriber.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// requestOf is a command on the wire.
func requestOf(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}

// begin sends a command that takes long on a connection of its own, and returns when it has begun.
func begin(t *testing.T, v *server.Server, address string, words []string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, requestOf("ECHO", "before")); err != nil {
		t.Fatal(err)
	}
	if err := expectText(conn, "$6\r\nbefore\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, requestOf(words...)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 100)); n > 0 || err == nil {
		t.Fatal("the command does not take long")
	}
	return conn.(*net.TCPConn)
}

// awaitClients waits until so many are connected. The long commands take minutes or hours: on a machine that is so slow
// that this takes a minute, they take longer.
func awaitClients(t *testing.T, v *server.Server, n int) {
	t.Helper()
	const within = time.Minute
	start := time.Now()
	for !strings.Contains(v.Info("clients"), fmt.Sprintf("connected_clients:%d\r\n", n)) {
		if time.Since(start) > within {
			t.Fatalf("a command goes on %v after nobody waits for it", within)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLongCommandsEnd: a command that takes minutes ends within seconds after its client has gone, whatever it is, and
// has done nothing; others go on meanwhile.
func TestLongCommandsEnd(t *testing.T) {
	someTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport, Debug: true})
		fillForLong(t, address)
		awaitClients(t, v, 1)
		for name, words := range longCommands() {
			t.Run(name, func(t *testing.T) {
				conn := begin(t, v, address, words)
				_ = conn.SetLinger(0) // the end is a reset
				_ = conn.Close()
				awaitClients(t, v, 1)
			})
		}
		c := dial(t, address)
		c.send("EXISTS to\r\nSCARD big\r\n")
		c.expect(":0\r\n:2000\r\n")
	})
}

// TestLongCommandOfHalfClosedClient: a client that ends what it sends may wait for its reply, for a while; one that has
// closed its connection looks the same.
func TestLongCommandOfHalfClosedClient(t *testing.T) {
	someTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport, Debug: true})
		fillForLong(t, address)
		c := dial(t, address)
		c.send(requestOf("EVAL", "local c = os.clock() while os.clock() - c < 0.4 do redis.call('EXISTS', 'big') end return 'done'", "0"))
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		reply, err := io.ReadAll(c.in)
		if err != nil || string(reply) != "$4\r\ndone\r\n" {
			t.Errorf("a client that has closed its side gets %q, %v", reply, err)
		}
		conn := begin(t, v, address, longCommands()["KEYS"])
		closed := time.Now()
		_ = conn.Close()
		awaitClients(t, v, 1)
		if took := time.Since(closed); took < time.Second {
			t.Errorf("a command whose client may be waiting ends after %v", took)
		}
	})
}

// TestLongWriteOfClientThatLeft: a client that sends a write and closes the connection has it done, however long it
// takes.
func TestLongWriteOfClientThatLeft(t *testing.T) {
	someTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		_ = begin(t, v, address, []string{"EVAL", "local c = os.clock() redis.call('SET', 'written', '1') while os.clock() - c < 3 do end", "1", "written"}).Close()
		awaitClients(t, v, 0)
		c := dial(t, address)
		c.send("GET written\r\n")
		c.expect("$1\r\n1\r\n")
		_ = c.Close()

		fillForLong(t, address) // leaves one client
		conn := begin(t, v, address, longCommands()["KEYS"])
		if _, err := io.WriteString(conn, requestOf("SET", "behind", "2")); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		awaitClients(t, v, 1)
		c = dial(t, address)
		c.send("GET behind\r\n")
		c.expect("$1\r\n2\r\n")
	})
}

// TestPipelineOfClientThatLeft: of what a client has sent before it closed the connection, writes are executed, and
// reads are not once that is known, though each takes less time than a client in doubt is given.
func TestPipelineOfClientThatLeft(t *testing.T) {
	const reads = 30
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		slow := requestOf("EVAL_RO", "local c = os.clock() while os.clock() - c < 0.2 do end return 1", "0")
		c := dial(t, address)
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		c.send(strings.Repeat(slow, reads) + requestOf("INCR", "behind") + slow + requestOf("INCR", "behind"))
		_ = c.Close()
		awaitClients(t, v, 0)
		_, counted, _ := strings.Cut(v.Info("commandstats"), "cmdstat_eval_ro:calls=")
		if counted, _, _ = strings.Cut(counted, ","); len(counted) > 1 {
			t.Errorf("%s of %d reads were executed for nobody", counted, reads)
		}
		other := dial(t, address)
		other.send("SETRANGE behind 1 .\r\nGET behind\r\n")
		other.expect(":2\r\n$2\r\n2.\r\n")
	})
}

// TestSlowPipelineIsAnsweredMeanwhile: replies do not wait for slow commands that follow them. A client that has ended
// what it sends gets them all.
func TestSlowPipelineIsAnsweredMeanwhile(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		slow := requestOf("EVAL_RO", "local c = os.clock() while os.clock() - c < 0.2 do end return 1", "0")
		c, killer := dial(t, address), dial(t, address)
		c.send(slow + requestOf("EVAL_RO", "while true do end", "0") + requestOf("ECHO", "last"))
		c.expect(":1\r\n")
		killer.until("SCRIPT KILL", "+OK")
		if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, "-ERR") || err != nil {
			t.Errorf("%q, %v", line, err)
		}
		c.expect("$4\r\nlast\r\n")
		c.send(strings.Repeat(slow, 3) + requestOf("ECHO", "last"))
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.expect(":1\r\n:1\r\n:1\r\n$4\r\nlast\r\n")
		c.expectEnd()
	})
}

// TestKillEndsLongCommand: CLIENT KILL ends the command that the client is at.
func TestKillEndsLongCommand(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		fillForLong(t, address)
		conn := begin(t, v, address, longCommands()["SUNIONSTORE"])
		c := dial(t, address)
		c.send(requestOf("CLIENT", "KILL", "ADDR", conn.LocalAddr().String()))
		c.expect(":1\r\n")
		awaitClients(t, v, 2)
		c.send("EXISTS to\r\n")
		c.expect(":0\r\n")
	})
}

// TestShutdownEndsLongCommands: after the grace period the server ends, whatever its clients are at.
func TestShutdownEndsLongCommands(t *testing.T) {
	someTransport(t, func(t *testing.T, transport server.Transport) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		v := newServer(t, openStore(t), &server.Options{Transport: transport, ShutdownGrace: 200 * time.Millisecond, Debug: true})
		go func() { done <- v.Serve(ctx, ln) }()
		fillForLong(t, ln.Addr().String())
		long := longCommands()
		for _, name := range []string{"KEYS", "PUBLISH", "SUNIONSTORE", "PFCOUNT", "EVAL", "SSCAN"} {
			begin(t, v, ln.Addr().String(), long[name])
		}
		stop()
		start := time.Now()
		defer func() { t.Log("the server has ended after", time.Since(start)) }()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the server goes on after its grace period")
		}
	})
}

// TestDoContextEndsLongCommand: in an embedded session a command that takes long ends with its context, and the session
// goes on.
func TestDoContextEndsLongCommand(t *testing.T) {
	s, err := server.NewSession(openStore(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do := func(ctx context.Context, words ...string) string {
		args := make([][]byte, len(words))
		for i, word := range words {
			args[i] = []byte(word)
		}
		return string(s.DoContext(ctx, args))
	}
	for i := range 60 {
		do(t.Context(), "SET", fmt.Sprint(strings.Repeat("a", 60_000), i), "x")
	}
	for _, name := range []string{"KEYS", "EVAL", "EVAL of no calls"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if got := do(ctx, longCommands()[name]...); !strings.HasPrefix(got, "-ERR") || !strings.Contains(got, "context deadline exceeded") {
			t.Errorf("%s: got %.100q", name, got)
		}
		cancel()
	}
	if got := do(t.Context(), "DBSIZE"); got != ":60\r\n" {
		t.Errorf("the session does not go on: %q", got)
	}
}
