package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const password = "the-password-of-clients"

// users are those of the ACL file. The rules of exporter are those that its documentation asks for, and evalsha, which it uses too.
const users = `user default off
user worker on >` + password + ` ~clients:* &clients:* +@all -@dangerous +info
user bench on >` + password + ` ~* &* +@all
user exporter on >` + password + ` ~* +client +ping +info +config|get +cluster|info +slowlog +latency +memory +select +get +scan +xinfo +type +pfcount +strlen +llen +scard +zcard +hlen +xlen +eval +evalsha
`

// server is a stave serve that listens with TLS only.
type server struct {
	stave, dir, port, ca string
	roots                *x509.CertPool

	mu      sync.Mutex // guards output
	output  bytes.Buffer
	process *exec.Cmd
}

func newServer(stave string) (s *server, err error) {
	s = &server{stave: stave, roots: x509.NewCertPool()}
	if s.dir, err = os.MkdirTemp("", "clients"); err != nil {
		return nil, err
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	if err := s.certificates(); err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("dir %q\nport 0\nbind 127.0.0.1\ntls-port %s\ntls-cert-file %q\ntls-key-file %q\naclfile %q\n", filepath.Join(s.dir, "store"), s.port,
		filepath.Join(s.dir, "server.pem"), filepath.Join(s.dir, "server.key"), filepath.Join(s.dir, "users.acl"))
	return s, errors.Join(s.write("users.acl", []byte(users)), s.write("stave.conf", []byte(settings)))
}

// freePort is a port that nobody listens on.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, errors.Join(err, ln.Close())
}

func (s *server) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(s.dir, name), data, 0o600)
}

// certificates makes one for the server and one that has signed it.
func (s *server) certificates() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	s.roots.AppendCertsFromPEM(caPEM)
	s.ca = filepath.Join(s.dir, "ca.pem")
	return errors.Join(s.write("ca.pem", caPEM), s.write("server.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		s.write("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}

func (s *server) address() string { return "localhost:" + s.port }

func (s *server) clientTLS() *tls.Config {
	return &tls.Config{RootCAs: s.roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// Write takes what the server prints.
func (s *server) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.Write(text)
}

func (s *server) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

// start starts the server and waits until it is ready.
func (s *server) start() error {
	before := len(s.printed())
	s.process = exec.Command(s.stave, "serve", "--config", filepath.Join(s.dir, "stave.conf"))
	s.process.Stdout, s.process.Stderr = s, s
	if err := s.process.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(patience); !strings.Contains(s.printed()[before:], " ready on "); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("the server does not start: %s", s.printed()), s.process.Process.Kill())
		}
	}
	return nil
}

// restart ends the server, which closes all connections, and starts it after a while.
func (s *server) restart() error {
	if err := s.stop(); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // that clients find nobody there
	return s.start()
}

func (s *server) stop() error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("the server ended with %w: %s", err, s.printed())
	}
	return nil
}

func (s *server) close() error {
	err := errors.Join(s.stop(), os.RemoveAll(s.dir))
	if strings.Contains(s.printed(), "level=ERROR") {
		err = errors.Join(err, fmt.Errorf("the server logs an error: %s", s.printed()))
	}
	return err
}
