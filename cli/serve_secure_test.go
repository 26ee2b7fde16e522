//go:build unix

package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// certificate makes a certificate that signs itself, and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"there"}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// TestServeRefusesExposure: an address that other machines can reach is judged before anything is opened or said.
func TestServeRefusesExposure(t *testing.T) {
	certFile, keyFile := certificate(t)
	secure := []string{"--tls-cert-file", certFile, "--tls-key-file", keyFile}
	for _, tt := range []struct {
		password, stderr string
		flags            []string
	}{
		{"", "has no password", []string{"--addr", "0.0.0.0:0"}},
		{"", "has no password", []string{"--addr", ":0", "--protected-mode", "no"}},
		{"", "has no password", append([]string{"--port", "0", "--bind", "0.0.0.0", "--tls-port", "1"}, secure...)},
		{"secret", "without TLS", []string{"--addr", "[::]:0"}},
		{"secret", "without TLS", append([]string{"--bind", "127.0.0.1 0.0.0.0", "--tls-port", "1"}, secure...)},
		{"secret", "tls-port", secure},
		{"secret", "a certificate and its key", []string{"--tls-port", "1"}},
		{"secret", "no such file", []string{"--tls-port", "1", "--tls-cert-file", "nowhere", "--tls-key-file", "nowhere"}},
		{"", "--protected-mode: ", []string{"--protected-mode", "perhaps"}},
		{"", "--unixsocketperm: ", []string{"--unixsocketperm", "999"}},
		{"", "--tls-auth-clients: ", []string{"--tls-auth-clients", "perhaps"}},
	} {
		t.Setenv("STAVE_REQUIREPASS", tt.password)
		dir := filepath.Join(t.TempDir(), "store")
		want(t, "", tt.stderr, 2, "", append([]string{"serve", "--dir", dir}, tt.flags...)...)
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%q: the store was opened", tt.flags)
		}
	}
}

// TestServeOverTLS: a password and TLS from end to end, with a certificate of the client's and a reload.
func TestServeOverTLS(t *testing.T) {
	certFile, keyFile := certificate(t)
	t.Setenv("STAVE_REQUIREPASS", "secret")
	t.Setenv("STAVE_PASSWORD", "")
	t.Setenv("REDISCLI_AUTH", "")
	tlsAddr := freePort(t)
	_, port, err := net.SplitHostPort(tlsAddr)
	if err != nil {
		t.Fatal(err)
	}
	_, stop := serve(t, t.TempDir(), "127.0.0.1:0", "--tls-port", port, "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile)
	exec := []string{"exec", "--addr", tlsAddr, "--tls", "--cacert", certFile, "--cert", certFile, "--key", keyFile}
	want(t, "", "NOAUTH", 1, "", append(exec, "PING")...)
	t.Setenv("REDISCLI_AUTH", "wrong")
	want(t, "", "WRONGPASS", 3, "", append(exec, "PING")...)
	t.Setenv("STAVE_PASSWORD", "secret")
	want(t, "PONG\n", "", 0, "", append(exec, "PING")...)
	want(t, "PONG\n", "", 0, "", append(exec, "--sni", "there", "PING")...)
	want(t, "", "TLS", 3, "", append(exec, "--sni", "elsewhere", "PING")...)
	want(t, "", "TLS", 3, "", "exec", "--addr", tlsAddr, "--tls", "PING")
	want(t, "", "certificate required", 3, "", "exec", "--addr", tlsAddr, "--tls", "--cacert", certFile, "PING")
	want(t, "", "need --tls", 2, "", "exec", "--addr", tlsAddr, "--cacert", certFile, "PING")
	signal(t, syscall.SIGHUP)
	want(t, "PONG\n", "", 0, "", append(exec, "PING")...)
	stop()
}

// TestServeWatchesCertificates: a certificate that is replaced, as a program that renews it does, is used by the next
// connection.
func TestServeWatchesCertificates(t *testing.T) {
	certFile, keyFile := certificate(t)
	addr := freePort(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	_, stop := serve(t, t.TempDir(), "127.0.0.1:0", "--tls-port", port, "--tls-cert-file", certFile, "--tls-key-file", keyFile)
	defer stop()
	served := func() []byte {
		t.Helper()
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Raw
	}
	first := served()
	newCert, newKey := certificate(t)
	for from, to := range map[string]string{newCert: certFile, newKey: keyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); bytes.Equal(served(), first); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the old certificate is served")
		}
	}
}

// freePort returns an address that nobody listens on. Systems choose ports from 32768 on for those who do not care, so
// that no other process takes this one meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	for i := range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+(os.Getpid()*97+i)%20_000))
		if err != nil {
			continue // it is taken
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		return ln.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}

// TestServeUsers: users come from a file.
func TestServeUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("user default off\nuser app on >a1 ~app:* +@all -@dangerous\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, stop := serve(t, t.TempDir(), filepath.Join(t.TempDir(), "s"), "--aclfile", file)
	defer stop()
	t.Setenv("STAVE_PASSWORD", "a1")
	want(t, "OK\n", "", 0, "", "exec", "--addr", addr, "--user", "app", "SET", "app:1", "x")
	want(t, "", "NOPERM", 1, "", "exec", "--addr", addr, "--user", "app", "SET", "other", "x")
	want(t, "", "NOPERM", 1, "", "exec", "--addr", addr, "--user", "app", "FLUSHALL")
	want(t, "", "WRONGPASS", 3, "", "exec", "--addr", addr, "PING")
}
