package cli

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/stavedb/stave/server"
	"github.com/urfave/cli/v2"
)

// Where serve listens. Addresses are judged before the store is opened: one that is refused must not look served for a moment.

// listening is what the settings say about it.
type listening struct {
	plain     []string // HOST:PORT, or a path
	encrypted []string
	secure    *server.TLS // nil without TLS
}

// readListening reads the settings, and the files of TLS.
func readListening(c *cli.Context, config *server.Config) (l listening, err error) {
	if l.plain, err = addresses(c, config); err != nil {
		return l, err
	}
	files := server.TLSOptions{
		CertFile: config.Get("tls-cert-file"), KeyFile: config.Get("tls-key-file"), CACertFile: config.Get("tls-ca-cert-file"), Protocols: config.Get("tls-protocols"),
	}
	port := config.Get("tls-port")
	if port == "0" {
		if files != (server.TLSOptions{}) {
			return l, usagef("tls-port is 0: say on which port to listen with TLS, or leave its files out")
		}
		return l, nil
	}
	if config.IsSet("tls-auth-clients") {
		files.AuthClients = server.ClientCertificates(config.Get("tls-auth-clients"))
	}
	if l.secure, err = server.NewTLS(files); err != nil {
		return l, usagef("%w", err)
	}
	l.encrypted = boundTo(config, port)
	return l, nil
}

// judge refuses addresses that would leave the data open.
func (l *listening) judge(ctx context.Context, o *server.Options) (err error) {
	for _, addr := range l.plain {
		if !strings.HasPrefix(addr, "/") && err == nil {
			err = o.CheckAddress(ctx, addr, false)
		}
	}
	for _, addr := range l.encrypted {
		if err == nil {
			err = o.CheckAddress(ctx, addr, true)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, server.ErrNoPassword), errors.Is(err, server.ErrPlainText):
		return usagef("%w", err)
	}
	return failed(exitOpen, err)
}

// open opens the sockets, or none.
func (l *listening) open(ctx context.Context, config *server.Config) ([]net.Listener, error) {
	listeners, err := listenAll(ctx, l.plain, config)
	if err != nil {
		return nil, err
	}
	encrypted, err := listenAll(ctx, l.encrypted, config)
	if err != nil {
		return nil, closeAll(err, listeners)
	}
	for _, ln := range encrypted {
		listeners = append(listeners, l.secure.Listener(ln))
	}
	return listeners, nil
}
