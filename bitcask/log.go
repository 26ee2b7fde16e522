package bitcask

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
)

// commitLog appends commits to the active segment and makes them durable.
//
// A lone writer encodes, writes and returns: no hand-off. Writers that come
// while a write is going on queue their frames behind it; whoever wakes first
// writes them all with one write. With SyncAlways the same holds for syncs:
// one serves every writer that waits for it.
type commitLog struct {
	store *Store

	mu       sync.Mutex // guards all below; never held during a write or a commit's sync
	changed  sync.Cond  // a write or sync has ended
	active   *segment
	offset   int64 // where the next frame goes, behind the queued ones
	synced   int64 // everything in active before this is on disk
	nextSeq  uint64
	foot     footer // of active, so far
	writing  bool
	syncing  bool
	queue    *writeGroup
	writeSeq uint64 // all below are written
	syncSeq  uint64 // all below are on disk
	closeLen int64  // length of active that the manifest calls closed
	failed   error
	syncs    uint64 // number of syncs made, for Stats
}

// writeGroup is frames that one write will carry.
type writeGroup struct {
	buf   []byte
	at    int64
	recs  uint64
	first uint64 // sequence of the first record
	next  uint64 // sequence after the last
	done  bool
	err   error
}

// append writes the commit of t and returns where its frame lies. The
// sequence numbers of its records begin at seq.
func (l *commitLog) append(t *Tx) (sg *segment, at int64, seq uint64, err error) {
	frame, positions := t.frame()
	n := uint64(len(positions))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.makeRoomLocked(int64(len(frame))); err != nil {
		return nil, 0, 0, err
	}
	sg, at, seq = l.active, l.offset, l.nextSeq
	l.offset += int64(len(frame))
	l.nextSeq += n
	h := frameHeader{many: n > 1, seq: seq, synced: uint32(l.synced)}
	finishFrame(frame, h, sg.seal, uint32(at), positions)

	// Never ahead of queued frames: a hole before an acknowledged commit would
	// be taken for a torn tail.
	if !l.writing && l.queue == nil {
		l.writeLocked(&writeGroup{buf: frame, at: at, recs: n, first: seq, next: l.nextSeq}, &err)
		return sg, at, seq, err
	}
	if l.queue == nil {
		l.queue = &writeGroup{at: at, first: seq}
	}
	g := l.queue
	g.buf = append(g.buf, frame...)
	g.recs += n
	g.next = l.nextSeq
	for !g.done {
		if !l.writing && l.queue == g {
			l.queue = nil
			l.writeLocked(g, &g.err)
			continue
		}
		l.changed.Wait()
	}
	return sg, at, seq, g.err
}

// writeLocked writes a group, unlocking meanwhile.
func (l *commitLog) writeLocked(g *writeGroup, errp *error) {
	l.writing = true
	sg := l.active
	l.mu.Unlock()
	_, err := sg.file.WriteAt(g.buf, g.at)
	l.mu.Lock()
	l.writing = false
	if err == nil {
		sg.size.Store(g.at + int64(len(g.buf)))
		if l.foot.records == 0 {
			l.foot.minSeq = g.first
		}
		l.foot.records += g.recs
		l.foot.maxSeq = g.next - 1
		l.writeSeq = g.next
	} else {
		*errp = l.writeFailedLocked(sg, g.at, err)
	}
	g.done = true
	l.changed.Broadcast()
}

// writeFailedLocked cuts off what a failed write may have left. If that works
// and the disk was merely full, the store goes on; else it refuses writes.
// Frames queued behind the failed one carry offsets that no longer hold, so
// they fail with it.
func (l *commitLog) writeFailedLocked(sg *segment, at int64, cause error) error {
	err := fmt.Errorf("%s: writing at %d: %w", sg.name, at, cause)
	l.offset = at
	if g := l.queue; g != nil {
		g.err, g.done, l.queue = err, true, nil
	}
	cut := sg.file.Truncate(at)
	if cut != nil || !outOfSpace(cause) {
		return l.failLocked(errors.Join(err, cut))
	}
	return err
}

// outOfSpace reports whether a write may work again later.
func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// failLocked makes the store refuse writes. The first cause stays.
func (l *commitLog) failLocked(cause error) error {
	if l.failed == nil {
		l.failed = fmt.Errorf("%w: %w", ErrFailed, cause)
		l.store.opts.Logger.Error("store refuses writes", "cause", cause)
	}
	l.changed.Broadcast()
	return l.failed
}

func (l *commitLog) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failLocked(cause)
}

// waitSynced returns once every record before next is on disk.
func (l *commitLog) waitSynced(next uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncSeq < next {
		if l.failed != nil {
			return l.failed
		}
		if l.syncing {
			l.changed.Wait()
			continue
		}
		if err := l.syncLocked(); err != nil {
			return err
		}
	}
	return nil
}

// syncLocked makes what is written durable, unlocking meanwhile. A sync that
// failed is never tried again: the kernel may have dropped the pages, and a
// second sync would succeed without them.
func (l *commitLog) syncLocked() error {
	l.syncing = true
	sg, end, seq := l.active, l.active.size.Load(), l.writeSeq
	l.mu.Unlock()
	err := sg.file.Sync()
	l.mu.Lock()
	l.syncing = false
	l.syncs++
	if err != nil {
		return l.failLocked(fmt.Errorf("%s: sync: %w", sg.name, err))
	}
	l.synced, l.syncSeq = end, max(l.syncSeq, seq)
	l.changed.Broadcast()
	return nil
}

// sync makes everything written so far durable.
func (l *commitLog) sync() error {
	l.mu.Lock()
	next := l.writeSeq
	l.mu.Unlock()
	return l.waitSynced(next)
}
