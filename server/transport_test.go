package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/server"
)

// eachTransport runs a test on every transport of this platform.
func eachTransport(t *testing.T, test func(t *testing.T, transport server.Transport)) {
	t.Helper()
	for _, transport := range transports() {
		t.Run(string(transport), func(t *testing.T) { test(t, transport) })
	}
}

// someTransport runs a long test on one of the transports, or with -long on each.
func someTransport(t *testing.T, test func(t *testing.T, transport server.Transport)) {
	t.Helper()
	for _, transport := range budget.Some(t, transports(), 1) {
		t.Run(string(transport), func(t *testing.T) { test(t, transport) })
	}
}

// transports are those of this platform.
func transports() []server.Transport {
	if runtime.GOOS == "linux" {
		return []server.Transport{server.TransportGoroutines, server.TransportEventLoop}
	}
	return []server.Transport{server.TransportGoroutines}
}

// serve runs a server on a free port until the test ends. Its clients may take an hour to authenticate: verifying
// passwords takes long under the race detector.
func serve(t *testing.T, o *server.Options, prepare ...func(*server.Server)) (v *server.Server, address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v = newServer(t, openStore(t), o)
	v.TimeToAuth(time.Hour)
	for _, f := range prepare {
		f(v)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return v, ln.Addr().String()
}

// testClient is a connection that fails the test instead of returning errors.
type testClient struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, address string) *testClient {
	t.Helper()
	return dialBy(t, "tcp", address)
}

func dialBy(t *testing.T, network, address string) *testClient {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &testClient{t, conn, bufio.NewReader(conn)}
}

func (c *testClient) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads exactly what is expected.
func (c *testClient) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.in, got)
	if string(got[:n]) != want {
		c.t.Fatalf("got %q, %v, want %q", got[:n], err, want)
	}
}

// until asks until the reply is the line that is wanted.
func (c *testClient) until(command, want string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c.send(command + "\r\n")
		got := c.line()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: %q, want %q", command, got, want)
		}
	}
}

// expectEnd reads the end of the connection.
func (c *testClient) expectEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		c.t.Fatalf("the connection goes on: %q, %v", rest, err)
	}
}

func TestServe(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		a, b := dial(t, address), dial(t, address)
		a.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
		a.expect("+OK\r\n$1\r\nv\r\n")
		b.send("GET k\r\n")
		b.expect("$1\r\nv\r\n")
		b.send("CLIENT LIST\r\n")
		line, err := b.in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "$") {
			t.Fatal(line, err)
		}
		for range 2 {
			line, err := b.in.ReadString('\n')
			if err != nil || !strings.Contains(line, " addr=127.0.0.1:") {
				t.Fatalf("%q, %v", line, err)
			}
		}
		b.expect("\r\n")
		if info := v.Info("clients"); !strings.Contains(info, "connected_clients:2\r\n") {
			t.Error(info)
		}
		a.send("QUIT\r\n")
		a.expect("+OK\r\n")
		a.expectEnd()
		b.send("*1\r\n!4\r\n")
		b.expect("-ERR Protocol error: expected '$', got '!'\r\n")
		b.expectEnd()
	})
}

func TestServePipelineOfOneMillion(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		if testing.Short() {
			t.Skip("slow")
		}
		_, address := serve(t, &server.Options{Transport: transport})
		c := dial(t, address)
		const n = 1_000_000
		go func() { _, _ = io.WriteString(c.Conn, strings.Repeat("PING\r\n", n)) }() // the replies tell whether it went well
		for range n / 1000 {
			c.expect(strings.Repeat("+PONG\r\n", 1000))
		}
	})
}

func TestServeRefusesOtherMachines(t *testing.T) {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(t.Context(), ln, openStore(t), nil); !errors.Is(err, server.ErrNoPassword) {
		t.Errorf("serves on %s: %v", ln.Addr(), err)
	}
}

func TestServeUnixSocket(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		ln, err := net.Listen("unix", t.TempDir()+"/s")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, ln, openStore(t), &server.Options{Transport: transport}) }()
		conn, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := &testClient{t, conn, bufio.NewReader(conn)}
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.expectEnd()
	})
}

