package clients

import "github.com/stavedb/stave/server/internal/socket"

// Driver is what moves the bytes of a session, as others reach it. Its functions may be called by any goroutine, and too
// late: the connection may have ended, or have another driver by then.
type Driver struct {
	Wake  func()              // makes it call Resume
	Kill  func()              // ends the connection. Keys may be locked
	Probe func() socket.State // looks at the connection; nil: there is nothing to look at
}

// Attach gives the client a driver, in place of the one that it had. Who calls it has the session, between two commands,
// and lets it Resume afterwards: a message may have woken the driver of before.
func (c *Client) Attach(d *Driver) { c.driver.Store(d) }

// Wake makes the driver call Resume.
func (c *Client) Wake() {
	if d := c.driver.Load(); d != nil && d.Wake != nil {
		d.Wake()
	}
}

// Kill ends the connection, if there is one.
func (c *Client) Kill() {
	c.Abort()
	c.EndWait(TimedOut)
}

// Abort is kill without anything that takes a lock. A command that waits goes on waiting.
func (c *Client) Abort() {
	if d := c.driver.Load(); d != nil {
		c.Killed.Store(true)
		d.Kill()
	}
}

// CanProbe reports whether there is a connection to look at.
func (c *Client) CanProbe() bool {
	d := c.driver.Load()
	return d != nil && d.Probe != nil
}

// Probe looks at the connection; CanProbe has said that there is one.
func (c *Client) Probe() socket.State { return c.driver.Load().Probe() }
