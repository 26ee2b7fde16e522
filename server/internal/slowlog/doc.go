// Package slowlog keeps the last commands that took long, and is SLOWLOG: a [Log] with a bound, and what an [Entry]
// shows of a command. COMMANDLOG, of Valkey, has two more such logs, of long requests and of long replies ([Logs]).
//
// An entry is made after the command has run, with copies of its arguments: the parser's memory is used again. A batch
// is measured as a whole, because its commands share locks and a commit; the entry shows the first and says how many
// more there were. Secrets must have been removed from the arguments before.
//
// A log may be used by several goroutines. Its mutex is held for some instructions, or while the reply of SLOWLOG GET
// is written into memory.
package slowlog
