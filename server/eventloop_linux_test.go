package server_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

func serveByLoop(t *testing.T, o server.Options, prepare ...func(*server.Server)) (v *server.Server, address string) {
	t.Helper()
	o.Transport = server.TransportEventLoop
	return serve(t, &o, prepare...)
}

// TestOrderOfArrival: what is sent on one connection before something on another is executed before it, though nobody
// waited for its reply. The sockets are of a kind that hands over within the system call that sends.
func TestOrderOfArrival(t *testing.T) {
	address := serveUnixWith(t, &server.Options{Transport: server.TransportEventLoop, Loops: 1})
	connect := func() *testClient {
		conn, err := net.Dial("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		c := &testClient{t, conn, bufio.NewReader(conn)}
		c.send("PING\r\n")
		c.expect("+PONG\r\n") // it is in the loop
		return c
	}
	a, b, c, d := connect(), connect(), connect(), connect()
	for i := range 1000 {
		a.send(fmt.Sprintf("SET k %d\r\n", i))
		b.send("INCR k\r\n")
		d.send("INCR k\r\n")
		c.send("GET k\r\n")
		a.expect("+OK\r\n")
		b.expect(fmt.Sprintf(":%d\r\n", i+1))
		d.expect(fmt.Sprintf(":%d\r\n", i+2))
		c.expect(fmt.Sprintf("$%d\r\n%d\r\n", len(fmt.Sprint(i+2)), i+2))

		a.send("SUBSCRIBE c\r\n")
		b.send("PUBLISH c x\r\n")
		b.expect(":1\r\n")
		a.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n")
		a.send("UNSUBSCRIBE c\r\n")
		b.send("PUBLISH c x\r\n")
		b.expect(":0\r\n")
		a.expect("*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n")
	}
}

// TestWakeAndClose hammers the ways in which other goroutines reach the loop: messages, pushes to those who wait,
// CLIENT KILL and UNBLOCK, and connections that begin and end. A wake-up that is lost leaves somebody without a reply,
// for ever.
func TestWakeAndClose(t *testing.T) {
	v, address := serveByLoop(t, server.Options{})
	done := time.Now().Add(2 * time.Second)
	if testing.Short() {
		done = time.Now().Add(300 * time.Millisecond)
	}
	var workers sync.WaitGroup
	work := func(n int, name string, step func(name string) error) {
		for i := range n {
			workers.Go(func() {
				for round := 0; time.Now().Before(done); round++ {
					if err := step(fmt.Sprint(name, i)); err != nil {
						t.Errorf("%s %d, round %d: %v", name, i, round, err)
						return
					}
				}
			})
		}
	}
	// Slow commands, which come back from other goroutines, wake those who wait; SORT leaves the loop, and so does
	// EXEC.
	work(4, "wait", func(key string) error {
		return dialed(address, func(waiting, other *redisPeer) error {
			answered := make(chan error, 1)
			go func() {
				reply, err := waiting.do([]string{"BLPOP", key, "60"})
				if err == nil && (reply.Null || len(reply.Items) != 2) {
					err = fmt.Errorf("lost: %s", show(reply))
				}
				answered <- err
			}()
			for _, args := range [][]string{{"MULTI"}, {"RPUSH", key, "x"}, {"EXEC"}, {"SORT", key + "none"}} {
				if _, err := other.do(args); err != nil {
					return err
				}
			}
			return <-answered
		})
	})
	work(2, "channel", func(channel string) error {
		return dialed(address, func(listener, other *redisPeer) error {
			if _, err := listener.do([]string{"SUBSCRIBE", channel}); err != nil {
				return err
			}
			for range 20 {
				if _, err := other.do([]string{"PUBLISH", channel, "m"}); err != nil {
					return err
				}
				if _, err := listener.decoder.Read(); err != nil {
					return err
				}
			}
			return nil
		})
	})
	work(2, "killed", func(key string) error {
		return dialed(address, func(victim, other *redisPeer) error {
			id, err := victim.do([]string{"CLIENT", "ID"})
			if err != nil {
				return err
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = victim.do([]string{"BLPOP", key, "0"}) // ends with the connection, or with UNBLOCK
				_, _ = victim.do([]string{"KEYS", "*"})
			}()
			if _, err := other.do([]string{"CLIENT", "UNBLOCK", fmt.Sprint(id.Int)}); err != nil {
				return err
			}
			if _, err := other.do([]string{"CLIENT", "KILL", "ID", fmt.Sprint(id.Int)}); err != nil {
				return err
			}
			<-ended
			return nil
		})
	})
	finished := make(chan struct{})
	go func() { workers.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(3 * time.Minute):
		t.Fatalf("somebody was not woken: %s", v.Info("clients"))
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(v.Info("clients"), "connected_clients:0\r\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("connections are left: %s", v.Info("clients"))
		}
	}
}

// dialed calls f with two connections.
func dialed(address string, f func(a, b *redisPeer) error) error {
	var peers [2]*redisPeer
	for i := range peers {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		peers[i] = &redisPeer{conn, resp.NewDecoder(conn)}
	}
	return f(peers[0], peers[1])
}
