//go:build !linux

package server

import (
	"errors"
	"net"
)

// eventLoopSupported says that this platform has the event loop.
const eventLoopSupported = false

// eventLoop is the transport of Linux.
type eventLoop struct{}

func newEventLoop(*transport) (*eventLoop, error) {
	return nil, errors.New("server: no event loop on this platform")
}

func (*eventLoop) adopt(net.Conn, *Session) bool { return false }
func (*eventLoop) run()                          {}
func (*eventLoop) shutdown(bool)                 {}
