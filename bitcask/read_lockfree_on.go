//go:build (amd64 || arm64) && !race && !stave_locked

package bitcask

// lockFree says that reads of strings may search the keydir without a lock. That is a race in terms
// of the Go memory model, so the race detector gets the locked path, and so do processors whose
// memory order has not been examined (see keydir/slots_lockfree.go for the conditions). The build
// tag stave_locked turns it off, to measure its gain: see db's BenchmarkGetAlongside.
const lockFree = true
