package transport

import (
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/replication"
)

// handOver lets the connection leave the loop for good, for a goroutine that feeds a replica. What is posted for it from
// here on finds that it has ended.
func (c *loopConn) handOver(ask *replication.Ask) {
	l := c.loop
	file := os.NewFile(uintptr(c.fd), "replica")
	nc, err := net.FileConn(file) // another descriptor
	if err != nil {
		l.transport.log.Error("a replica cannot be served", "client", c.session.ID(), "error", err)
		_ = unix.SetNonblock(c.fd, true)
		c.end()
		return
	}
	l.poller.Forget(c.fd) // which to close does not do while there is the other one
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
	l.conns[c.fd] = nil
	l.open--
	_ = file.Close()
	own := &conn{Conn: nc, transport: l.transport, session: c.session}
	c.session.LeaveLoop()
	c.session.Client().Attach(&clients.Driver{Wake: func() {}, Kill: func() { _ = nc.Close() }})
	l.transport.serveFeeding(nc, own, ask)
}
