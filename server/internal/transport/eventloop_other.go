//go:build !linux

package transport

import (
	"errors"
	"net"
	"sync/atomic"

	"github.com/stavedb/stave/server/internal/session"
)

// EventLoopSupported says that this platform has the event loop.
const EventLoopSupported = false

// eventLoop is the transport of Linux.
type eventLoop struct{ served atomic.Int64 }

func newEventLoop(*Connections) (*eventLoop, error) {
	return nil, errors.New("server: no event loop on this platform")
}

func (*eventLoop) adopt(net.Conn, session.Link) bool { return false }
func (*eventLoop) run()                              {}
func (*eventLoop) shutdown(bool)                     {}