func TestServeMaxClients(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport, MaxClients: 1})
		a := dial(t, address)
		a.send("PING\r\n")
		a.expect("+PONG\r\n")
		b := dial(t, address)
		b.expect("-ERR max number of clients reached\r\n")
		b.expectEnd()
		a.send("QUIT\r\n")
		a.expect("+OK\r\n")
		a.expectEnd()
		for {
			c := dial(t, address)
			c.send("PING\r\n")
			if line, _ := c.in.ReadString('\n'); line == "+PONG\r\n" {
				break // the place of the first client is free, sooner or later
			}
		}
	})
}

func TestServePanic(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		defer server.AddPanics()()
		v, address := serve(t, &server.Options{Transport: transport})
		other := dial(t, address)
		for _, cmd := range []string{"boom", "boomkey k", "strlen x\r\nboomkey k\r\nstrlen x"} {
			c := dial(t, address)
			c.send("PING\r\n" + cmd + "\r\nPING\r\n")
			c.expect("+PONG\r\n-ERR internal error; the connection is closed\r\n")
			c.expectEnd()
			other.send("GET k\r\n")
			other.expect("$-1\r\n") // nothing of the panicked command is there, and its key is not locked
		}
		if info := v.Info("stats"); !strings.Contains(info, "unexpected_error_replies:3\r\n") {
			t.Error(info)
		}
	})
}

// TestServePanicOfAWait: a command that panics when what it waits for has come costs the connection of whoever runs it
// then; no key stays locked, and others that wait for the same are served.
func TestServePanicOfAWait(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		defer server.AddPanics()()
		v, address := serve(t, &server.Options{Transport: transport})
		other := dial(t, address)
		waits := func(cmd string, blocked int) *testClient { // as so many then do
			t.Helper()
			c := dial(t, address)
			c.send(cmd + "\r\n")
			for !strings.Contains(v.Info("clients"), fmt.Sprintf("blocked_clients:%d\r\n", blocked)) {
				time.Sleep(time.Millisecond)
			}
			return c
		}
		const broken = "-ERR internal error; the connection is closed\r\n"

		c := dial(t, address)
		c.send("MULTI\r\nSET k v\r\nboomkey k\r\nEXEC\r\n")
		c.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n" + broken)
		c.expectEnd()
		other.send("EXISTS k\r\n")
		other.expect(":0\r\n")

		c = waits("boomreply l", 1)
		other.send("RPUSH l a\r\n")
		other.expect(":1\r\n")
		c.expect(broken)
		c.expectEnd()

		c = waits("boompop l", 1)
		second := waits("BLPOP l 0", 2)
		pusher := dial(t, address)
		pusher.send("RPUSH l b\r\n")
		pusher.expect(broken)
		pusher.expectEnd()
		c.expect("-ERR db: the transaction that served a waiter was rolled back\r\n")
		other.send("RPUSH l c\r\n")
		other.expect(":1\r\n")
		second.expect("*2\r\n$1\r\nl\r\n$1\r\nc\r\n")

		other.send("FLUSHALL\r\nPING\r\n") // everything is locked for that
		other.expect("+OK\r\n+PONG\r\n")
		if info := v.Info("stats"); !strings.Contains(info, "unexpected_error_replies:3\r\n") {
			t.Error(info)
		}
	})
}

func TestServeClosesLargestClient(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport, ClientMemory: 1 << 20})
		small, large := dial(t, address), dial(t, address)
		small.send("PING\r\n")
		small.expect("+PONG\r\n")
		go func() { // fails when the server closes the connection
			_, _ = io.WriteString(large.Conn, "*2\r\n$3\r\nGET\r\n$40000000\r\n"+strings.Repeat("x", 4<<20))
		}()
		large.expectEnd()
		small.send("PING\r\n")
		small.expect("+PONG\r\n")
		if info := v.Info("stats"); !strings.Contains(info, "evicted_clients:") || strings.Contains(info, "evicted_clients:0\r\n") {
			t.Error(info)
		}
	})
}

// TestServeShutdown ends a server whose clients are busy: replies that are on their way arrive.
func TestServeShutdown(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		store := openStore(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, ln, store, &server.Options{Transport: transport}) }()
		var clients sync.WaitGroup
		for range 8 {
			c := dial(t, ln.Addr().String())
			clients.Go(func() {
				for n := 1; ; n++ {
					if _, err := fmt.Fprintf(c.Conn, "INCR %s\r\n", c.LocalAddr()); err != nil {
						return
					}
					line, err := c.in.ReadString('\n')
					if err != nil && line == "" {
						return
					}
					if line != fmt.Sprintf(":%d\r\n", n) {
						t.Errorf("got %q, want :%d", line, n)
						return
					}
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		clients.Wait()
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Error("still listening")
		}
	})
}

