package bitcask

import (
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// Effects are what a commit amounts to, in a form that the log does not look into: the owner of the store gives them to
// a transaction, and gets them back in the order of the log. Replicas are fed with them.
//
// A commit that changes keys or libraries and has none would be missed by every replica. It fails the tests; a program
// gets MissingEffects for it.

// MissingEffects stands for the effects of a commit that has none and changes keys or libraries.
var MissingEffects any = new(byte)

// effects says that commits must have some.
type effects struct{ wanted atomic.Bool }

// OnWritten calls fn for each commit with effects from now on, right after it is in the log and before anybody sees it,
// with the sequence number after it. That is the order of the log, and what a snapshot holds (SnapshotOptions.AtCut).
// fn is called with the log locked: it must not use the store, and must be O(1). Every transaction that changes keys or
// libraries has effects from now on. nil ends that.
func (s *Store) OnWritten(fn func(effects any, next uint64)) {
	if fn == nil {
		s.effects.wanted.Store(false)
	}
	s.log.OnWritten(fn)
	if fn != nil {
		s.effects.wanted.Store(true)
	}
}

// IsOnDisk reports whether every record before next is on disk, whatever the sync mode.
func (s *Store) IsOnDisk(next uint64) bool { return s.log.IsSynced(next) }

// NextSequence is the sequence number of the next record to be written.
func (s *Store) NextSequence() uint64 { return s.log.Written() }

// AwaitWriters returns when every transaction has ended that had begun before the call. It delays those that begin
// meanwhile for one stripe at a time. The caller holds none.
func (s *Store) AwaitWriters() error {
	for stripe := range keydir.Stripes {
		t := s.newTx(false)
		t.locks.whole = true
		t.locks.hold(stripe) // it need not be loaded: nothing is looked up
		t.locks.acquire()
		err := t.begun()
		t.Recycle()
		if err != nil {
			return err
		}
	}
	return nil
}

// SetEffects gives the transaction what its commit amounts to.
func (t *Tx) SetEffects(effects any) { t.effects = effects }

// missing is MissingEffects, if the transaction changes what they tell of.
func (t *Tx) missing() any {
	for i := range t.recs.Len() {
		r := t.recs.At(i)
		_, _, library := system.LibraryOf(string(r.key(t.buf)))
		if r.row().Home == format.HomeSystem && !library {
			continue
		}
		if testing.Testing() {
			panic("BUG: a commit changes keys or libraries and has no effects")
		}
		return MissingEffects
	}
	return nil
}
