// Package history keeps the lines of former shells in a file that only its owner can read. What may hold a password
// never reaches the file:
// a history that leaks is worse than one that forgets. A [List] belongs to one goroutine.
package history
