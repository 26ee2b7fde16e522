package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/server"
	"github.com/urfave/cli/v2"
)

// Where serve listens. Addresses are judged before the store is opened: one that is refused must not look served for a
// moment.

// listening is what the settings say about it. A server has Unix sockets, TCP addresses, or both; the sockets are
// opened once, the addresses may change while it runs.
type listening struct {
	paths []string // of Unix sockets
	tcp   server.Listen
}

// sockets are what is open. bound is there also without any TCP address, since CONFIG SET port may add one.
type sockets struct {
	unix  []net.Listener
	bound *server.Bound
}

// readListening reads the settings, and the files of TLS, which must be right from the start: a server that was to
// encrypt does not begin without. Files of TLS with tls-port 0 are refused, since whoever has set them expects to be
// encrypted.
func readListening(c *cli.Context, config *server.Config) (l listening, err error) {
	addr := c.String("addr")
	if l.paths, err = socketPaths(addr, config); err != nil {
		return l, err
	}
	l.tcp = server.Listen{Port: config.Get("port"), TLSPort: config.Get("tls-port")}
	if addr != "" {
		if err := l.readAddress(addr, config); err != nil {
			return l, err
		}
	}
	l.tcp.Bind = config.Get("bind")
	files := server.TLSOptions{
		CertFile: config.Get("tls-cert-file"), KeyFile: config.Get("tls-key-file"), CACertFile: config.Get("tls-ca-cert-file"), Protocols: config.Get("tls-protocols"),
	}
	if l.tcp.TLSPort == "0" {
		if files != (server.TLSOptions{}) {
			return l, usagef("tls-port is 0: say on which port to listen with TLS, or leave its files out")
		}
		return l, nil
	}
	// Unset, whether clients need a certificate depends on whether there is one to verify theirs by: see TLSOptions.
	if config.IsSet("tls-auth-clients") {
		files.AuthClients = server.ClientCertificates(config.Get("tls-auth-clients"))
	}
	if l.tcp.Secure, err = server.NewTLS(files); err != nil {
		return l, usagef("%w", err)
	}
	return l, nil
}

// readAddress takes what --addr says in the place of bind and port, so that a change of the file does not replace it:
// values that config.Set has set hold as those of a flag do. An empty host means all addresses, as for other programs; a
// host alone has the port of the settings.
func (l *listening) readAddress(addr string, config *server.Config) error {
	if strings.HasPrefix(addr, "/") {
		l.tcp.Port = "0"
		return config.Set("port", "0")
	}
	addr = withPort(addr, config.Get("port"))
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("--addr must be HOST, HOST:PORT, or a path that starts with /, not %q", addr)
	}
	l.tcp.Addr, l.tcp.Port = addr, port
	if host == "" || host == "*" {
		host = "* -::*"
	}
	if l.tcp.TLSPort == "0" { // which has the hosts of bind
		err = config.Set("bind", host)
	}
	return errors.Join(err, config.Set("port", port))
}

// judge refuses addresses that would leave the data open. That is an error of usage; a host that cannot be looked up is
// one of opening.
func (l *listening) judge(ctx context.Context, o *server.Options) error {
	return judged(l.tcp.Check(ctx, o))
}

// openSockets opens the sockets, or none: a port that is taken closes what was opened before it. The file of a Unix
// socket is removed with it.
func (l *listening) openSockets(ctx context.Context, config *server.Config) (s sockets, err error) {
	if s.unix, err = listenAll(ctx, l.paths, config); err != nil {
		return s, err
	}
	if s.bound, err = l.tcp.Open(ctx); err != nil {
		return s, closeAll(err, s.unix)
	}
	if len(s.unix)+len(s.bound.Addrs()) == 0 {
		return s, errors.Join(fmt.Errorf("this machine has none of the addresses of bind: %s", config.Get("bind")), s.bound.Close())
	}
	return s, nil
}

// close closes them, and returns err with what that gives. It is for sockets that nobody serves yet; those who serve
// close their own.
func (s *sockets) close(err error, web net.Listener) error {
	others := s.unix
	if web != nil {
		others = append(slices.Clone(others), web)
	}
	return errors.Join(closeAll(err, others), s.bound.Close())
}

// String names their addresses as they are now, with the port that the system has chosen for 0: tests and supervisors
// read it in the ready line.
func (s *sockets) String() string {
	var names []string
	for _, ln := range s.unix {
		names = append(names, ln.Addr().String())
	}
	for _, addr := range s.bound.Addrs() {
		names = append(names, addr.String())
	}
	return strings.Join(names, " and ")
}

// listenAll opens the Unix sockets, or none. The setting unixsocketperm is that of all of them.
func listenAll(ctx context.Context, addrs []string, config *server.Config) (list []net.Listener, err error) {
	for _, addr := range addrs {
		ln, err := listen(ctx, addr, config.Get("unixsocketperm"))
		if err != nil {
			for _, open := range list {
				err = errors.Join(err, open.Close())
			}
			return nil, err
		}
		list = append(list, ln)
	}
	return list, nil
}

// listen opens a socket. A socket file without a listener, left by a killed server, is replaced. A file at that
// path that is no socket is left alone: the error is then that of listening. Nobody but the owner can connect
// before the permissions are set. perm is octal; 0 is for the owner alone, where Redis leaves the umask's.
//
// Two servers that start on one path at the same time may both find nobody there, and the second replaces the
// first's file. The lock of the store, which is taken before, lets one writer of each store get here.
func listen(ctx context.Context, addr, perm string) (ln net.Listener, err error) {
	var config net.ListenConfig
	if !strings.HasPrefix(addr, "/") {
		return config.Listen(ctx, "tcp", addr)
	}
	// A server that listens accepts a connection, so a file at which nobody does is a leftover.
	if conn, err := net.DialTimeout("unix", addr, time.Second); err == nil {
		return nil, errors.Join(fmt.Errorf("listen %s: another server listens there", addr), conn.Close())
	}
	if info, err := os.Lstat(addr); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(addr); err != nil {
			return nil, err
		}
	}
	err = withPrivateFiles(func() error {
		ln, err = config.Listen(ctx, "unix", addr)
		return err
	})
	if err != nil {
		return nil, err
	}
	mode, err := strconv.ParseUint(perm, 8, 32)
	if err == nil && mode == 0 {
		mode = 0o700
	}
	if err == nil {
		err = os.Chmod(addr, os.FileMode(mode))
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// listenHTTP opens the socket of the dashboard and /metrics, nil if there is to be none. The address has been judged; what
// it has come to mean is judged again, before anybody is told that the server is ready.
func listenHTTP(ctx context.Context, config *server.Config) (web net.Listener, err error) {
	addr := config.Get("http-addr")
	if addr == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	if web, err = lc.Listen(ctx, "tcp", addr); err != nil {
		return nil, fmt.Errorf("http-addr: %w", err)
	}
	if err := server.CheckHTTPAddress(ctx, web.Addr().String()); err != nil {
		return nil, errors.Join(err, web.Close())
	}
	return web, nil
}
