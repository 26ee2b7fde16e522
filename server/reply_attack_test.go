package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/server"
)

// TestLongValuesTakeTheirBudget: clients that ask for values of 64 MiB again and again, read slowly or leave in the
// middle of one, take no more memory than maxmemory-clients gives long replies, and one of them, that is alone, its
// value twice; whichever command reads the values. Nothing of them is left afterwards.
func TestLongValuesTakeTheirBudget(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS"}[encrypted], func(t *testing.T) {
			requests := []string{"GET s", "HGETALL h", "DUMP s", "GETRANGE s 0 -1", "MGET s s", "HGET h f", "HMGET h f f", "LRANGE l 0 -1", "LINDEX l 0"}
			eachTransport(t, func(t *testing.T, transport server.Transport) {
				attackWithLongValues(t, transport, encrypted, budget.Some(t, requests, 2), 4, 2)
			})
		})
	}
}

// TestBuiltRepliesTakeTheirBudget: the same of what is built before it is a reply: the payload of a stream, and what
// scripts have, as replies of their commands, as values, and as a reply.
func TestBuiltRepliesTakeTheirBudget(t *testing.T) {
	requests := []string{
		"DUMP x",
		`EVAL "return redis.call('GET', 's')" 1 s`,
		`EVAL "local t = {} for i = 1, 64 do t[i] = redis.call('LINDEX', 'parts', i - 1) end return #t" 1 parts`,
		`EVAL "local s = redis.call('GET', 's') return s + nosuch.field" 1 s`, // an error
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		attackWithLongValues(t, transport, false, budget.Some(t, requests, 1), 1, 3)
	})
}

// attackWithLongValues is both of them. Each client repeats its request. One that is alone may take a value so many
// times.
func attackWithLongValues(t *testing.T, transport server.Transport, encrypted bool, requests []string, repeats, times int) {
	const clients, length, sum = 12, 64 * mib, 128 * mib
	alone := int64(times) * length * 9 / 8 // a value counts as up to an eighth more
	v := newServer(t, openStore(t), &server.Options{Transport: transport, ClientMemory: 2 * sum})
	v.SilentAfter(200 * time.Millisecond)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, connect := ln.Addr().String(), func(address string) (net.Conn, error) { return net.Dial("tcp", address) }
	if encrypted {
		a := newAuthority(t)
		certFile, keyFile := a.issue("server", time.Hour)
		secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
		if err != nil {
			t.Fatal(err)
		}
		ln = secure.Listener(ln)
		connect = func(address string) (net.Conn, error) { return tls.Dial("tcp", address, a.client("")) }
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Serve(ctx, ln) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	dial := func() *testClient {
		t.Helper()
		conn, err := connect(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return &testClient{t, conn, bufio.NewReader(conn)}
	}
	before := sockets()
	c := dial()
	value := strings.Repeat("0123456789abcdef", length/16)
	for _, write := range []string{"*3\r\n$3\r\nSET\r\n$1\r\ns\r\n", "*4\r\n$4\r\nHSET\r\n$1\r\nh\r\n$1\r\nf\r\n", "*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n"} {
		c.send(fmt.Sprintf("%s$%d\r\n%s\r\n", write, length, value))
		if got := c.line(); got != "+OK" && got != ":1" {
			t.Fatal(got)
		}
	}
	for range length / mib {
		for _, write := range []string{"*5\r\n$4\r\nXADD\r\n$1\r\nx\r\n$1\r\n*\r\n$1\r\nf\r\n", "*3\r\n$5\r\nRPUSH\r\n$5\r\nparts\r\n"} {
			c.send(fmt.Sprintf("%s$%d\r\n%s\r\n", write, mib, value[:mib]))
			if got := c.line(); got[0] == '$' {
				c.line()
			}
		}
	}
	value = ""
	for _, request := range requests {
		heap := liveHeap()
		var most, taken atomic.Int64
		watched, end := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			for {
				taken.Store(max(taken.Load(), v.RepliesTaken()))
				most.Store(max(most.Load(), int64(liveHeap())-int64(heap)))
				select {
				case <-end:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
		var attackers sync.WaitGroup
		for i := range clients {
			c := dial()
			attackers.Go(func() {
				defer func() { _ = c.Close() }()
				if _, err := io.WriteString(c.Conn, strings.Repeat(request+"\r\n", repeats)); err != nil {
					return
				}
				_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
				for n := 0; n < (i+1)*mib; { // slowly
					m, err := c.Conn.Read(make([]byte, 64<<10))
					if err != nil {
						return
					}
					n += m
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		attackers.Wait()
		awaitClients(t, v, 1)
		close(end)
		<-watched
		t.Logf("%s: the live heap has grown by %d MiB, of which long replies took %d", request, most.Load()/mib, taken.Load()/mib)
		if taken.Load() < length/2 {
			t.Errorf("%s: long replies took %d MiB", request, taken.Load()/mib)
		}
		if taken.Load() > sum+alone {
			t.Errorf("%s: long replies took %d MiB of %d", request, taken.Load()/mib, sum/mib)
		}
		if most.Load() > sum+alone+clients*5*mib/4+32*mib {
			t.Errorf("%s: the live heap has grown by %d MiB with a sum of %d", request, most.Load()/mib, sum/mib)
		}
	}
	_ = c.Close()
	awaitNobody(t, v)
	if taken := v.RepliesTaken(); taken != 0 {
		t.Errorf("%d bytes are taken when all have left", taken)
	}
	if left := sockets(); left != before {
		t.Errorf("%d sockets are open when all have left, %d before", left, before)
	}
}

// TestLongestReplies: clients that ask at once for replies that take almost all the room there is get them, one after
// the other.
func TestLongestReplies(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const clients, length, times = 4, 8 * mib, 8
		const reply = times * length
		_, address := serve(t, &server.Options{Transport: transport, ClientMemory: 2 * (reply + length/2)})
		c := dial(t, address)
		c.send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\ns\r\n$%d\r\n%s\r\n", length, strings.Repeat("x", length)))
		c.expect("+OK\r\n")
		var readers sync.WaitGroup
		for range clients {
			c := dial(t, address)
			readers.Go(func() {
				if _, err := io.WriteString(c.Conn, "MGET"+strings.Repeat(" s", times)+"\r\n"); err != nil {
					t.Error(err)
					return
				}
				_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				first, err := c.in.ReadString('\n')
				if err != nil || first != fmt.Sprintf("*%d\r\n", times) {
					t.Errorf("%q, %v", first, err)
					return
				}
				if n, err := io.CopyN(io.Discard, c.in, reply); err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
			})
		}
		readers.Wait()
	})
}

// sockets is how many the process has open; 0 where the system does not say.
func sockets() (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if name, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(name, "socket:") {
			n++
		}
	}
	return n
}
