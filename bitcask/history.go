package bitcask

import (
	"time"

	"github.com/stavedb/stave/bitcask/internal/history"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/system"
)

// A history is an order of commits. The store id says whose the files are; the history id says which order a sequence
// number belongs to. Where a crash loses the tail of the log, its sequence numbers are assigned again, to other
// commits. So a store that others follow notes the history in the system record stave:epoch, and an Open for writing
// that does not follow a clean close begins a new one before it accepts a commit (I3).
//
// What a crash leaves: the record says "open", durably, from before the first commit of an Open
// until Close, which writes "closed" as the last record of the log. So a record "closed", of this
// store and with nothing after it, proves that no commit has been lost.

// History says which history the store is in. Within it a sequence number stands for one commit, permanently.
type History struct {
	Term  uint64 // how many histories came before it; 0 if none was ever noted
	ID    HistoryID
	Began time.Time // zero with Term 0
	Past  []PastHistory
}

// readEpoch is what the log says; nil if the store has noted no history.
func readEpoch(records *system.Records) (*history.Epoch, error) {
	r, _ := records.Get(history.RecordName)
	if len(r.Value) == 0 {
		return nil, nil
	}
	return history.Decode(r.Value)
}

// History says which history the store is in.
func (s *Store) History() (History, error) {
	e, err := readEpoch(&s.system)
	if err != nil {
		return History{}, err
	}
	if e == nil {
		return History{ID: history.First(s.man.Store).ID}, nil
	}
	return History{Term: e.Term, ID: e.ID, Began: time.UnixMilli(e.Began), Past: e.Past}, nil
}

// BeginHistory begins a new history, durably: all commits so far are of the ones before it, all later ones are of it.
// From then on the store notes its history. Errors: ErrReadOnly, ErrClosed, ErrFailed, or the file system's.
func (s *Store) BeginHistory() (History, error) {
	t, err := s.BeginAll(true)
	if err != nil {
		return History{}, err
	}
	e, err := readEpoch(&s.system)
	if err == nil && e == nil {
		e = history.First(s.man.Store)
	}
	if err == nil {
		e, err = e.Next(s.man.Store, s.Sequence()) // no other commit in between: t has every lock
	}
	if err == nil {
		err = t.PutSystem(history.RecordName, e.Encode())
	}
	if err == nil {
		_, err = t.Commit()
	}
	t.End()
	if err == nil {
		err = s.log.Sync()
	}
	if err != nil {
		return History{}, err
	}
	return s.History()
}

// openHistory continues the history of a store that was closed, or begins a new one: sequence
// numbers may have been lost, and be assigned again. In a store without a history it does nothing.
// It is durable when it returns, and no commit is accepted before.
func (s *opener) openHistory() error {
	e, err := readEpoch(&s.system)
	if err != nil || e == nil {
		return err
	}
	last := s.Sequence()
	rec, _ := s.system.Get(history.RecordName)
	if closed := e.Closed && e.Store == s.man.Store && rec.Seq == last; !closed {
		if e, err = e.Next(s.man.Store, last); err != nil {
			return err
		}
	}
	e.Closed = false
	return s.putEpoch(e, reserve.LeaveOpen) // a full disk is freed through an open store
}

// closeHistory says that nothing comes after it.
func (s *Store) closeHistory() error {
	e, err := readEpoch(&s.system)
	if err != nil || e == nil {
		return err
	}
	e.Closed = true
	return s.putEpoch(e, reserve.LeaveHalf)
}

// putEpoch writes the record, durably, while nothing else writes to the store: it is being opened,
// or has been closed. On a full disk it draws on the reserve, down to the part given by leave.
func (s *Store) putEpoch(e *history.Epoch, leave int64) error {
	t := s.newTx(true)
	t.floor = leave
	t.locks.holdAll()
	t.locks.lockStripes()
	t.open = true
	err := t.PutSystem(history.RecordName, e.Encode())
	if err == nil {
		_, err = t.Commit()
	}
	t.End()
	if err != nil {
		return err
	}
	return s.log.Sync()
}

// HistoryID is the name of one order of commits: random, but for that of a store that has never noted one.
type HistoryID = history.ID

// PastHistory is one that the store was in before, by its ID. All its records up to
// Last, and none beyond it, are in the store's past.
type PastHistory = history.Past

// MaxPast is how many past histories are kept, the newest ones.
const MaxPast = history.MaxPast
