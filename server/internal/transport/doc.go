// Package transport moves the bytes of sessions: by one goroutine a connection (conn.go), or on Linux, if the options
// say so, by an event loop for all connections of a listener that have a descriptor to wait for (eventloop_linux.go).
// Pipelines are answered with one write; there are limits, time-outs and a graceful end (shutdown.go).
//
// An event loop executes what is ready together as one batch, scripts included that turn out to be short. Nothing in it
// waits: a session that meets a command that may take long, or a lock that somebody holds, or must wait for the disk,
// leaves the loop meanwhile. Nothing here or below assumes that there is one loop: each has its connections and its
// batch, and what they share (maxclients, memory, figures) is package shared's.
//
// eventLoop.mu guards what other goroutines post for a loop; it is held for a few instructions only, and with it no other
// lock is taken. Connections.mu guards the connections of a listener; it is not held while a command runs or a client is
// written to.
//
// A write(2) to the log that the disk delays, and the removal of what XADD MAXLEN trims, delay all clients of an event
// loop, as in Redis.
package transport
