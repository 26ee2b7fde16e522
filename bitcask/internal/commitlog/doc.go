// Package commitlog is the log of a store: it appends commits to the active segment, makes them durable, and seals
// the segment when it is full.
//
// Log takes a Frame, which is a commit without the parts that depend on its place, and gives it a sequence number, an
// offset and its checksums. The log reaches its store through an Environment: the rest of the store is unknown here.
//
// A lone writer encodes, writes and returns: no hand-off. A writer that finds another one writing spins for the time of
// a few writes and then writes itself. If that takes longer, it queues its frame and parks, and the last writer writes
// the whole queue with one write (log.go). Writers that wait for a disk sync wait in groups of their own (sync.go). One
// goroutine makes segments ready for use and seals the full ones (rotate.go).
//
// All methods may be called from any goroutine, but for Init, Start and Show, which belong to the opening of the store.
package commitlog
