package socket

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
)

// Address is HOST:PORT of TCP, and how it is served.
type Address struct {
	HostPort  string
	Encrypted bool
	optional  bool // the host may be missing
}

// Addresses are those that the settings bind and a port mean, none for port 0. As in redis.conf a minus before a host
// means that it may be missing, and * any.
func Addresses(bind, port string, encrypted bool) (list []Address) {
	if port == "0" {
		return nil
	}
	for _, host := range strings.Fields(bind) {
		name, optional := strings.CutPrefix(host, "-")
		switch name {
		case "*":
			name = ""
		case "::*":
			name = "::"
		}
		a := Address{net.JoinHostPort(name, port), encrypted, optional}
		if !slices.ContainsFunc(list, a.Same) {
			list = append(list, a)
		}
	}
	return list
}

// Same reports whether two are one socket.
func (a Address) Same(b Address) bool {
	return a.HostPort == b.HostPort && a.Encrypted == b.Encrypted
}

// Host is that of the address; "" is all addresses of the machine.
func (a Address) Host() string {
	host, _, _ := net.SplitHostPort(a.HostPort)
	return host
}

// Port is that of the address.
func (a Address) Port() string {
	_, port, _ := net.SplitHostPort(a.HostPort)
	return port
}

// Listen opens the socket. It is nil, without an error, if this machine has not the address, and it may be missing.
func (a Address) Listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", a.HostPort)
	if a.optional && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)) {
		return nil, nil
	}
	return ln, err
}
