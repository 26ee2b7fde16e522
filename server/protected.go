package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/socket"
)

// Whoever can connect without a password owns the data, and whoever can listen on the way owns the password. So an
// address that other machines can reach is refused unless the default user needs a password and the listener encrypts,
// or the operator has said that it need not.

// The errors of an address that would leave the data open.
var (
	ErrNoPassword = errors.New("server: refusing to listen on an address that other machines can reach: the default user has no password; " +
		"set one (requirepass, or a user default in the file of users), or bind 127.0.0.1, ::1 or a unix socket")
	ErrPlainText = errors.New("server: refusing to listen without TLS on an address that other machines can reach: passwords and data would be readable on the way; " +
		"listen with TLS only (tls-port, tls-cert-file, tls-key-file and port 0), or allow it (protected-mode no), or bind 127.0.0.1, ::1 or a unix socket")
)

// checkListener refuses a listener that would leave the data open. Only one that TLS.Listener has made counts as
// encrypting: of a program's own the server cannot know.
func (v *Server) checkListener(ln net.Listener) error {
	_, encrypts := ln.(tlsListener)
	return checkExposed(v.state, ln.Addr().String(), socket.IsLocal(ln.Addr()), encrypts)
}

// checkExposed is the rule. It holds for the moment when a listener is opened or moved; a password that is taken away
// later is noticed when a connection comes in (transport.Connections).
func checkExposed(v *shared.State, address string, local, encrypts bool) error {
	switch {
	case local:
		return nil
	case !v.Users.Default().Rules().NeedsPassword():
		return fmt.Errorf("%s: %w", address, ErrNoPassword)
	case !encrypts && !v.Options.AllowPlainText:
		return fmt.Errorf("%s: %w", address, ErrPlainText)
	}
	return nil
}

// Check says what New would say of the options and of the users that they name, before there is a store: a program can
// report what is wrong before it makes or opens anything.
func (o *Options) Check() error {
	_, err := o.trial()
	return err
}

// trial is the state of a server without a store, which knows its users.
func (o *Options) trial() (*shared.State, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	users := options.userSource(acl.NewTrial(table))
	if err := users.Load(options.RequirePass); err != nil {
		return nil, err
	}
	return &shared.State{Options: options.fixed(), Users: users.Users}, nil
}

// CheckAddress says what Serve would say of a listener on a TCP address, HOST:PORT, before there is one: a program can
// ask before it opens the store. A host is as public as the most public of its addresses.
func (o *Options) CheckAddress(ctx context.Context, address string, encrypts bool) error {
	if local, err := isLocalAddress(ctx, address); local || err != nil {
		return err
	}
	v, err := o.trial()
	if err != nil {
		return err
	}
	return checkExposed(v, address, false, encrypts)
}

// CheckHTTPAddress says what ServeHTTP would say of a listener on HOST:PORT, before there is one.
func CheckHTTPAddress(ctx context.Context, address string) error {
	local, err := isLocalAddress(ctx, address)
	if err == nil && !local {
		err = ErrHTTPExposed
	}
	if err != nil {
		return fmt.Errorf("http: %s: %w", address, err)
	}
	return nil
}

// checkAddress is CheckAddress for a server that runs.
func (v *Server) checkAddress(ctx context.Context, address string, encrypts bool) error {
	local, err := isLocalAddress(ctx, address)
	if err != nil {
		return err
	}
	return checkExposed(v.state, address, local, encrypts)
}

// isLocalAddress is isLocal for HOST:PORT. It looks the host up, which may take seconds; between this and the opening of
// the socket the name may come to mean another address, which Serve then judges again by the socket's own.
func isLocalAddress(ctx context.Context, address string) (local bool, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return false, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, err
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return false, nil
		}
	}
	return true, nil
}
