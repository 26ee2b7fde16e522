package commitlog

import "github.com/stavedb/stave/bitcask/internal/segment"

// Stats are the figures of the log at one moment.
type Stats struct {
	Sequence uint64 // of the newest record
	Commits  uint64 // since Open
	Written  int64  // bytes of these commits
	Syncs    uint64 // since Open
	Failed   error  // why writes are refused

	SyncTimes SyncTimes
}

// Stats returns current figures.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Sequence: l.writeSeq - 1, Commits: l.commits, Written: l.appended, Syncs: l.syncing.count, Failed: l.failed, SyncTimes: l.syncing.times}
}

// Err is why the store refuses writes, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Active is the segment that commits go to.
func (l *Log) Active() *segment.Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}
