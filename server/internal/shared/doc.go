// Package shared has what the sessions of one server share: counters, settings and users as they are now, the list of
// clients, the hub of messages, the table of tracked keys, the slow log, pauses, the memory that replies may take.
//
// It executes nothing, and knows neither sessions nor sockets: it is below both. [State] has all of it, [Settings] make a
// value of the table of settings so, at the start, by CONFIG SET and by a reload. What the server as a whole does for a
// command, or where it listens, is lent as functions ([ServerFuncs], [Listening]).
//
// Everything may be used by several goroutines. Nothing here may lock keys while it holds a mutex of its own, because
// some are taken with keys locked: those of the list of clients and of the hub.
package shared
