package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
)

// tlsFiles are the options of an encrypted connection to a server, by redis-cli's names.
type tlsFiles struct {
	on        bool
	caCert    string
	cert, key string
	name      string // of the server; empty: the host of its address
}

// config reads the files. There is no option not to verify the server: without that anybody on the way reads the password.
func (f tlsFiles) config(addr string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.name}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil && !strings.HasPrefix(addr, "/") {
			return nil, err
		}
		config.ServerName = cmp.Or(host, "localhost")
	}
	if f.caCert != "" {
		roots, err := os.ReadFile(f.caCert)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("%s has no certificate in PEM", f.caCert)
		}
	}
	if f.cert != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
