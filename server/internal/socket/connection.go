package socket

import (
	"crypto/tls"
	"net"
	"syscall"
)

// State is what a probe finds of a connection.
type State uint8

// The states of a connection.
const (
	Up     State = iota
	Half         // the client sends no more
	Broken       // nobody reads what is written to it
)

// Number is the number of a connection's descriptor, which is its own, -1 without one.
func Number(nc net.Conn) int {
	under, ok := Raw(nc).(syscall.Conn)
	if !ok {
		return -1
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return -1
	}
	number := -1
	if err := raw.Control(func(fd uintptr) { number = int(fd) }); err != nil {
		return -1
	}
	return number
}

// ProbeOf returns what looks at a connection, nil if it cannot be looked at.
func ProbeOf(nc net.Conn) func() State {
	under, ok := Raw(nc).(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return nil
	}
	return func() State {
		state := Broken // if the connection is closed
		if err := raw.Control(func(fd uintptr) { state = Probe(int(fd)) }); err != nil {
			return Broken
		}
		return state
	}
}

// IsTLS says whether a connection begins with a handshake.
func IsTLS(nc net.Conn) bool {
	_, is := nc.(*tls.Conn)
	return is
}

// Raw is the connection below TLS. To close it never waits, which to close one of TLS does.
func Raw(nc net.Conn) net.Conn {
	if encrypted, is := nc.(*tls.Conn); is {
		return encrypted.NetConn()
	}
	return nc
}
