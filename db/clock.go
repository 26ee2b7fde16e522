package db

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// An expiry that has been shown stays, whatever the clock says. While a store is open its clock
// never goes backwards. What has expired is soon deleted; but it is shown as gone before that, and
// a store that is closed or killed in between may be opened after the clock has been put back.
//
// So an operation that meets a passed deadline notes it, and the latest one met is written to the
// log, in the system record stave:clock, when nothing is locked any more and before the call
// returns. An Open whose clock is before that moment deletes what was due then, and removes the
// record: from there on the clock counts again. An operation that meets nothing expired pays
// nothing.

// clock gives Unix milliseconds that never go backwards: a clock that is set
// back does not bring back a key that was seen to be gone.
type clock struct {
	still  bool // it stands at latest: the clock of a snapshot; set before the store is returned
	latest atomic.Int64
	kept   atomic.Int64 // the system record: all keys due then stay gone
	mu     sync.Mutex   // guards changes of kept
	failed atomic.Bool  // it could not be written, which has been logged
}

func (c *clock) now() int64 {
	if c.still {
		return c.latest.Load()
	}
	now := time.Now().UnixMilli()
	for {
		latest := c.latest.Load()
		if now <= latest {
			return latest
		}
		if c.latest.CompareAndSwap(latest, now) {
			return now
		}
	}
}

// clockName is the name of the system record: the latest deadline that has been
// shown to have passed, Unix ms as i64.
const clockName = "clock"

// foundDue notes that something is shown to be gone, or deleted if the transaction
// is committed, because its deadline has passed.
func (t *txState) foundDue(deadline int64, deleted bool) {
	if deleted {
		t.deleted = max(t.deleted, deadline)
	} else {
		t.shownGone = max(t.shownGone, deadline)
	}
}

// foundFieldsDue is meet for the fields of a hash that have expired.
func (t *txState) foundFieldsDue(deadlines keydir.Collection) {
	_, first := deadlines.First()
	if !t.due(bitcask.FieldDeadlineOf(first)) {
		return
	}
	due := deadlines.Rank(bitcask.FieldDeadlineScore(t.now())+1, "")
	deadlines.AscendRank(due-1, func(_ []byte, last uint64) bool {
		t.foundDue(bitcask.FieldDeadlineOf(last), false)
		return false
	})
}

// persistShown makes it durable that keys due at a moment are gone. Nothing is locked by the
// caller. A store that is read-only, or refuses writes, cannot.
func (c *core) persistShown(moment int64) {
	if moment <= c.clock.kept.Load() || c.opts.ReadOnly || c.opts.ReadDamaged {
		return
	}
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	if moment <= c.clock.kept.Load() {
		return // another call has done so
	}
	ticket, err := c.putClock(binary.LittleEndian.AppendUint64(nil, uint64(moment)))
	if err == nil {
		c.clock.kept.Store(moment)
		err = c.base.WaitDurable(ticket)
	}
	if err != nil && !c.clock.failed.Swap(true) {
		c.opts.Logger.Warn("a clock that is put back could bring back what has expired", "err", err)
	}
}

// putClock writes the system record. The lock of some key keeps Close waiting.
func (c *core) putClock(value []byte) (uint64, error) {
	t, err := c.base.Begin(true, clockName)
	if err != nil {
		return 0, err
	}
	defer t.End()
	if err := t.PutSystem(clockName, value); err != nil {
		return 0, err
	}
	return t.Commit()
}

// openClock makes sure that nothing is back that was shown to be gone, before
// the store is returned.
func (s *Store) openClock() {
	value := s.base.System(clockName) // of eight bytes, or Open has refused it
	if value == nil {
		return
	}
	moment := int64(binary.LittleEndian.Uint64(value))
	s.clock.kept.Store(moment)
	if time.Now().UnixMilli() >= moment {
		return
	}
	s.opts.Logger.Warn("the clock has been put back", "behind", time.UnixMilli(moment))
	s.clock.latest.Store(moment)
	if s.opts.ReadOnly || s.opts.ReadDamaged {
		return // it stands still until the store is closed
	}
	for {
		n, err := s.Expire(time.Minute, 1<<20)
		if err != nil { // as above
			s.opts.Logger.Warn("not all that has expired could be deleted; the clock stands still", "err", err)
			return
		}
		if n == 0 {
			break
		}
	}
	if _, err := s.putClock(nil); err != nil {
		s.opts.Logger.Warn("the clock stands still", "err", err)
		return
	}
	s.clock.kept.Store(0)
	s.clock.latest.Store(0)
}
