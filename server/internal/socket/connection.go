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
