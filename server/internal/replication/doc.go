// Package replication speaks Redis's replication protocol: bytes in, bytes out. It knows no socket, starts no goroutine and
// executes nothing; what it needs of the server it gets as functions.
//
// [Link] is the side of a replica.
package replication
