// Package ballast keeps the collector of the Go runtime from running too often in a server with little in memory.
//
// The runtime collects when there is as much garbage as it last found live, and no less than 4 MB. With little live that
// is hundreds of times a second alongside a script that fails at once, and each time all clients wait for it. Ballast
// counts as live: memory without pointers that nobody touches, so the system gives no pages for it, and the collector
// has nothing to look at. Then there is at least as much garbage before a collection as there is ballast.
package ballast

import (
	"os"
	"sync/atomic"
)

// size is what garbage may take, in bytes, however little is live.
const size = 32 << 20

var held atomic.Pointer[[]byte]

// Take takes ballast until drop is called, but where the environment says when to collect (GOGC, GOMEMLIMIT). Only a
// program that is a server should: a package that is embedded leaves the runtime to its host. One ballast is enough for
// a process: while there is some, Take and its drop do nothing.
func Take() (drop func()) {
	if Bytes() > 0 || os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	b := make([]byte, size)
	if !held.CompareAndSwap(nil, &b) {
		return func() {}
	}
	release(b)
	return func() { held.CompareAndSwap(&b, nil) }
}

// Without returns n bytes of heap less the ballast. It is never below zero, whenever ballast was taken or dropped.
func Without(n uint64) uint64 { return n - min(n, Bytes()) }

// Bytes is how much of the heap is ballast.
func Bytes() uint64 {
	if b := held.Load(); b != nil {
		return uint64(len(*b))
	}
	return 0
}
