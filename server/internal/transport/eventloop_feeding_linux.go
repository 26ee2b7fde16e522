package transport

import (
	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/socket"
)

// handOver lets the connection leave the loop for good, for a goroutine that feeds a replica. What is posted for it from
// here on finds that it has ended.
func (c *loopConn) handOver(ask *replication.Ask) {
	t := c.loop.transport
	nc, err := socket.Conn(c.fd)
	if err != nil {
		t.log.Error("a replica cannot be served", "client", c.session.ID(), "error", err)
		c.end()
		return
	}
	c.loop.poller.Forget(c.fd) // the kernel does not, as long as there is a copy
	c.release()
	c.session.LeaveLoop()
	c.session.Client().Attach(&clients.Driver{Wake: func() {}, Kill: func() { _ = nc.Close() }})
	t.serveFeeding(&conn{Conn: nc, transport: t, session: c.session}, ask)
}

// release closes the descriptor, and ends what the loop has of the connection.
func (c *loopConn) release() {
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
	_ = unix.Close(c.fd) // nothing is left to be sent; the kernel forgets the events with it
	c.loop.conns[c.fd] = nil
	c.loop.open--
	c.loop.served.Add(-1)
}