// pipeListener hands out in-memory connections, for tests with a clock of their own.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (l *pipeListener) dial(t *testing.T) *testClient {
	here, there := net.Pipe()
	l.conns <- there
	return &testClient{t, here, bufio.NewReader(here)}
}

func TestServeTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := db.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ln := newPipeListener()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, ln, store, &server.Options{IdleTimeout: time.Hour}) }()

		// A client that sends a command a byte at a time, each before anybody would call it silent.
		slow := ln.dial(t)
		began := time.Now()
		for _, err = range perpetual(slow) {
			if err != nil {
				break
			}
			time.Sleep(10 * time.Second)
		}
		if took := time.Since(began); took < 30*time.Second || took > 60*time.Second {
			t.Errorf("half a command was waited for %s", took)
		}

		// A client that does not read its replies.
		deaf := ln.dial(t)
		deaf.send("PING\r\n")
		began = time.Now()
		_, err = deaf.Write([]byte("PING\r\n"))
		if took := time.Since(began); err == nil || took < 30*time.Second || took > 40*time.Second {
			t.Errorf("a client that does not read was waited for %s, %v", took, err)
		}

		// A client that says nothing at all, after two commands.
		idle := ln.dial(t)
		idle.send("PING\r\n")
		idle.expect("+PONG\r\n")
		time.Sleep(900 * time.Millisecond)
		idle.send("PING\r\n")
		idle.expect("+PONG\r\n")
		began = time.Now()
		_, err = idle.in.ReadByte()
		if took := time.Since(began); err == nil || took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("an idle client was waited for %s, %v", took, err)
		}

		// One that is in the middle of nothing when the server ends.
		last := ln.dial(t)
		last.send("PING\r\n")
		last.expect("+PONG\r\n")
		began = time.Now()
		stop()
		if err := <-done; err != nil || time.Since(began) > 0 {
			t.Errorf("the end took %s, %v", time.Since(began), err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// perpetual sends the bytes of a command that never ends.
func perpetual(c *testClient) func(yield func(int, error) bool) {
	return func(yield func(int, error) bool) {
		for i := 0; i < 1000; i++ {
			if _, err := c.Write([]byte("*1\r\n$1000\r\n"[min(i, 10) : min(i, 10)+1])); !yield(i, err) {
				return
			}
		}
	}
}

func TestRedisTools(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		cli, err := exec.LookPath("redis-cli")
		if err != nil {
			t.Skip("redis-cli is not installed")
		}
		_, address := serve(t, &server.Options{Transport: transport})
		_, port, _ := net.SplitHostPort(address)
		run := func(stdin string, name string, args ...string) string {
			t.Helper()
			cmd := exec.Command(name, append([]string{"-p", port}, args...)...)
			cmd.Stdin = strings.NewReader(stdin)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s %q: %v\n%s", name, args, err, out)
			}
			return string(out)
		}
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"set", "k", "a b"}, "OK\n"},
			{[]string{"--no-raw", "get", "k"}, "\"a b\"\n"},
			{[]string{"-3", "--no-raw", "hgetall", "none"}, "(empty hash)\n"},
			{[]string{"--no-raw", "zadd", "z", "1.5", "a"}, "(integer) 1\n"},
			{[]string{"-3", "--no-raw", "zscore", "z", "a"}, "(double) 1.5\n"},
			{[]string{"--scan", "--pattern", "k*"}, "k\n"},
			{[]string{"-n", "3", "dbsize"}, "0\n"},
			{[]string{"nope"}, "ERR unknown command 'nope', with args beginning with: \n\n"},
		} {
			if got := run("", cli, tt.args...); got != tt.want {
				t.Errorf("redis-cli %q: %q, want %q", tt.args, got, tt.want)
			}
		}
		if got := run("SET p 1\r\nINCR p\r\nINCR p\r\n", cli, "--pipe"); !strings.Contains(got, "errors: 0, replies: 3") {
			t.Errorf("redis-cli --pipe: %s", got)
		}
		if got := run("help set\n", cli); !strings.Contains(got, "key value [NX|XX|IFEQ value") || !strings.Contains(got, "Makes a key hold a string") {
			t.Errorf("redis-cli help set: %s", got)
		}
		if got := run("", cli, "--bigkeys"); !strings.Contains(got, "Sampled 3 keys") {
			t.Errorf("redis-cli --bigkeys: %s", got)
		}
		if benchmark, err := exec.LookPath("redis-benchmark"); err == nil {
			for _, pipeline := range []string{"1", "16"} {
				got := run("", benchmark, "-n", "2000", "-P", pipeline, "-q", "-t", "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset")
				if n := strings.Count(got, "requests per second"); n < 18 || strings.Contains(got, "WARNING") {
					t.Errorf("redis-benchmark -P %s: %d of its tests: %s", pipeline, n, got)
				}
			}
		}
	})
}

