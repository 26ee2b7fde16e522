package commitlog

import (
	"fmt"
	"runtime"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// Making commits durable. One sync serves every commit written before it began. A writer that
// arrives during a sync joins the group of the next one; the first of that group makes the sync for
// all of it.
//
// I10: a sync that fails is never repeated, for after it the kernel may call pages
// clean that it has not written. The log is closed to writes from then on.

// syncState is the part of the log about syncs. log.mu guards it.
type syncState struct {
	owned  bool       // a writer makes a sync, or has been assigned to
	going  bool       // right now
	next   *syncGroup // the writers that the sync in progress may not serve
	seq    uint64     // all records below are on disk
	count  uint64     // syncs made, for Stats
	expect int        // how many may want the next one: those of the last, and those that came since
	took   time.Duration
	times  SyncTimes
	cuts   uint64 // so many of the log's truncations are on disk
}

// syncGroup is those that one sync will serve. The first of them waits for
// turn, the others for done, as in a writeGroup.
type syncGroup struct {
	members int
	upTo    uint64 // they wait for all records below
	turn    chan struct{}
	done    chan struct{}
	err     error // valid once done is closed
}

// WaitSynced returns once every record before next is on disk.
func (l *Log) WaitSynced(next uint64) error { return l.syncThrough(next, false) }

// IsSynced reports whether every record before next is on disk.
func (l *Log) IsSynced(next uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncing.seq >= next
}

// syncThrough is WaitSynced. With force, what failed writes have left is removed from the disk,
// too: a power cut must not bring back a write that failed.
func (l *Log) syncThrough(next uint64, force bool) error {
	l.mu.Lock()
	ss := &l.syncing
	if ss.seq >= next && (!force || ss.cuts == l.cuts) {
		l.mu.Unlock()
		return nil
	}
	if !ss.owned {
		ss.owned = true
		return l.syncAndUnlock(next, 1)
	}
	g := ss.next
	if g == nil {
		g = &syncGroup{turn: make(chan struct{}, 1), done: make(chan struct{})}
		ss.next = g
	}
	g.members++
	g.upTo = max(g.upTo, next)
	first := g.members == 1
	l.mu.Unlock()
	if !first {
		<-g.done
	} else if _, mine := <-g.turn; mine {
		l.mu.Lock()
		return l.syncAndUnlock(next, 0)
	}
	return g.err
}

// syncAndUnlock makes one sync, for the caller and for every writer that has come by the time it
// begins, and passes the turn on. alone is 1 if the caller does not belong to the waiting group,
// else 0.
func (l *Log) syncAndUnlock(next uint64, alone int) error {
	defer l.mu.Unlock()
	ss := &l.syncing
	l.gatherLocked(alone)
	g := ss.next
	ss.next, ss.expect = nil, alone
	if g != nil {
		next = max(next, g.upTo)
		ss.expect += g.members
	}
	var err error
	if ss.seq < next || ss.cuts < l.cuts {
		err = l.syncLocked(next)
	}
	if g != nil {
		g.err = err
		close(g.turn)
		close(g.done)
	}
	if ss.next != nil {
		ss.expect += ss.next.members
		ss.next.turn <- struct{}{}
	} else {
		ss.owned = false
	}
	return err
}

// gatherLocked yields to the writers that the last sync has just released, as long as they keep
// coming: writers that are in time share this sync. All of it takes no longer than a sync does, and
// a lone writer does not wait.
func (l *Log) gatherLocked(alone int) {
	ss := &l.syncing
	if ss.expect <= 1 {
		return
	}
	begin := time.Now()
	came, last := 0, begin
	for range gatherRounds { // time alone is no bound: it may stand still (testing/synctest)
		here, now := alone, time.Now()
		if ss.next != nil {
			here += ss.next.members
		}
		if here > came {
			came, last = here, now
		}
		if here >= ss.expect || l.failed != nil || now.Sub(last) > ss.took/gatherPart || now.Sub(begin) > ss.took {
			return
		}
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
}

const (
	// gatherPart is the part of the time of a sync after which a writer that has
	// not come yet is not waited for.
	gatherPart = 4
	// gatherRounds limits the checks for further writers, to a fraction of a millisecond: a slow
	// disk must not cost a processor.
	gatherRounds = 1000
)

// syncLocked makes durable what is written, and releases mu during the sync. A sync that failed is
// never tried again: the kernel may have dropped the pages, and a second sync would succeed without
// them.
func (l *Log) syncLocked(next uint64) error {
	// I11: nothing in the active segment counts as synced
	// before all of the one before it is on disk (rotate.go).
	for sl := l.rotation.sealing; sl != nil && !sl.synced && l.failed == nil; sl = l.rotation.sealing {
		l.mu.Unlock()
		<-sl.onDisk
		l.mu.Lock()
	}
	ss := &l.syncing
	if l.failed != nil {
		return l.failed
	}
	if ss.seq >= next && ss.cuts == l.cuts {
		return nil
	}
	cuts := l.cuts // in this segment, or in the one before, which has been synced since
	sg, end, seq := l.active, l.active.Size.Load(), l.writeSeq
	ss.going = true
	l.mu.Unlock()
	begin := time.Now()
	err := sg.File.Sync()
	sg.NoteSynced()
	took := time.Since(begin)
	unlinked := l.env.Unlinked(sg)
	l.mu.Lock()
	ss.going = false
	ss.count++
	ss.took = took
	ss.times.add(took)
	if l.waiting > 0 {
		l.changed.Broadcast()
	}
	if err != nil {
		return l.failLocked(fmt.Errorf("%s: sync: %w", sg.Name, err))
	}
	if unlinked && l.active == sg { // else a merge may have taken it
		return l.failLocked(fmt.Errorf("%w: %s", failure.ErrDirectoryGone, sg.Name))
	}
	if l.active == sg {
		l.synced = end
	}
	ss.seq, ss.cuts = max(ss.seq, seq), cuts
	return nil
}

// Sync makes everything written so far durable.
func (l *Log) Sync() error {
	l.mu.Lock()
	next := l.writeSeq
	l.mu.Unlock()
	return l.syncThrough(next, true)
}
