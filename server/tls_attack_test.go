package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// helloOf returns the first bytes that a client of TLS sends.
func helloOf(t *testing.T, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	var handshake sync.WaitGroup
	handshake.Go(func() { _ = tls.Client(theirs, config).Handshake() }) // nobody answers
	hello := make([]byte, 16<<10)
	n, err := ours.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	handshake.Wait()
	return hello[:n]
}

// awaitNobody waits until all connections have ended.
func awaitNobody(t *testing.T, v *server.Server) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(v.Info("clients"), "connected_clients:0\r\n"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("connections are left: %s", v.Info("clients"))
		}
	}
}

// TestTLSAttacks: handshakes that end in the middle, trickle, or are no handshakes, and records that do not verify,
// cost the attacker's connection and nothing else: the places are free again, and others are served meanwhile.
func TestTLSAttacks(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	v := newServer(t, openStore(t), &server.Options{MaxClients: 1000})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Serve(ctx, secure.Listener(ln)) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	connect := func() *net.TCPConn {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		return conn.(*net.TCPConn)
	}
	// expectServed says that others are served.
	expectServed := func(after string) {
		t.Helper()
		if _, reply, err := pingTLS(address, a.client("")); err != nil || reply != "+PONG\r\n" {
			t.Errorf("after %s: %q, %v", after, reply, err)
		}
	}
	hello := helloOf(t, a.client(""))
	expectServed("nothing")

	for cut := 0; cut < len(hello); cut += max(len(hello)/40, 1) {
		for how, leave := range map[string]func(*net.TCPConn) error{
			"close": (*net.TCPConn).Close,
			"reset": func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		} {
			c := connect()
			if _, err := c.Write(hello[:cut]); err != nil {
				t.Fatal(err)
			}
			if err := leave(c); err != nil {
				t.Errorf("%s after %d bytes: %v", how, cut, err)
			}
		}
	}
	expectServed("half handshakes")
	awaitNobody(t, v)

	for name, text := range map[string]string{
		"RESP": "*1\r\n$4\r\nPING\r\n", "HTTP": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "zeros": strings.Repeat("\x00", 100), "an alert": "\x15\x03\x03\x00\x02\x02\x28",
		"data before the handshake": "\x17\x03\x03\x00\x04abcd", "a record of 64 KiB": "\x16\x03\x01\xff\xff" + strings.Repeat("x", 1000),
		"SSL 2": "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + strings.Repeat("x", 40), "two hellos": string(hello) + string(hello),
	} {
		c := connect()
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = c.CloseWrite()                                                                                           // the server may have ended it already
		if got, _ := io.ReadAll(c); strings.Contains(string(got), "PONG") || strings.Contains(string(got), "-ERR") { // a reset is an end too
			t.Errorf("%s is answered: %q", name, got)
		}
	}
	expectServed("what is no handshake")

	slow := connect()
	trickled := make(chan struct{})
	go func() { // one that never stops, if it is not stopped
		defer close(trickled)
		for _, b := range hello[:len(hello)-1] {
			if _, err := slow.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	if got, err := io.ReadAll(slow); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a handshake of five bytes a second goes on: %q, %v", got, err)
	}
	_ = slow.Close()
	<-trickled
	expectServed("a handshake that trickles")

	inner := connect()
	broken := tls.Client(inner, a.client(""))
	if _, err := broken.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 7)
	if _, err := io.ReadFull(broken, reply); err != nil || string(reply) != "+PONG\r\n" {
		t.Fatalf("%q, %v", reply, err)
	}
	if _, err := inner.Write([]byte("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(inner); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a record that does not verify does not end the connection: %v", err)
	}
	expectServed("a record that does not verify")
	awaitNobody(t, v)
}

// TestNoRenegotiation: a client of TLS 1.2 that begins a second handshake is refused.
func TestNoRenegotiation(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl to renegotiate with")
	}
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	address := serveTLS(t, nil, secure)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, openssl, "s_client", "-tls1_2", "-connect", address)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out lockedText
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "PING\n"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), "+PONG"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no reply: %s", out.String())
		}
	}
	_, _ = io.WriteString(in, "R\n")    // renegotiate; the connection may end at once
	_, _ = io.WriteString(in, "PING\n") // within the connection as it is afterwards
	err = cmd.Wait()
	if text := out.String(); ctx.Err() != nil || !strings.Contains(text, "RENEGOTIATING") || strings.Count(text, "+PONG") != 1 {
		t.Errorf("a second handshake: %v, %s", err, text)
	}
	if _, reply, err := pingTLS(address, a.client("")); err != nil || reply != "+PONG\r\n" {
		t.Errorf("afterwards: %q, %v", reply, err)
	}
}

// lockedText is what a process has printed so far.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
