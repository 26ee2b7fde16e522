// Package server speaks the Redis protocol for a store.
//
// # What it is
//
// [Session] is the heart: a pure state machine, one per connection, that takes bytes in and gives
// bytes out. It parses commands, looks them up in the table ([Commands]), runs each as one atomic
// unit of the store, and appends the reply. It does no network I/O and starts no goroutine, so that
// a shell can embed it and a test can drive it.
//
// [Serve] is the transport around it: one goroutine a connection (transport.go), or on Linux, if
// [Options] say so, one for all of them (eventloop_linux.go); pipelines answered with one write,
// limits, time-outs and a graceful end. [Server] is what the sessions of one process share:
// counters, the list of clients, the settings.
//
// Package [github.com/stavedb/stave/server/command] has the table's rows and the handlers of all commands on keys. The
// commands that work on the session or on the server itself are here, in the files commands_*. Package
// [github.com/stavedb/stave/server/acl] has the users and their rules, permission.go asks it. The packages in internal
// own what needs no session: settings (the table, CONFIG's values), pubsub (who has subscribed, mailboxes), tracking
// (client-side caching), scripts (those that are known, libraries of functions), slowlog, latency, stats (counters,
// INFO, /metrics), web (the HTTP endpoint), socket (addresses, what the system knows of connections), listeners (the
// sockets that are open, and moving them), certificates (files of TLS), arena (what MULTI has queued), garbage (what long
// replies leave), dashboard (the page of --http), introspect (COMMAND), cluster, debug, digest, redact. The other files
// are mechanism, each named after the thing it holds: batch, multi, blocking, notify, client, config, monitor. What a
// session knows of its client stands in types of its own, identity (permission.go), presence (interrupt.go), client and
// trackedReads; so do unsentMessages and sessionStats.
//
// # How a command runs
//
// Bytes arrive at [Session.Feed], or, in the event loop, at the session's parser. Short commands on keys, and short
// scripts, that arrive together form a batch: one transaction, one write to the log (batch.go). Others run alone
// (transact.go), or wait for EXEC (multi.go), or for another client (blocking.go). Replies collect in the session's output. Before it leaves, the
// session waits once for the newest commit to be as durable as the store's sync mode promises (Session.awaitDurable). In
// the event loop it does not wait: it asks whether the commit is durable (Durable), and if not, one goroutine waits for
// all such sessions while the loop serves others (eventLoop.waitDurable).
//
// # Guarantees
//
// A command is atomic and isolated, and so is an EXEC. A command that fails has written nothing.
//
// No reply leaves before what it acknowledges is as durable as the store promises; if a sync fails,
// the replies are withheld and the connection is closed. A message that is published leaves no
// earlier than the writes it may report.
//
// A panic in a handler costs one connection: the transaction is rolled back, the locks are
// released, the client gets an error.
//
// A command that takes long ends soon after its client has gone, and after the grace period of a shutdown
// (interrupt.go). It has done nothing then. Of what such a client has sent, writes are executed and reads are not. On
// systems other than Linux a client that has gone is noticed when its reply is sent; replies leave before the next
// command of a pipeline that has taken 100 ms.
//
// A client cannot make the server hold memory without bound: arguments, queues, replies, buffers
// and mailboxes have limits ([Options]).
//
// # Locks and goroutines
//
// The event loop executes what is ready together as one batch (round.go), scripts included that turn out to be short.
// Nothing in it waits: a session that meets a command that may take long, or a lock that somebody holds, or must wait
// for the disk, leaves the loop meanwhile. eventLoop.mu guards what other goroutines post for it; it is held for a few
// instructions only, and with it no other lock is taken.
//
// A session is not safe for concurrent use, and needs no lock. What others see of it is in its client and its
// subscriber, which are. Server.mu guards the list of clients, transport.mu the connections; none is held while a
// command runs or a client is written to. The mutex of pubsub.Hub may be taken with keys locked, by a notification, so
// nothing may lock keys while it holds that.
//
// # Caveats
//
// A PUBLISH to a long channel name that is matched with long patterns takes as long as that takes, but delays nobody
// else. A keyspace notification is matched with the keys of its command locked; in an event loop a command whose
// notifications would take long to match leaves the loop. A write(2) to the log that the disk delays, and the removal
// of what XADD MAXLEN trims, delay all clients of an event loop, as in Redis.
//
// Serve refuses addresses that other machines can reach, unless the default user needs a password and the listener
// encrypts (protected.go); docs/SECURITY.md says what keeps strangers out, and what does not. Semantics, replies and
// error texts are those of Redis 7.4; where Stave differs, docs/COMMANDS.md says so.
package server
