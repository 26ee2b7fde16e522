package db

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/keydir"
)

// The store's clock is the wall's, in every call: when that is put back, TTLs run on from there at once. What has been
// shown as expired stays gone all the same. What has expired is soon deleted; but it is shown as gone before that.
//
// So an operation that meets a passed deadline notes it. The latest one met is clock.shown: whatever is due then is
// gone, even if the wall's clock has not come that far. It is also written to the log, in the system record
// stave:clock, when nothing is locked any more and before the call returns: the store may be closed or killed, and opened
// after the clock has been put back. An operation that meets nothing expired pays nothing.
//
// As long as the clock is not put back, shown is in the past and adds nothing. When it has been put back to before shown, a
// deadline between the two could be that of a key that was shown as gone, or one that is set only now. So the
// first transaction that writes deletes what is due by shown, before it locks anything, and then takes shown back, in memory and
// in the log, with everything locked (settleClock). Open does the same. If that fails, because the disk is full or a hash is damaged,
// nothing that was shown is back, and a deadline in between is refused with ErrClock: what is acknowledged is never hidden.
//
// A store that only reads cannot delete. One that does not follow gets no new deadlines, so shown is enough. One that
// follows does: it believes the note of its writer alone, which the log has, and remembers nothing that it has shown itself.

// ErrClock is returned by a write that sets a deadline which the store has already shown to have passed, before the clock
// was put back, while what was due then cannot be deleted, or if the clock was put back while the transaction ran. The transaction
// has no effect. It can be repeated.
var ErrClock = errors.New("db: the clock has been put back to before what the store has shown as expired")

// clock gives Unix milliseconds.
type clock struct {
	wall  func() time.Time // time.Now, but in tests
	still int64            // it stands at this moment: the clock of a snapshot; 0: it runs. Set before the store is returned

	shown    atomic.Int64 // whatever is due then is gone, whatever the clock says; 0: nothing
	kept     atomic.Int64 // the system record: at most shown
	mu       sync.Mutex   // guards changes of kept, and the way of shown back to 0; taken before keys are locked
	failed   atomic.Bool  // it could not be written, which has been logged
	settling sync.Mutex   // held by whoever settles; guards retry
	retry    backoff.Backoff
}

func (c *clock) now() int64 {
	if c.still != 0 {
		return c.still
	}
	return c.wall().UnixMilli()
}

// read returns the moment, and the one up to which deadlines have passed: a later one if the clock has been put back.
func (c *clock) read() (now, gone int64) {
	shown := c.shown.Load() // first: it is never after a moment that is read later, unless the clock has been put back
	now = c.now()
	return now, max(now, shown)
}

// isBack reports whether the clock has been put back to before what was shown as expired.
func (c *clock) isBack() bool {
	shown := c.shown.Load()
	return shown != 0 && c.now() < shown
}

// show notes that something with a deadline is shown to be gone.
func (c *core) show(deadline int64) {
	if c.opts.Follow || c.replica.is.Load() {
		return
	}
	for {
		shown := c.clock.shown.Load()
		if deadline <= shown || c.clock.shown.CompareAndSwap(shown, deadline) {
			return
		}
	}
}

// passUntil notes that another store, which this one takes the place of, has shown as gone what was due at a moment.
func (s *Store) passUntil(moment int64) error {
	if err := s.guard.check(); err != nil {
		return err
	}
	s.show(moment)
	s.persistShown(moment)
	return nil
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
		t.store.show(deadline)
	}
}

// foundFieldsDue is meet for the fields of a hash that have expired.
func (t *txState) foundFieldsDue(deadlines keydir.Collection) {
	_, first := deadlines.First()
	if !t.due(bitcask.FieldDeadlineOf(first)) {
		return
	}
	due := deadlines.Rank(bitcask.FieldDeadlineScore(t.passed())+1, "")
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
	if moment <= c.clock.kept.Load() || moment > c.clock.shown.Load() {
		return // another call has done so; or the clock has been put back, and it has been deleted
	}
	ticket, err := c.putClock(moment)
	if err == nil {
		c.clock.kept.Store(moment)
		err = c.base.WaitDurable(ticket)
	}
	if err != nil && !c.clock.failed.Swap(true) {
		c.opts.Logger.Warn("a clock that is put back could bring back what has expired", "err", err)
	}
}

// putClock writes the system record. The lock of some key keeps Close waiting.
func (c *core) putClock(moment int64) (uint64, error) {
	t, err := c.base.BeginNow(clockName) // an event loop may read
	if err != nil {
		return 0, err
	}
	defer t.End()
	if err := t.PutSystem(clockName, binary.LittleEndian.AppendUint64(nil, uint64(moment))); err != nil {
		return 0, err
	}
	return t.Commit()
}

// loadShown takes what has been shown as gone from the log: a record of eight bytes, or Open has refused it.
func (c *clock) loadShown(base *bitcask.Store) {
	moment := int64(0)
	if value := base.System(clockName); value != nil {
		moment = int64(binary.LittleEndian.Uint64(value))
	}
	c.kept.Store(moment)
	c.shown.Store(moment)
}

// settle is called before a transaction locks anything.
func (s *Store) settle(a access) {
	if a == writing && s.clock.isBack() && !s.replica.is.Load() {
		s.settleClock()
	}
	if a == writing {
		s.makeRoom(true)
		s.awaitDisk()
	}
}

// settleClock deletes what was shown as gone before the clock was put back, and takes the note of it back.
func (s *Store) settleClock() {
	if s.opts.ReadOnly || s.opts.ReadDamaged {
		return
	}
	c := &s.clock
	c.settling.Lock()
	defer c.settling.Unlock()
	if !c.isBack() || !c.retry.Due() {
		return
	}
	moment := time.UnixMilli(c.shown.Load())
	const every, longest = 100 * time.Millisecond, 10 * time.Second
	if err := s.deleteShown(); err == nil {
		c.retry.Worked()
		s.opts.Logger.Warn("the clock has been put back; what was shown as expired is deleted", "shown", moment)
	} else if c.retry.Failed(every, longest, err) {
		s.opts.Logger.Error("the clock has been put back, and what was shown as expired cannot be deleted", "shown", moment, "err", err)
	}
}

// deleteShown deletes all that is due by the latest deadline shown as passed, and the note of that.
func (s *Store) deleteShown() error {
	const most = 100 // others are at work that roll back deletes of what is due, which is rare
	for range most {
		moment := s.clock.shown.Load()
		for n := 1; n > 0; {
			var err error
			if n, err = s.expireUntil(moment, time.Minute, 1<<20, nil); err != nil {
				return err
			}
		}
		if done, err := s.forgetShown(moment); done || err != nil {
			return err
		}
	}
	return errors.New("something is left that has expired")
}

// forgetShown takes the note back if nothing is left that was due at its moment. All keys are locked meanwhile: no
// transaction runs that has shown something as gone, or will roll back a delete.
func (s *Store) forgetShown(moment int64) (done bool, err error) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	t, err := s.base.BeginNow() // readers wait for clock.mu
	if err != nil {
		return false, err
	}
	defer t.End()
	if s.clock.shown.Load() != moment || s.deadlines.AnyDue(moment) || s.fields.AnyDue(moment) {
		return false, nil
	}
	if err := t.PutSystem(clockName, nil); err != nil {
		return false, err
	}
	if _, err := t.Commit(); err != nil {
		return false, err
	}
	s.clock.kept.Store(0)
	s.clock.shown.Store(0)
	return true, nil
}
