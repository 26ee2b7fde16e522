// Package command is the command table: for each command a row, and for each command on keys, and each that needs
// nothing but its arguments, the handler that executes it.
//
// # What it is
//
// A [Command] is a row: name, number of arguments, flags, positions of the keys, group, handler. The
// texts that COMMAND DOCS, HELP and docs/COMMANDS.md show are in docs, a file for each of Redis's
// groups (documentation.go). A [Table] finds rows by name and gives them their texts. The rows
// and handlers of a group of Redis's commands stand in one file, named by the noun that packages
// structures and db use too: string.go, hash_expire.go, sortedset_range.go.
//
// A [Call] is one execution. A handler parses the [Args] (args.go), calls a typed handle of
// package db on Call.Tx, and writes the reply (reply.go); it holds no algorithm. What it needs of
// the session, and that is little, is in a [Host]: the store, for commands on the whole keyspace;
// how to wait, for commands such as BLPOP.
//
// Package server adds the commands that work on a session (MULTI, SUBSCRIBE, CLIENT, CONFIG, INFO
// ...) to those of [Data], and decides when a command runs, in which transaction, and what becomes
// of its reply.
//
// # Guarantees
//
// Replies and error texts are those of Redis 7.4, to the byte, and so is the order of the checks
// where it shows: a syntax error before WRONGTYPE, say, or after it. The differential test compares
// both with a real server.
//
// A handler that returns an error has written nothing that stays: its caller rolls the transaction
// back to where it was before the call and truncates the reply. So handlers write and reply as they
// go.
//
// A command touches no keys but those that [Command.AppendKeys] finds in its arguments, for only
// those are locked. A command that may read others says so by [Command.ReadsUnknownKeys], and has
// WholeKeyspace or runs over the whole store.
//
// # Concurrency
//
// Rows and tables are read-only once they are made. A Call belongs to one session and is reused by
// it: neither the call nor its arguments may be kept. What a handler does while it waits (see
// [Call.Await]) runs in the goroutine of the writer that serves it, with keys locked; the reply is
// written by the session afterwards.
package command
