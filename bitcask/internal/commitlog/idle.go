package commitlog

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
)

// NoteIdle, which one goroutine calls at intervals, notes in the manifest how far the log reaches when there has been
// no write since the last call: an edit of type close, as Close makes it. From then on no byte before that end can pass
// for one that a crash cut short, whatever the sync mode. No later frame vouches for the frames at the end of the log.
// It reports false if the store has failed.
//
// A store that is written to all the time pays nothing. One with pauses pays a sync of the manifest, and with SyncNone
// one of the log, for each pause.
func (l *Log) NoteIdle() (more bool) {
	l.mu.Lock()
	seq := l.writeSeq
	quiet := seq == l.idleSeq && !l.writing && l.queue == nil && l.rotation.sealing == nil
	end := l.active.Size.Load()
	due := quiet && end != l.closeLen && end != format.SegmentHeaderSize
	failed := l.failed != nil
	l.idleSeq = seq
	l.mu.Unlock()
	if failed || !due {
		return !failed
	}
	if err := l.Sync(); err != nil {
		l.env.Logger.Error("sync of an idle store", "err", err)
		return false
	}
	return l.mark()
}

// mark has the manifest note the end of the active segment, as far as it is synced.
func (l *Log) mark() bool {
	l.mu.Lock()
	sg, end := l.active, l.synced
	if end == l.closeLen || end == format.SegmentHeaderSize || end != sg.Size.Load() {
		l.mu.Unlock()
		return true // not idle any more
	}
	body := l.markLocked(end)
	l.mu.Unlock()
	err := l.env.LogEdit(manifest.EditClose, body)
	if failure.IsRetryable(err) {
		return true // the disk is full: the next tick tries again
	}
	if err != nil {
		return l.Fail(fmt.Errorf("noting the end of the log: %w", err)) == nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == sg {
		l.closeLen = end
	}
	return true
}

// markLocked is the body of the edit that says: the active segment is on disk up to end, and all sequence numbers so
// far are taken.
func (l *Log) markLocked(end int64) []byte {
	return manifest.CloseBody(l.active.ID, uint64(end), l.writeSeq-1)
}
