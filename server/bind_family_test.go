package server_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// requireIPv6 skips a test where the machine does not speak it.
func requireIPv6(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("this machine does not speak IPv6: %v", err)
	}
	_ = ln.Close()
}

// freePortOfBoth is a port that nobody listens on, by either protocol.
func freePortOfBoth(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// reach is what is open for a bind: how many sockets, and by which protocols this machine is reached.
type reach struct {
	sockets int
	v4, v6  bool
}

func reached(b *server.Bound, port string) reach {
	return reach{len(b.Addrs()), !refused("127.0.0.1:" + port), !refused("[::1]:" + port)}
}

// binds has what each means.
var binds = map[string]reach{
	"0.0.0.0": {1, true, false}, "*": {1, true, false}, "::*": {1, false, true}, "::": {1, false, true}, "* -::*": {2, true, true}, "0.0.0.0 ::": {2, true, true},
	"0.0.0.0 ::1": {2, true, true}, "127.0.0.1 ::": {2, true, true}, "127.0.0.1": {1, true, false}, "::1": {1, false, true}, "127.0.0.1 -::1": {2, true, true},
	"127.0.0.1 -192.0.2.1": {1, true, false}, "127.0.0.1 -2001:db8::1": {1, true, false}, "* 0.0.0.0": {1, true, false}, "localhost": {1, true, false},
}

// TestBindKeepsTheProtocolsApart: an address of IPv4 takes no connection of IPv6, and the other way round, as in Redis: who
// binds and filters one of them is not reached by the other. It holds for plain text and TLS.
func TestBindKeepsTheProtocolsApart(t *testing.T) {
	requireIPv6(t)
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	for bind, want := range binds {
		for how, listen := range map[string]server.Listen{
			"plain": {Bind: bind, Port: freePortOfBoth(t)}, "TLS": {Bind: bind, Port: "0", TLSPort: freePortOfBoth(t), Secure: secure},
		} {
			b, err := listen.Open(t.Context())
			if err != nil {
				t.Errorf("bind %s, %s: %v", bind, how, err)
				continue
			}
			if got := reached(b, max(listen.Port, listen.TLSPort)); got != want {
				t.Errorf("bind %s, %s: %v, want %v", bind, how, got, want)
			}
			_ = b.Close()
		}
	}
}

// TestMoveKeepsTheProtocolsApart: so does CONFIG SET bind, whatever was open before.
func TestMoveKeepsTheProtocolsApart(t *testing.T) {
	requireIPv6(t)
	for bind, want := range binds {
		port, other := freePortOfBoth(t), freePortOfBoth(t)
		b, err := (&server.Listen{Bind: "127.0.0.2", Port: other}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := newServer(t, openStore(t), &server.Options{RequirePass: "p4ss", AllowPlainText: true})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- v.ServeBound(ctx, b) }()
		first := dial(t, "127.0.0.2:"+other)
		first.send("PING\r\n")
		_ = first.line() // it serves
		s := v.NewSession()
		do(s, "AUTH", "p4ss")
		for _, from := range []string{"127.0.0.2", "0.0.0.0", "* -::*", "::"} {
			for _, to := range []string{from, bind} {
				if got := do(s, "CONFIG", "SET", "bind", to, "port", port); got != "+OK\r\n" {
					t.Errorf("CONFIG SET bind %s: %q", to, got)
				}
			}
			if got := reached(b, port); got != want {
				t.Errorf("bind %s, after %s: %v, want %v", bind, from, got, want)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestAddrKeepsTheProtocolsApart: without a host it is all addresses of both, on one port.
func TestAddrKeepsTheProtocolsApart(t *testing.T) {
	requireIPv6(t)
	for addr, want := range map[string]string{
		":0": "0.0.0.0 ::", "*:0": "0.0.0.0 ::", "0.0.0.0:0": "0.0.0.0", "[::]:0": "::", "[::1]:0": "::1", "localhost:0": "127.0.0.1",
	} {
		b, err := (&server.Listen{Addr: addr}).Open(t.Context())
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		var hosts []string
		ports := map[string]bool{}
		for _, at := range b.Addrs() {
			host, port, _ := net.SplitHostPort(at.String())
			hosts, ports[port] = append(hosts, host), true
		}
		if strings.Join(hosts, " ") != want || len(ports) != 1 {
			t.Errorf("%s: listens on %v, ports %v", addr, hosts, ports)
		}
		_ = b.Close()
	}
}
