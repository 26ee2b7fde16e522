package socket

import (
	"context"
	"errors"
	"net"
	"net/netip"
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

// All are the hosts that stand for every address of the machine: those of IPv4, and those of IPv6 if there are any.
const All = "* -::*"

// Addresses are those that the settings bind and a port mean, none for port 0. As in redis.conf a minus before a host
// means that it may be missing, * any address of IPv4 and ::* any of IPv6.
func Addresses(bind, port string, encrypted bool) (list []Address) {
	if port == "0" {
		return nil
	}
	return ofHosts(bind, port, encrypted)
}

// Of are the addresses that HOST:PORT means: one, or those of All for a host that is left out, or *. A port 0 is one that
// the system chooses.
func Of(hostPort string) []Address {
	host, port, err := net.SplitHostPort(hostPort)
	switch {
	case err != nil: // Listen says what is wrong
		return []Address{{HostPort: hostPort}}
	case host == "" || host == "*":
		return ofHosts(All, port, false)
	}
	return ofHosts(host, port, false)
}

func ofHosts(hosts, port string, encrypted bool) (list []Address) {
	for _, host := range strings.Fields(hosts) {
		name, optional := strings.CutPrefix(host, "-")
		switch name {
		case "*":
			name = "0.0.0.0"
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

// Host is that of the address.
func (a Address) Host() string {
	host, _, _ := net.SplitHostPort(a.HostPort)
	return host
}

// Port is that of the address.
func (a Address) Port() string {
	_, port, _ := net.SplitHostPort(a.HostPort)
	return port
}

// network is the one of the two protocols that a literal address belongs to: [::] does not take connections of IPv4, nor
// 0.0.0.0 those of IPv6. A name may be either.
func (a Address) network() string {
	ip, err := netip.ParseAddr(a.Host())
	switch {
	case err != nil:
		return "tcp"
	case ip.Unmap().Is4():
		return "tcp4"
	}
	return "tcp6"
}

// MayMiss reports whether an error says that this machine has not the address, or does not speak its protocol, and the
// address may be missing.
func (a Address) MayMiss(err error) bool {
	var name *net.DNSError
	return a.optional && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EPROTONOSUPPORT) ||
		errors.As(err, &name) && name.IsNotFound)
}

// Listen opens the socket. It is nil, without an error, if the address is missing and may be.
func (a Address) Listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	ln, err := config.Listen(ctx, a.network(), a.HostPort)
	if err != nil && a.MayMiss(err) {
		return nil, nil
	}
	return ln, err
}

// IsLocal reports whether only this machine can connect to an address. An address without a host, which means all
// interfaces, is not local.
func IsLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	// Listeners without a network, such as in-memory ones of tests.
	return a.Network() != "tcp" && a.Network() != "udp"
}
