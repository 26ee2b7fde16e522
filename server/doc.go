// Package server speaks the Redis protocol for a store.
//
// [Serve] answers the clients of a listener; [Server] serves several, moves them by CONFIG SET, reads the settings again
// ([Server.Reload]), and has figures ([Server.Info], [Server.ServeHTTP]). [Session] is one client's conversation without a
// network, for a shell or a test. [Commands] is the command table, which is put together here.
//
// # Rooms
//
// All else is in packages of which none imports one above it, so that the import graph says what calls what:
//
//	internal/transport    moves bytes: a goroutine a connection, or event loops; accepts, shuts down
//	internal/session      a pure state machine, bytes in and bytes out; knows no socket
//	internal/replication  speaks the replication protocol, bytes in and bytes out; a leaf
//	internal/dispatch     decides: refuse, later, batch, here, aside
//	internal/scripting    runs scripts and functions, and has what is kept of them
//	internal/admin        the commands about the server, a file for each of Redis's groups
//	internal/shared       what the sessions of a server share: settings, users, counters, memory; executes nothing
//	internal/clients      what others may see of a client and do to it
//
// Below them are package [github.com/stavedb/stave/server/command], which has the table's rows with what each costs, and
// the handlers of all commands on keys, [github.com/stavedb/stave/server/acl], which has users and rules, and leaves, each
// with one thing: settings (the table, CONFIG's values), pubsub (mailboxes), tracking (client-side caching), slowlog,
// latency, stats (counters, INFO, /metrics), web (the HTTP endpoint), socket, listeners, certificates, replication (the stream for replicas), gate (replies that wait for a group), member (a server's part in it), arena (what MULTI
// has queued), dashboard, introspect (COMMAND), cluster, debug, digest, redact. A room gets what is above it as a struct
// of functions ([github.com/stavedb/stave/server/internal/scripting.Lent], for one).
//
// # Guarantees
//
// Those of a command, a reply and a panic are package session's. A client cannot make the server hold memory without
// bound: arguments, queues, replies, buffers and mailboxes have limits ([Options]).
//
// # Order
//
// The commands of a connection are executed and answered in the order in which it sent them. A command sees what others
// have done that were answered before it was sent, on whichever connection and event loop. Clients that wait for the same
// key are served first come, first served. Only with one event loop ([Options.Loops]) is what arrives on several
// connections executed in the order of its arrival, though nobody has waited for a reply.
//
// # Locks
//
// Event loops take turns in the store: a transaction of a loop that writes excludes those of others until its commit. A
// goroutine that has its turn must begin no second transaction, and wait for nothing that may take longer than a batch.
//
// Server.mu guards what Serve has begun, the list of clients and the connections of a listener have mutexes of their own;
// none is held while a command runs or a client is written to. The mutex of pubsub.Hub may be taken with keys locked, by a
// notification, so nothing may lock keys while it holds that.
//
// # Caveats
//
// A PUBLISH to a long channel name that is matched with long patterns takes as long as that takes, but delays nobody
// else. A keyspace notification is matched with the keys of its command locked; in an event loop a command whose
// notifications would take long to match leaves the loop.
//
// Serve refuses addresses that other machines can reach, unless the default user needs a password and the listener
// encrypts (protected.go); docs/SECURITY.md says what keeps strangers out, and what does not. Semantics, replies and
// error texts are those of Redis 7.4; where Stave differs, docs/COMMANDS.md says so.
package server
