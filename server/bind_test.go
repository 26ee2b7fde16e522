package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// freePorts are ports that nobody listens on: the kernel chooses them, and all are held until the last is chosen.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		ln, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

// serveBound serves a store by ServeBound until the test ends.
func serveBound(t *testing.T, l server.Listen, o *server.Options) *server.Server {
	t.Helper()
	b, err := l.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.ServeBound(ctx, b) }()
	first := dial(t, b.Addrs()[0].String())
	first.send("PING\r\n")
	first.expect("+PONG\r\n")
	_ = first.Close()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return v
}

// refused says whether nobody listens.
func refused(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

// TestMove: CONFIG SET bind and port open the new addresses and close the old ones; connections go on; what fails
// changes nothing; the file has it after CONFIG REWRITE, and moves the server when it is read again.
func TestMove(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		ports := freePorts(t, 4)
		p1, p2, p3, taken := ports[0], ports[1], ports[2], ports[3]
		c, path, _, err := load(t, "port "+p1+"\n")
		if err != nil {
			t.Fatal(err)
		}
		v := serveBound(t, server.Listen{Bind: c.Get("bind"), Port: p1}, &server.Options{Transport: transport, Config: c})
		a := dial(t, "127.0.0.1:"+p1)
		expect := func(command, want string) {
			t.Helper()
			a.send(command + "\r\n")
			if got := a.line(); got != want {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
		}
		at := func(bind, port, where string, not ...string) {
			t.Helper()
			for name, want := range map[string]string{"bind": bind, "port": port} {
				if got := do(v.NewSession(), "CONFIG", "GET", name); !strings.HasSuffix(got, "\r\n"+want+"\r\n") {
					t.Errorf("%s is %q, want %s", name, got, want)
				}
			}
			if where != "" {
				b := dial(t, where)
				b.send("PING\r\n")
				b.expect("+PONG\r\n")
				_ = b.Close()
			}
			for _, old := range not {
				if !refused(old) {
					t.Errorf("%s is open", old)
				}
			}
		}
		expect("PING", "+PONG")
		at("127.0.0.1", p1, "127.0.0.1:"+p1)
		expect("CONFIG SET port "+p2, "+OK")
		at("127.0.0.1", p2, "127.0.0.1:"+p2, "127.0.0.1:"+p1)
		expect("CONFIG SET port "+p2, "+OK")

		ln, err := net.Listen("tcp", "127.0.0.1:"+taken)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		expect("CONFIG SET port "+taken, "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs.")
		expect("CONFIG SET port 65536", "-ERR CONFIG SET failed (possibly related to argument 'port') - argument must be between 0 and 65535 inclusive")
		expect(`CONFIG SET timeout 77 bind "127.0.0.2 192.0.2.1"`, "-ERR CONFIG SET failed (possibly related to argument 'bind') - 192.0.2.1:"+p2+": "+server.ErrNoPassword.Error())
		expect(`CONFIG SET timeout 77 bind "127.0.0.2 nohost.invalid"`, "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.")
		at("127.0.0.1", p2, "127.0.0.1:"+p2, "127.0.0.2:"+p2)
		expect("CONFIG GET timeout", "*2")
		a.expect("$7\r\ntimeout\r\n$1\r\n0\r\n")

		expect(`CONFIG SET bind "127.0.0.2  -::1 -127.0.0.3" port `+p3, "+OK")
		at("127.0.0.2 -::1 -127.0.0.3", p3, "127.0.0.3:"+p3, "127.0.0.1:"+p2, "127.0.0.1:"+p3)
		expect("CONFIG SET port 0", "+OK")
		at("127.0.0.2 -::1 -127.0.0.3", "0", "", "127.0.0.2:"+p3)
		expect("CONFIG SET port "+p3+" bind 127.0.0.1", "+OK")
		expect("CONFIG REWRITE", "+OK")
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "port "+p3+"\n") {
			t.Errorf("%v\n%s", err, text)
		}
		if err := os.WriteFile(path, []byte("port "+p2+"\nbind 127.0.0.2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := v.Reload(); err != nil {
			t.Error(err)
		}
		at("127.0.0.2", p2, "127.0.0.2:"+p2, "127.0.0.1:"+p3)
		if err := os.WriteFile(path, []byte("port "+p3+"\nbind 0.0.0.0\ntimeout 6\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := v.Reload(); !errors.Is(err, server.ErrNoPassword) {
			t.Errorf("reload: %v", err)
		}
		at("127.0.0.2", p2, "127.0.0.2:"+p2, "127.0.0.1:"+p3)
		expect("CONFIG GET timeout", "*2")
		a.expect("$7\r\ntimeout\r\n$1\r\n6\r\n")

		// What could not be opened is tried again when the file is read again, and is not what the settings say.
		if err := os.WriteFile(path, []byte("port "+taken+"\nbind 127.0.0.1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := v.Reload(); err == nil {
			t.Error("a port that is taken is no error")
		}
		at("127.0.0.2", p2, "127.0.0.2:"+p2)
		if bind, port := c.Get("bind"), c.Get("port"); bind != "127.0.0.2" || port != p2 {
			t.Errorf("the settings say %s and %s", bind, port)
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		if err := v.Reload(); err != nil {
			t.Error(err)
		}
		at("127.0.0.1", taken, "127.0.0.1:"+taken, "127.0.0.2:"+p2)
	})
}

// TestMoveToAllAddresses: an address that is part of what was open, on the same port, replaces it, and if it cannot be,
// what was open is open again. Public ones need a password and TLS.
func TestMoveToAllAddresses(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		port := freePorts(t, 1)[0]
		v := serveBound(t, server.Listen{Bind: "127.0.0.1", Port: port}, &server.Options{Transport: transport, AllowPlainText: true})
		s := v.NewSession()
		const failed = "-ERR CONFIG SET failed (possibly related to argument 'bind') - "
		step := func(want string, words ...string) {
			t.Helper()
			if got := do(s, append([]string{"CONFIG", "SET"}, words...)...); got != want+"\r\n" {
				t.Errorf("%q: %q, want %q", words, got, want)
			}
			if refused("127.0.0.1:" + port) {
				t.Errorf("after %q nobody listens", words)
			}
		}
		step(failed+"0.0.0.0:"+port+": "+server.ErrNoPassword.Error(), "bind", "*")
		step("+OK", "requirepass", "p4ss")
		step("+OK", "bind", "*")
		step("+OK", "bind", "127.0.0.1 127.0.0.2")
		step("+OK", "bind", "0.0.0.0")
		step(failed+"Failed to bind to specified addresses.", "bind", "127.0.0.1 192.0.2.1")
		step("+OK", "bind", "127.0.0.1")
	})
}

// TestMoveLeavesNothing: moving beside clients that come and go ends with as much as before, and TLS moves along.
func TestMoveLeavesNothing(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		ports := freePorts(t, 3)
		v := serveBound(t, server.Listen{Bind: "127.0.0.1", Port: ports[0], TLSPort: ports[2], Secure: secure}, &server.Options{Transport: transport})
		old := dial(t, "127.0.0.1:"+ports[0])
		old.send("PING\r\n")
		old.expect("+PONG\r\n")
		goroutines, descriptors, _ := usage(t)
		for i := range 20 {
			port := ports[(i+1)%2]
			if got := do(v.NewSession(), "CONFIG", "SET", "port", port, "bind", []string{"127.0.0.2", "127.0.0.1"}[i%2]); got != "+OK\r\n" {
				t.Fatal(got)
			}
			c := dial(t, []string{"127.0.0.2:", "127.0.0.1:"}[i%2]+port)
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
			if i == 4 {
				_, reply, err := pingTLS("127.0.0.2:"+ports[2], a.client(""))
				if err != nil || reply != "+PONG\r\n" {
					t.Errorf("TLS: %q, %v", reply, err)
				}
			}
			_ = c.Close()
		}
		old.send("PING\r\n")
		old.expect("+PONG\r\n")
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			g, d, _ := usage(t)
			if g <= goroutines+2 && d <= descriptors+2 { // the transport of the first listener serves its connection
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("goroutines %d, before %d; descriptors %d, %d", g, goroutines, d, descriptors)
			}
		}
	})
}

