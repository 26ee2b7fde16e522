// Package remote is a connection to a server, a Stave or a Redis, as a client has it.
//
// A connection is made late, and again after a failure: a shell that is left open over lunch finds
// its server restarted. greeting repeats what the connection had set and the server forgot; an open
// transaction is lost, and the prompt says so. A command whose connection broke
// is not sent twice, for it may have run.
//
// A [Conn] belongs to one goroutine.
package remote
