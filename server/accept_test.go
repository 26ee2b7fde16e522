package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// failingListener returns an error, another one each time, before each connection.
type failingListener struct {
	net.Listener
	errno syscall.Errno
	turn  bool
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.turn = !l.turn; l.turn {
		l.errno++
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.errno)}
	}
	return l.Listener.Accept()
}

// TestAcceptFails: errors of accept end no server and no connection, whatever the listener is.
func TestAcceptFails(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		for _, network := range []string{"tcp", "unix", "tls"} {
			t.Run(network, func(t *testing.T) {
				under, address := "tcp", "127.0.0.1:0"
				if network == "unix" {
					under, address = network, filepath.Join(t.TempDir(), "s")
				}
				ln, err := net.Listen(under, address)
				if err != nil {
					t.Fatal(err)
				}
				address = ln.Addr().String()
				ln = &failingListener{Listener: ln}
				if network == "tls" {
					ln = secure.Listener(ln)
				}
				v := newServer(t, openStore(t), &server.Options{Transport: transport})
				ctx, stop := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- v.Serve(ctx, ln) }()
				var clients []*testClient
				for range 20 {
					nc, err := net.Dial(under, address)
					if err != nil {
						t.Fatal(err)
					}
					if network == "tls" {
						nc = tls.Client(nc, a.client(""))
					}
					defer nc.Close()
					clients = append(clients, &testClient{t, nc, bufio.NewReader(nc)})
				}
				for _, c := range clients {
					c.send("PING\r\n")
					c.expect("+PONG\r\n")
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
	})
}