// TestMoveTLS: tls-port moves as port does, by CONFIG SET and by a reload, also where there is no plain text; what
// fails changes nothing, and without a certificate there is none.
func TestMoveTLS(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		ports := freePorts(t, 4)
		p1, p2, p3, plain := ports[0], ports[1], ports[2], ports[3]
		c, path, _, err := load(t, "port "+plain+"\ntls-port "+p1+"\n")
		if err != nil {
			t.Fatal(err)
		}
		v := serveBound(t, server.Listen{Bind: "127.0.0.1", Port: plain, TLSPort: p1, Secure: secure}, &server.Options{Transport: transport, Config: c})
		s := v.NewSession()
		set := func(want string, words ...string) {
			t.Helper()
			if got := do(s, append([]string{"CONFIG", "SET"}, words...)...); got != want+"\r\n" {
				t.Errorf("%q: %q, want %q", words, got, want)
			}
		}
		at := func(port, tlsPort string, not ...string) {
			t.Helper()
			for name, want := range map[string]string{"port": port, "tls-port": tlsPort} {
				if got := do(s, "CONFIG", "GET", name); !strings.HasSuffix(got, "\r\n"+want+"\r\n") {
					t.Errorf("%s is %q, want %s", name, got, want)
				}
			}
			if tlsPort != "0" {
				if _, reply, err := pingTLS("127.0.0.1:"+tlsPort, a.client("")); err != nil || reply != "+PONG\r\n" {
					t.Errorf("TLS on %s: %q, %v", tlsPort, reply, err)
				}
			}
			for _, old := range not {
				if !refused("127.0.0.1:" + old) {
					t.Errorf("%s is open", old)
				}
			}
		}
		at(plain, p1)
		old, err := tls.Dial("tcp", "127.0.0.1:"+p1, a.client(""))
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		set("+OK", "tls-port", p2)
		at(plain, p2, p1)
		const failed = "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - "
		set(failed+"Unable to listen on this port. Check server logs.", "tls-port", plain)
		at(plain, p2)
		set("+OK", "port", "0", "tls-port", p3)
		at("0", p3, plain, p2)
		set("+OK", "tls-port", "0", "port", plain)
		at(plain, "0", p3)
		if err := os.WriteFile(path, []byte("port 0\ntls-port "+p2+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := v.Reload(); err != nil {
			t.Error(err)
		}
		at("0", p2, plain)
		client := &testClient{t, old, bufio.NewReader(old)}
		client.send("PING\r\n")
		client.expect("+PONG\r\n")

		bare := serveBound(t, server.Listen{Bind: "127.0.0.1", Port: plain, TLSPort: "0"}, &server.Options{Transport: transport})
		if got := do(bare.NewSession(), "CONFIG", "SET", "tls-port", p1); got != failed+"Unable to update TLS configuration. Check server logs.\r\n" {
			t.Errorf("without a certificate: %q", got)
		}
		if !refused("127.0.0.1:" + p1) {
			t.Error("without a certificate: it is open")
		}
	})
}
