// Package certificates makes configurations of TLS from files in PEM. It keeps nothing.
package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Files are paths of files in PEM.
type Files struct {
	Certificate string // of the server, followed by those that lead to the root
	Key         string // without a password
	CA          string // the roots of clients' certificates; "" for none
}

// Load reads the files. clients says whether clients need a certificate: yes, no or optional; without a word they do if
// there are roots. protocols are the versions, as Redis writes them; both if empty.
func Load(o Files, clients, protocols string) (*tls.Config, error) {
	if o.Certificate == "" || o.Key == "" {
		return nil, errors.New("a certificate and its key are needed")
	}
	pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	var path *fs.PathError
	switch {
	case errors.As(err, &path): // it names the file
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s, %s: %w", o.Certificate, o.Key, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if config.MinVersion, config.MaxVersion, err = parseProtocols(protocols); err != nil {
		return nil, err
	}
	if o.CA != "" {
		roots, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("%s has no certificate in PEM", o.CA)
		}
	}
	if clients == "" && config.ClientCAs != nil {
		clients = "yes"
	}
	switch clients {
	case "yes":
		config.ClientAuth = tls.RequireAndVerifyClientCert
	case "optional":
		config.ClientAuth = tls.VerifyClientCertIfGiven
	case "no", "":
		return config, nil
	default:
		return nil, fmt.Errorf("client certificates must be yes, no or optional, not %q", clients)
	}
	if config.ClientCAs == nil {
		return nil, errors.New("certificates of clients cannot be verified without a CA certificate")
	}
	return config, nil
}

// Leaf is the server's certificate.
func Leaf(config *tls.Config) *x509.Certificate { return config.Certificates[0].Leaf }

// Same reports whether two configurations have the same certificate and the same roots.
func Same(a, b *tls.Config) bool {
	return bytes.Equal(a.Certificates[0].Certificate[0], b.Certificates[0].Certificate[0]) && (a.ClientCAs == nil) == (b.ClientCAs == nil) &&
		(a.ClientCAs == nil || a.ClientCAs.Equal(b.ClientCAs))
}

// Name is what a certificate is for: the first name, or the subject if there is none.
func Name(c *x509.Certificate) string {
	switch {
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case len(c.IPAddresses) > 0:
		return c.IPAddresses[0].String()
	}
	return c.Subject.String()
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
