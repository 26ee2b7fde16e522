// Package clients has what other goroutines may see of the client of a session, and do to it: its line of CLIENT LIST,
// its driver (which moves its bytes: wake, kill, probe), the end of a wait, and the list of all that are connected.
//
// A session writes to its [Client] with atomics while others read, so nobody waits for anybody, and what they see is not
// of one moment. A session may be given another driver between two commands ([Client.Attach]): nothing assumes that the
// one that it began with is the one that it has. No lock of this package is held while a driver is called, but for the
// mutex of a [Wait], which its holder keeps for a moment.
package clients
