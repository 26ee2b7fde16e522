//go:build (amd64 || arm64) && !race && !stave_locked

package bitcask

// lockFree says that reads of strings may look at the keydir without a lock. That is
// a race in terms of the Go memory model, so the race detector gets the locked path,
// and so do processors whose order of loads and stores nobody has looked at (see
// keydir/slots_lockfree.go for what has to hold). The build tag stave_locked turns it
// off, to measure what it gives: see db's BenchmarkGetAlongside.
const lockFree = true
