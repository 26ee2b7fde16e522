package server_test

import (
	"bufio"
	"crypto/tls"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

const tooManyClients = "-ERR max number of clients reached\r\n"

// awaitPlace connects until there is a place for one more client: one that has left gives its own back a moment later.
func awaitPlace(t *testing.T, network, address string) *testClient {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c := dialBy(t, network, address)
		_, _ = c.Write([]byte("PING\r\n")) // one that is turned away may be reset; the read tells
		if line, _ := c.in.ReadString('\n'); line == "+PONG\r\n" {
			return c
		}
		_ = c.Close()
		if time.Now().After(deadline) {
			t.Fatal("no place has become free")
		}
	}
}

// TestMaxClientsOfAllListeners: maxclients is about all connections, wherever they came in: addresses, TLS, a unix
// socket, and listeners that CONFIG SET port has closed.
func TestMaxClientsOfAllListeners(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		ports := freePorts(t, 3)
		v := serveBound(t, server.Listen{Bind: "127.0.0.1 127.0.0.2", Port: ports[0], TLSPort: ports[2], Secure: secure}, &server.Options{Transport: transport, MaxClients: 5})
		socket := filepath.Join(t.TempDir(), "s")
		serveMore(t, v, "unix", socket)
		awaitNobody(t, v)
		first := awaitPlace(t, "tcp", "127.0.0.1:"+ports[0])
		awaitPlace(t, "tcp", "127.0.0.2:"+ports[0])
		awaitPlace(t, "unix", socket)
		encrypted, err := tls.Dial("tcp", "127.0.0.1:"+ports[2], a.client(""))
		if err != nil {
			t.Fatal(err)
		}
		defer encrypted.Close()
		greeted := &testClient{t, encrypted, bufio.NewReader(encrypted)}
		greeted.send("PING\r\n") // until then it would have one of the few places for those that are not known
		greeted.expect("+PONG\r\n")
		first.send("CONFIG SET port " + ports[1] + "\r\n")
		first.expect("+OK\r\n")
		moved := awaitPlace(t, "tcp", "127.0.0.1:"+ports[1])
		full := func() {
			t.Helper()
			for _, address := range []string{"127.0.0.1:" + ports[1], "127.0.0.2:" + ports[1], socket} {
				network := "tcp"
				if address == socket {
					network = "unix"
				}
				c := dialBy(t, network, address)
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // one that was let in would wait for ever
				c.expect(tooManyClients)
				c.expectEnd()
			}
			if _, _, err := pingTLS("127.0.0.1:"+ports[2], a.client("")); err == nil {
				t.Error("one of TLS was let in")
			}
		}
		full()
		_ = first.Close() // that of a listener that is closed
		awaitPlace(t, "unix", socket)
		full()
		_ = encrypted.Close()
		awaitPlace(t, "tcp", "127.0.0.2:"+ports[1])
		full()
		moved.send("CONFIG SET maxclients 6\r\n")
		moved.expect("+OK\r\n")
		awaitPlace(t, "tcp", "127.0.0.1:"+ports[1])
		full()
		moved.send("CONFIG SET maxclients 7\r\n")
		moved.expect("+OK\r\n")
		if _, reply, err := pingTLS("127.0.0.1:"+ports[2], a.client("")); err != nil || reply != "+PONG\r\n" {
			t.Errorf("TLS, with a place: %q, %v", reply, err)
		}
	})
}

// TestMaxClientsAmidARush: of many that come at once through two listeners exactly as many are let in as there are
// places, again and again.
func TestMaxClientsAmidARush(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const places = 7
		v, address := serve(t, &server.Options{Transport: transport, MaxClients: places})
		socket := filepath.Join(t.TempDir(), "s")
		serveMore(t, v, "unix", socket)
		for range 10 {
			var work sync.WaitGroup
			var admitted atomic.Int64
			clients := make([]*testClient, 40)
			for i := range clients {
				clients[i] = dialBy(t, []string{"tcp", "unix"}[i%2], []string{address, socket}[i%2])
				work.Go(func() {
					_, _ = clients[i].Write([]byte("PING\r\n"))
					if line, _ := clients[i].in.ReadString('\n'); line == "+PONG\r\n" {
						admitted.Add(1)
					}
				})
			}
			work.Wait()
			if got := admitted.Load(); got != places {
				t.Errorf("%d were let in, want %d", got, places)
			}
			for _, c := range clients {
				_ = c.Close()
			}
			awaitNobody(t, v)
		}
	})
}

// serveMore serves one more address until the test ends.
func serveMore(t *testing.T, v *server.Server, network, address string) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- v.Serve(t.Context(), ln) }()
	t.Cleanup(func() { // the context has ended by now
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
