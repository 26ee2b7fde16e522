package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Client makes the configuration of a connection to another server: with a certificate of its own if there is one, and the
// roots of the other's. As in Redis a server proves by a root of the file that it belongs here, whatever its name; without
// that file the roots are the system's, and it must have the name that was connected to.
func Client(o Files, protocols string) (config *tls.Config, err error) {
	config = &tls.Config{}
	if config.MinVersion, config.MaxVersion, err = parseProtocols(protocols); err != nil {
		return nil, err
	}
	if o.Certificate != "" && o.Key != "" {
		pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if o.CA == "" {
		return config, nil
	}
	text, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", o.CA)
	}
	config.InsecureSkipVerify = true // of the name; VerifyConnection verifies the rest
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the server has no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
	return config, nil
}
