// Package debug is DEBUG, which is for tests of clients and of servers. It is off by default: SLEEP keeps a connection
// and its goroutine busy, and DIGEST locks the store. What would end the process, or corrupt it, is not there.
package debug
