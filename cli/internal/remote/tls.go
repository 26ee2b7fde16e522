package remote

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
)

// TLSFiles are the options of an encrypted connection to a server, by redis-cli's names.
type TLSFiles struct {
	CACert    string
	Cert, Key string
	Name      string // of the server; empty: the host of its address
}

// Config reads the files. There is no option not to verify the server: without that anybody on the way reads the
// password. addr is what is connected to; of the path of a socket the certificate must be for localhost, or Name.
func (f TLSFiles) Config(addr string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.Name}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil && !strings.HasPrefix(addr, "/") {
			return nil, err
		}
		config.ServerName = cmp.Or(host, "localhost")
	}
	if f.CACert != "" {
		roots, err := os.ReadFile(f.CACert)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("%s has no certificate in PEM", f.CACert)
		}
	}
	if f.Cert != "" || f.Key != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
