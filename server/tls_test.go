package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// authority issues certificates for a test.
type authority struct {
	t           *testing.T
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority makes a CA, with its certificate in ca.pem.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca", time.Hour)
	return a
}

// issue makes NAME.pem and NAME.key, valid for a time.
func (a *authority) issue(name string, valid time.Duration) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: a.certificate == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, parentKey := a.certificate, a.key
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.certificate == nil {
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
		a.key = key
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// client is the configuration of a client, with a certificate of that name if it is not empty.
func (a *authority) client(name string) *tls.Config {
	a.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if name != "" {
		certFile, keyFile := a.issue(name, time.Hour)
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// serveTLS serves a store with TLS.
func serveTLS(t *testing.T, o *server.Options, secure *server.TLS) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Serve(ctx, secure.Listener(ln)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// pingTLS connects and sends PING.
func pingTLS(address string, config *tls.Config) (state tls.ConnectionState, reply string, err error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", address, config)
	if err != nil {
		return state, "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return state, "", err
	}
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return state, "", err
	}
	reply, err = bufio.NewReader(conn).ReadString('\n')
	return conn.ConnectionState(), reply, err
}

// TestTLS: versions, certificates of clients, and what happens to those who have none.
func TestTLS(t *testing.T) {
	for _, transport := range transports() {
		a := newAuthority(t)
		certFile, keyFile := a.issue("server", time.Hour)
		other := newAuthority(t)
		expired := a.client("")
		old, oldKey := a.issue("old", -time.Hour)
		pair, err := tls.LoadX509KeyPair(old, oldKey)
		if err != nil {
			t.Fatal(err)
		}
		expired.Certificates = []tls.Certificate{pair}
		stranger := other.client("stranger")
		stranger.RootCAs = a.client("").RootCAs
		only := func(version uint16) *tls.Config {
			c := a.client("someone")
			c.MinVersion, c.MaxVersion = version, version
			return c
		}
		ca := filepath.Join(a.dir, "ca.pem")
		for _, tt := range []struct {
			name    string
			options server.TLSOptions
			client  *tls.Config
			works   bool
		}{
			{"no certificate is asked for", server.TLSOptions{}, a.client(""), true},
			{"an unknown one is not looked at", server.TLSOptions{}, stranger, true},
			{"TLS 1.2", server.TLSOptions{}, only(tls.VersionTLS12), true},
			{"TLS 1.3", server.TLSOptions{}, only(tls.VersionTLS13), true},
			{"TLS 1.1", server.TLSOptions{}, only(tls.VersionTLS11), false},
			{"TLS 1.2 where 1.3 is required", server.TLSOptions{Protocols: "TLSv1.3"}, only(tls.VersionTLS12), false},
			{"TLS 1.3 where 1.2 is the last", server.TLSOptions{Protocols: "TLSv1.2"}, only(tls.VersionTLS13), false},
			{"required and there", server.TLSOptions{CACertFile: ca}, a.client("someone"), true},
			{"required and missing", server.TLSOptions{CACertFile: ca}, a.client(""), false},
			{"required and of another authority", server.TLSOptions{CACertFile: ca}, stranger, false},
			{"required and expired", server.TLSOptions{CACertFile: ca}, expired, false},
			{"optional and missing", server.TLSOptions{CACertFile: ca, AuthClients: server.ClientCertificatesOptional}, a.client(""), true},
			{"optional and of another authority", server.TLSOptions{CACertFile: ca, AuthClients: server.ClientCertificatesOptional}, stranger, false},
			{"not asked for", server.TLSOptions{CACertFile: ca, AuthClients: server.ClientCertificatesIgnored}, stranger, true},
			{"the server's is of another authority", server.TLSOptions{}, other.client(""), false},
		} {
			t.Run(string(transport)+"/"+tt.name, func(t *testing.T) {
				tt.options.CertFile, tt.options.KeyFile = certFile, keyFile
				secure, err := server.NewTLS(tt.options)
				if err != nil {
					t.Fatal(err)
				}
				_, reply, err := pingTLS(serveTLS(t, &server.Options{Transport: transport}, secure), tt.client)
				if (err == nil && reply == "+PONG\r\n") != tt.works {
					t.Errorf("%q, %v", reply, err)
				}
			})
		}
	}
}

func TestTLSOptions(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	for _, o := range []server.TLSOptions{
		{}, {CertFile: certFile}, {CertFile: certFile, KeyFile: certFile}, {CertFile: certFile, KeyFile: filepath.Join(a.dir, "ca.key")},
		{CertFile: certFile, KeyFile: keyFile, CACertFile: keyFile}, {CertFile: certFile, KeyFile: keyFile, AuthClients: "perhaps"},
		{CertFile: certFile, KeyFile: keyFile, AuthClients: "yes"}, {CertFile: certFile, KeyFile: keyFile, Protocols: "TLSv1.1"},
		{CertFile: certFile, KeyFile: keyFile, Protocols: " "}, {CertFile: certFile, KeyFile: keyFile, CACertFile: "nowhere"},
	} {
		if _, err := server.NewTLS(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestTLSReload: new connections get the new certificate, old ones go on, and a certificate that is wrong changes
// nothing.
func TestTLSReload(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	address := serveTLS(t, nil, secure)
	serial := func() string {
		t.Helper()
		state, _, err := pingTLS(address, a.client(""))
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	old, err := tls.Dial("tcp", address, a.client(""))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	a.issue("server", time.Hour)
	if err := secure.Reload(); err != nil {
		t.Fatal(err)
	}
	second := serial()
	if first == second {
		t.Error("the certificate is the old one")
	}
	if err := os.WriteFile(keyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := secure.Reload(); err == nil {
		t.Error("a key that is none is accepted")
	}
	if serial() != second {
		t.Error("a reload that failed changed something")
	}
	if _, err := old.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(old).ReadString('\n'); line != "+PONG\r\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestHandshakeLimits: a client that does not finish its handshake takes a place, for five seconds; a client that
// speaks plain text is cut off.
func TestHandshakeLimits(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	address := serveTLS(t, &server.Options{MaxClients: 20}, secure)
	plain := dial(t, address)
	plain.send("*1\r\n$4\r\nPING\r\n")
	if reply, _ := plain.in.ReadString('\n'); strings.HasPrefix(reply, "+") {
		t.Errorf("plain text is answered: %q", reply)
	}
	var start time.Time
	var silent []*testClient
	for tries, taken := 0, false; !taken; tries++ {
		if tries == 3 { // in the first the place of the plain client may be taken still, and one of these is refused
			t.Fatal("handshakes take no places")
		}
		start, silent = time.Now(), []*testClient{dial(t, address), dial(t, address)}
		for !taken && time.Since(start) < 4*time.Second {
			_, _, err := pingTLS(address, a.client(""))
			if taken = err != nil; !taken {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	for _, c := range silent {
		c.expectEnd()
	}
	if took := time.Since(start); took < 4*time.Second || took > time.Minute {
		t.Errorf("ended after %s", took)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, reply, err := pingTLS(address, a.client("")); err == nil && reply == "+PONG\r\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the places of handshakes that failed are not free")
		}
	}
}

// TestExposure: an address that other machines can reach needs a password, and TLS or the word of the operator, and is
// refused before it is opened.
func TestExposure(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	aclFile := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(aclFile, []byte("user default off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		options  server.Options
		encrypts bool
		want     error
	}{
		{"nothing", server.Options{}, false, server.ErrNoPassword},
		{"TLS alone", server.Options{}, true, server.ErrNoPassword},
		{"the operator's word alone", server.Options{AllowPlainText: true}, false, server.ErrNoPassword},
		{"a password alone", server.Options{RequirePass: "x"}, false, server.ErrPlainText},
		{"a password and TLS", server.Options{RequirePass: "x"}, true, nil},
		{"a password and the operator's word", server.Options{RequirePass: "x", AllowPlainText: true}, false, nil},
		{"no default user, and TLS", server.Options{ACLFile: aclFile}, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0"} {
				if err := tt.options.CheckAddress(t.Context(), address, tt.encrypts); !errors.Is(err, tt.want) {
					t.Errorf("%s: %v, want %v", address, err, tt.want)
				}
			}
			for _, address := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
				if err := tt.options.CheckAddress(t.Context(), address, tt.encrypts); err != nil {
					t.Errorf("%s: %v", address, err)
				}
			}
			if tt.want == nil {
				return // nothing is opened to other machines by a test
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			public := net.Listener(publicListener{ln})
			if tt.encrypts {
				public = secure.Listener(public)
			}
			if err := newServer(t, openStore(t), &tt.options).Serve(t.Context(), public); !errors.Is(err, tt.want) {
				t.Errorf("Serve: %v, want %v", err, tt.want)
			}
		})
	}
}

// publicListener says that other machines can reach it, which they cannot.
type publicListener struct{ net.Listener }

func (publicListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
