// Package server speaks the Redis protocol for a store.
//
// [Session] is the heart: a pure state machine, one per connection, that takes bytes in and gives bytes out. It parses
// commands, looks them up in the command table ([Commands]), runs each as one atomic unit of the store, and appends the
// reply. It does no network I/O and starts no goroutine, so that a shell can embed it and a test can drive it.
//
// [Serve] is the transport around it: one goroutine a connection, pipelines answered with one write, limits, time-outs and
// a graceful end. [Server] is what the sessions of one process share: counters, the list of clients, the settings.
//
// The command table is the one source for dispatch, arity, flags, key positions, categories, and the texts that
// COMMAND DOCS and a shell's help show. Handlers are thin: they parse arguments, call a typed handle of package db and
// write the reply. A command that fails has written nothing.
//
// Semantics, replies and error texts are those of Redis 7.4; where Stave differs, docs/COMMANDS.md says so.
package server
