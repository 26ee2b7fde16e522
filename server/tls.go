package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// handshakeTimeout is how long a TLS handshake may take. The connection takes one of the places of those that have not
// authenticated meanwhile.
const handshakeTimeout = 5 * time.Second

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
	// CACertFile has the roots of clients' certificates. Default: the system's roots are not trusted for clients; there are none.
	CACertFile string
	// AuthClients says whether clients need a certificate. Default: they do if CACertFile is set.
	AuthClients ClientCertificates
	// Protocols are the versions, as Redis writes them: "TLSv1.2 TLSv1.3". Default: both.
	Protocols string
}

// TLS is a configuration of TLS that can be read again while connections use it. Its methods are safe for concurrent use.
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

// Reload reads the files again. Connections that are made afterwards use what it has read; if it fails they use what was there before.
func (t *TLS) Reload() error {
	config, err := t.options.load()
	if err != nil {
		return fmt.Errorf("server: TLS: %w", err)
	}
	t.current.Store(config)
	return nil
}

// Listener returns a listener whose connections are encrypted. The handshake is made when a connection is served, not when it is accepted.
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
	if o.CertFile == "" || o.KeyFile == "" {
		return nil, errors.New("a certificate and its key are needed")
	}
	pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if config.MinVersion, config.MaxVersion, err = parseProtocols(o.Protocols); err != nil {
		return nil, err
	}
	if o.CACertFile != "" {
		roots, err := os.ReadFile(o.CACertFile)
		if err != nil {
			return nil, err
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("%s has no certificate in PEM", o.CACertFile)
		}
	}
	auth := o.AuthClients
	if auth == "" && config.ClientCAs != nil {
		auth = ClientCertificatesRequired
	}
	switch auth {
	case ClientCertificatesRequired:
		config.ClientAuth = tls.RequireAndVerifyClientCert
	case ClientCertificatesOptional:
		config.ClientAuth = tls.VerifyClientCertIfGiven
	case ClientCertificatesIgnored, "":
		return config, nil
	default:
		return nil, fmt.Errorf("client certificates must be yes, no or optional, not %q", auth)
	}
	if config.ClientCAs == nil {
		return nil, errors.New("certificates of clients cannot be verified without a CA certificate")
	}
	return config, nil
}

// parseProtocols reads a list of versions.
func parseProtocols(text string) (least, most uint16, err error) {
	if text == "" {
		return tls.VersionTLS12, tls.VersionTLS13, nil
	}
	for name := range strings.FieldsSeq(text) {
		var version uint16
		switch strings.ToLower(name) {
		case "tlsv1.2":
			version = tls.VersionTLS12
		case "tlsv1.3":
			version = tls.VersionTLS13
		default:
			return 0, 0, fmt.Errorf("protocol %q is not one of TLSv1.2 and TLSv1.3", name)
		}
		if least == 0 || version < least {
			least = version
		}
		most = max(most, version)
	}
	if least == 0 {
		return 0, 0, errors.New("no protocol is named")
	}
	return least, most, nil
}

// handshake makes the handshake of TLS, if there is one, and reports whether the connection may go on.
func (c *conn) handshake() bool {
	encrypted, is := c.Conn.(*tls.Conn)
	if !is {
		return true
	}
	ctx, cancel := context.WithTimeout(c.transport.context, handshakeTimeout)
	defer cancel()
	if err := encrypted.HandshakeContext(ctx); err != nil {
		c.transport.server.counters.HandshakesFailed.Add(1)
		c.transport.log.Debug("TLS handshake failed; connection closed", "address", c.session.client.remote, "error", err)
		_ = encrypted.NetConn().Close() // before end, which would wait to say goodbye
		return false
	}
	if c.session.authenticated {
		c.session.releaseSlot()
	}
	return true
}
