// Package session is the heart of the server: a pure state machine, one [Session] a connection, that takes bytes in and
// gives bytes out. It parses requests, decides where each runs, runs it as one atomic unit of the store, and appends the
// reply. It knows no socket and starts no goroutine.
//
// # How a command runs
//
// Bytes arrive at [Session.Feed], or, in an event loop, at [Link.Take]. Short commands on keys, and short scripts, that
// arrive together form a batch: one transaction, one write to the log (batch.go). Others run alone (transact.go), or wait
// for EXEC (multi.go), or for another client (blocking.go). Replies collect in the session's output. Before it leaves, the
// session waits once for the newest commit to be as durable as the store's sync mode promises (unit.awaitDurable), and, on
// the primary of a group, until the group has all that the replies show (package gate). In an event loop it does not
// wait: its driver asks whether the replies are to be held, and if so, one goroutine waits for all such sessions while the
// loop serves others.
//
// # Drivers
//
// A [Link] is the session as its driver works with it: a goroutine of its own, or one of any number of event loops, each
// with a [Batch] that its sessions share (round.go). A session is handed to another driver between two commands:
// [Link.Attach] replaces what wakes, ends and looks at the connection, and the new driver calls Resume once.
// The transport decides which descriptor that is; the session does not know it but as the number that CLIENT LIST shows.
//
// # Guarantees
//
// A command is atomic and isolated, and so is an EXEC. A command that fails has written nothing. No reply leaves before
// what it acknowledges is as durable as the store promises; if a sync fails, the replies are withheld and the connection
// is closed. A message that is published leaves no earlier than the writes it may report. A panic in a handler costs one
// connection: the transaction is rolled back, the locks are released, the client gets an error.
//
// A command that takes long ends soon after its client has gone, and after the grace period of a shutdown (presence.go).
// It has done nothing then. Of what such a client has sent, writes are executed and reads are not. On systems other than
// Linux a client that has gone is noticed when its reply is sent; replies leave before the next command of a pipeline
// that has taken 100 ms.
//
// A session is not safe for concurrent use, and needs no lock. What others see of it is in its client and its subscriber,
// which are.
package session
