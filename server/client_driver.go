package server

import "github.com/stavedb/stave/server/internal/socket"

// Driver is what moves the bytes of a session, as others reach it. Its functions may be called by any goroutine, and too
// late: the connection may have ended, or have another driver by then.
type Driver struct {
	Wake  func()              // makes it call Resume
	Kill  func()              // ends the connection. Keys may be locked
	Probe func() socket.State // looks at the connection; nil: there is nothing to look at
}

// attach gives the client a driver, in place of the one that it had. Who calls it has the session, between two commands,
// and lets it Resume afterwards: a message may have woken the driver of before.
func (c *client) attach(d *Driver) { c.driver.Store(d) }

// isDriven reports whether there is a driver. An embedded session has none: nobody would wake it.
func (c *client) isDriven() bool { return c.driver.Load() != nil }

// wake makes the driver call Resume.
func (c *client) wake() {
	if d := c.driver.Load(); d != nil && d.Wake != nil {
		d.Wake()
	}
}

// kill ends the connection, if there is one.
func (c *client) kill() {
	c.abort()
	c.endWait(timedOut)
}

// abort is kill without anything that takes a lock. A command that waits goes on waiting.
func (c *client) abort() {
	if d := c.driver.Load(); d != nil {
		c.killed.Store(true)
		d.Kill()
	}
}

// canProbe reports whether there is a connection to look at.
func (c *client) canProbe() bool {
	d := c.driver.Load()
	return d != nil && d.Probe != nil
}

// probe looks at the connection; canProbe has said that there is one.
func (c *client) probe() socket.State { return c.driver.Load().Probe() }
