package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/stavedb/stave/server/internal/certificates"
)

// ClientCertificates says what the server asks of TLS clients.
type ClientCertificates string

// The words are those of Redis's tls-auth-clients.
const (
	ClientCertificatesRequired ClientCertificates = "yes"
	ClientCertificatesOptional ClientCertificates = "optional"
	ClientCertificatesIgnored  ClientCertificates = "no"
)

// TLSOptions are the settings of TLS. The files are in PEM.
type TLSOptions struct {
	CertFile string // the server's certificate, followed by those that lead to the root
	KeyFile  string // its key, without a password
	// CACertFile has the roots of clients' certificates. Default: the system's roots are not trusted for clients; there
	// are none.
	CACertFile string
	// AuthClients says whether clients need a certificate. Default: they do if CACertFile is set.
	AuthClients ClientCertificates
	// Protocols are the versions, as Redis writes them: "TLSv1.2 TLSv1.3". Default: both.
	Protocols string
}

// TLS is a configuration of TLS that can be read again while connections use it. Its methods are safe for concurrent
// use.
type TLS struct {
	options TLSOptions
	current atomic.Pointer[tls.Config]
}

// NewTLS reads the files.
func NewTLS(o TLSOptions) (*TLS, error) {
	t := &TLS{options: o}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the files again. Connections that are made afterwards use what it has read; if it fails they use what
// was there before.
func (t *TLS) Reload() error {
	config, err := t.options.load()
	if err != nil {
		return fmt.Errorf("server: TLS: %w", err)
	}
	t.current.Store(config)
	return nil
}

// Certificate is the server's certificate as it is now.
func (t *TLS) Certificate() *x509.Certificate { return certificates.Leaf(t.current.Load()) }

// Listener returns a listener whose connections are encrypted. The handshake is made when a connection is served, not
// when it is accepted.
func (t *TLS) Listener(ln net.Listener) net.Listener {
	return tlsListener{tls.NewListener(ln, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current.Load(), nil },
	})}
}

// tlsListener is how Serve knows that a listener encrypts.
type tlsListener struct{ net.Listener }

// load makes the configuration.
func (o *TLSOptions) load() (*tls.Config, error) {
	return certificates.Load(certificates.Files{Certificate: o.CertFile, Key: o.KeyFile, CA: o.CACertFile}, string(o.AuthClients), o.Protocols)
}
