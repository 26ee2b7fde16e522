// Package commitlog is the log of a store: it appends commits to the active segment, makes them durable, and seals
// the segment when it is full.
//
// Log takes a Frame, which is a commit without what only its place decides, and gives it a sequence number, an offset and its
// checksums. What the log needs of its store is in an Environment: the rest of the store is unknown here.
//
// A lone writer encodes, writes and returns: no hand-off. A writer that finds another one writing spins for the time of a few
// writes and then has its turn; if that took longer it queues its frame and sleeps, and whoever wrote last writes the whole
// queue with one write (log.go). Those who wait for a disk wait in groups of their own (sync.go). One goroutine makes segments
// ready for use and seals those that are full (rotate.go).
//
// All methods may be called from any goroutine, but for Init, Start and Show, which belong to the opening of the store.
package commitlog