// TestServeTimeoutsOfSockets is TestServeTimeouts for transports that need a descriptor. Each limit has a server of its
// own, so that nothing but the client in question has to be fast.
func TestServeTimeoutsOfSockets(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const limit = 300 * time.Millisecond
		ends := func(what string, began time.Time, c *testClient) {
			t.Helper()
			if _, err := io.Copy(io.Discard, c.in); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
			if took := time.Since(began); took < limit/2 || took > time.Minute {
				t.Errorf("%s was waited for %s", what, took)
			}
		}
		_, address := serve(t, &server.Options{Transport: transport, PartialTimeout: limit})
		began := time.Now()
		partial := dial(t, address)
		partial.send("*1\r\n$1000\r\nx")
		ends("half a command", began, partial)

		const idle = 5 * limit // for these two have to say something within it
		_, address = serve(t, &server.Options{Transport: transport, IdleTimeout: idle})
		blocked := dial(t, address)
		blocked.send("BLPOP k 3\r\n")
		listener := dial(t, address)
		listener.send("SUBSCRIBE c\r\n")
		began = time.Now()
		ends("a client that says nothing", began, dial(t, address))
		listener.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		listener.send("PING\r\n")
		listener.expect("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
		blocked.expect("*-1\r\n") // its time was longer

		_, address = serve(t, &server.Options{Transport: transport, WriteTimeout: limit})
		big := strings.Repeat("x", 1<<20)
		deaf := dial(t, address)
		deaf.send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%s\r\n", len(big), big))
		deaf.expect("+OK\r\n")
		deaf.send(strings.Repeat("GET big\r\n", 100))
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if _, err := io.WriteString(deaf.Conn, "PING\r\n"); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("a client that takes no replies is served for ever")
			}
		}
	})
}

// TestServePartialTimeoutIsOfOneCommand: a client that finishes its commands in time is served, though it has always
// begun the next.
func TestServePartialTimeoutIsOfOneCommand(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const limit = 3 * time.Second // far more than one command takes, however busy the machine
		_, address := serve(t, &server.Options{Transport: transport, PartialTimeout: limit, Debug: true})
		commands := []string{"PING x\r\n", "SORT none\r\n"} // the latter leaves an event loop
		clients := make([]*testClient, len(commands))
		for i, command := range commands {
			clients[i] = dial(t, address)
			clients[i].send(command[:1])
		}
		for began := time.Now(); time.Since(began) < 2*limit; time.Sleep(limit / 30) {
			for i, command := range commands {
				clients[i].send(command[1:] + command[:1])
				if _, err := clients[i].in.ReadString('\n'); err != nil {
					t.Fatalf("%q: %v after %s", command, err, time.Since(began))
				}
			}
		}
	})
}

// TestServeHalfClosed: a client that has ended its side gets all its replies, also those that take several writes.
func TestServeHalfClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		c := dial(t, address)
		big := strings.Repeat("x", 1<<20)
		c.send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%s\r\n", len(big), big) + strings.Repeat("GET big\r\n", 30) + "KEYS *\r\nPING\r\n")
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // the replies do not fit into the sockets
		c.expect("+OK\r\n" + strings.Repeat(fmt.Sprintf("$%d\r\n%s\r\n", len(big), big), 30) + "*1\r\n$3\r\nbig\r\n+PONG\r\n")
		c.expectEnd()
	})
}
