package server_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// TestShutdownEndsWithTheLastReply: when the last reply has left, the server has ended: it does not wait for the grace
// period.
func TestShutdownEndsWithTheLastReply(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		for name, test := range map[string]struct {
			send   string
			before func(c *testClient) // before the server is to end
			after  func(c *testClient) // meanwhile
		}{
			"a command that takes long": {
				send: "SET begun 1\r\nDEBUG SLEEP 0.2\r\n",
				before: func(c *testClient) {
					other := dial(c.t, c.RemoteAddr().String())
					for reply := ""; reply != ":1\r\n"; {
						other.send("EXISTS begun\r\n")
						reply, _ = other.in.ReadString('\n')
					}
				},
				after: func(c *testClient) { c.expect("+OK\r\n+OK\r\n") },
			},
			"a reply that is taken late": {
				send:   "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$61440\r\n" + strings.Repeat("x", 60<<10) + "\r\n" + strings.Repeat("GET k\r\n", 200),
				before: func(c *testClient) { c.expect("+OK\r\n$61440\r\n") },
				after: func(c *testClient) {
					time.Sleep(50 * time.Millisecond)
					if n, err := io.Copy(io.Discard, c.in); n < 60<<10 || err != nil {
						c.t.Errorf("%d bytes, %v", n, err)
					}
				},
			},
		} {
			t.Run(name, func(t *testing.T) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				store := openStore(t)
				go func() {
					done <- server.Serve(ctx, ln, store, &server.Options{Transport: transport, Debug: true, ShutdownGrace: time.Hour})
				}()
				c := dial(t, ln.Addr().String())
				c.send(test.send)
				test.before(c)
				stop()
				test.after(c)
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Fatal("the server goes on after its last reply has left")
				}
			})
		}
	})
}

// TestShutdownWithoutWhatGoesOn: a command that asks nobody whether to go on keeps the server from ending no longer than
// its grace period and what follows it, and the store is closed when the command has ended: what it does then is refused,
// or is part of the store.
func TestShutdownWithoutWhatGoesOn(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		store := openStore(t)
		inside, goOn := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(goOn) })
		defer store.OnChanges(func([]db.Change, db.Ticket) {
			close(inside)
			<-goOn // with the key locked
		})()
		defer release()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		v := newServer(t, store, &server.Options{Transport: transport, ShutdownGrace: 100 * time.Millisecond, Debug: true})
		go func() { done <- v.Serve(ctx, ln) }()
		c := dial(t, ln.Addr().String())
		c.send(requestOf("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "key", "value"))
		<-inside
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the server waits for a command that cannot be interrupted")
		}
		closed := make(chan error, 1)
		go func() { closed <- store.Close() }()
		select {
		case err := <-closed:
			t.Fatal("the store is closed within a transaction:", err)
		case <-time.After(50 * time.Millisecond):
		}
		release()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}
