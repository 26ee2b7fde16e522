package transport

import (
	"context"
	"crypto/tls"
	"time"
)

// handshakeTimeout is how long a TLS handshake may take. The connection takes one of the places of those that have not
// authenticated meanwhile.
const handshakeTimeout = 5 * time.Second

// handshake makes the handshake of TLS, if there is one, and reports whether the connection may go on. It runs on the
// connection's goroutine, so a client that dawdles holds up no other; until it has ended the connection keeps its place
// among those that have not authenticated, whether or not a password is needed.
func (c *conn) handshake() bool {
	encrypted, is := c.Conn.(*tls.Conn)
	if !is {
		return true
	}
	ctx, cancel := context.WithTimeout(c.transport.context, handshakeTimeout)
	defer cancel()
	if err := encrypted.HandshakeContext(ctx); err != nil {
		c.transport.server.Counters.HandshakesFailed.Add(1)
		c.transport.log.Debug("TLS handshake failed; connection closed", "address", c.session.Client().Remote, "error", err)
		_ = encrypted.NetConn().Close() // before end, which would wait to say goodbye
		return false
	}
	c.session.EndHandshake()
	return true
}
