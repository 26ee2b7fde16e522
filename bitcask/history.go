package bitcask

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/stavedb/stave/bitcask/internal/reserve"
)

// A history is an order of commits. The store id says whose the files are; the
// history id says which order a sequence number belongs to. Where the tail of
// the log is lost in a crash the sequence numbers in it are given again, to
// other commits. So a store that others follow notes the history in the system
// record stave:epoch, and an Open for writing that does not follow a clean
// close begins a new one before it accepts a commit (I3).
//
// What a crash leaves behind: the record says "open", durably, from before the
// first commit of an Open until Close, which says "closed" in the last record
// of the log. So whoever finds it closed, by this store, and nothing after it,
// knows that no commit has been lost.

// epochName is the name of the system record.
const epochName = "epoch"

// HistoryID is the name of one order of commits: random, but for that of a store
// that has never noted one.
type HistoryID [20]byte

// String returns it as 40 hex digits.
func (id HistoryID) String() string { return fmt.Sprintf("%x", id[:]) }

// History says which history the store is in. Within it a sequence number
// means one commit for ever.
type History struct {
	Term  uint64 // how many histories came before it; 0 if none was ever noted
	ID    HistoryID
	Began time.Time // zero with Term 0
	Past  []PastHistory
}

// PastHistory is one that the store was in before. All its records up to Last,
// and none beyond it, are in the store's past.
type PastHistory struct {
	ID   HistoryID
	Last uint64 // sequence of the last record
}

// MaxPast is how many past histories are kept, the newest ones.
const MaxPast = 32

// epoch is the value of the system record.
//
//	term u64 | history id 20 | began i64, Unix ms | store id 16 | closed u8 | n u32 | n times: history id 20, last sequence u64
type epoch struct {
	term   uint64
	id     HistoryID
	began  int64
	store  [16]byte // that noted it: a copy is not closed because its original was
	closed bool     // nothing comes after this record
	past   []PastHistory
}

const (
	epochSize     = 8 + 20 + 8 + 16 + 1 + 4
	epochPastSize = 20 + 8
)

func (e *epoch) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, e.term)
	b = append(b, e.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.began))
	b = append(b, e.store[:]...)
	closed := byte(0)
	if e.closed {
		closed = 1
	}
	b = append(b, closed)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.past)))
	for _, p := range e.past {
		b = append(b, p.ID[:]...)
		b = binary.LittleEndian.AppendUint64(b, p.Last)
	}
	return b
}

// decodeEpoch is the inverse of encode. The record it is from has been
// verified: what does not parse is of a newer version.
func decodeEpoch(b []byte) (*epoch, error) {
	if len(b) < epochSize || b[52] > 1 {
		return nil, errEpoch
	}
	e := &epoch{
		term: binary.LittleEndian.Uint64(b), id: HistoryID(b[8:28]), began: int64(binary.LittleEndian.Uint64(b[28:])),
		store: [16]byte(b[36:52]), closed: b[52] == 1,
	}
	n := binary.LittleEndian.Uint32(b[53:])
	if b = b[epochSize:]; n > MaxPast || len(b) != int(n)*epochPastSize {
		return nil, errEpoch
	}
	for ; len(b) > 0; b = b[epochPastSize:] {
		e.past = append(e.past, PastHistory{HistoryID(b[:20]), binary.LittleEndian.Uint64(b[20:])})
	}
	return e, nil
}

var errEpoch = fmt.Errorf("system record %q: %w", epochName, ErrVersion)

// first is the history of a store that has noted none: its id is derived from
// the store id, so that stores without followers need no record.
func firstEpoch(store [16]byte) *epoch {
	sum := sha256.Sum256(append([]byte("stave history "), store[:]...))
	return &epoch{id: HistoryID(sum[:20]), store: store}
}

// next is the history that begins after the record with the sequence last.
func (e *epoch) next(store [16]byte, last uint64) (*epoch, error) {
	if e.term == math.MaxUint64 {
		return nil, fmt.Errorf("term of the history: %w", ErrFull)
	}
	next := &epoch{term: e.term + 1, began: time.Now().UnixMilli(), store: store}
	if _, err := io.ReadFull(crand.Reader, next.id[:]); err != nil {
		return nil, err
	}
	past := append(e.past[:len(e.past):len(e.past)], PastHistory{e.id, last})
	next.past = past[max(len(past)-MaxPast, 0):]
	return next, nil
}

// readEpoch is what the log says; nil if the store has noted no history.
func (s *Store) readEpoch() (*epoch, error) {
	b := s.System(epochName)
	if b == nil {
		return nil, nil
	}
	return decodeEpoch(b)
}

// History says which history the store is in.
func (s *Store) History() (History, error) {
	e, err := s.readEpoch()
	if err != nil {
		return History{}, err
	}
	if e == nil {
		return History{ID: firstEpoch(s.man.Store).id}, nil
	}
	return History{Term: e.term, ID: e.id, Began: time.UnixMilli(e.began), Past: e.past}, nil
}

// BeginHistory begins a new history, durably: all commits so far are of the
// ones before it, all later ones are of it. From then on the store notes its
// history. Errors: ErrReadOnly, ErrClosed, ErrFailed, or the file system's.
func (s *Store) BeginHistory() (History, error) {
	t, err := s.BeginAll(true)
	if err != nil {
		return History{}, err
	}
	e, err := s.readEpoch()
	if err == nil && e == nil {
		e = firstEpoch(s.man.Store)
	}
	if err == nil {
		e, err = e.next(s.man.Store, s.Sequence()) // no other commit meanwhile: t has every lock
	}
	if err == nil {
		err = t.PutSystem(epochName, e.encode())
	}
	if err == nil {
		_, err = t.Commit()
	}
	t.End()
	if err == nil {
		err = s.log.sync()
	}
	if err != nil {
		return History{}, err
	}
	return s.History()
}

// openHistory goes on with the history of a store that was closed, or begins a
// new one: sequence numbers may have been lost, and be given again. In a store
// that has noted none it does nothing. It is durable when it returns, and no
// commit is accepted before.
func (s *Store) openHistory() error {
	e, err := s.readEpoch()
	if err != nil || e == nil {
		return err
	}
	last := s.Sequence()
	rec, _ := s.system.get(epochName)
	if closed := e.closed && e.store == s.man.Store && rec.seq == last; !closed {
		if e, err = e.next(s.man.Store, last); err != nil {
			return err
		}
	}
	e.closed = false
	return s.putEpoch(e, reserve.LeaveOpen) // a full disk is freed through an open store
}

// closeHistory says that nothing comes after it.
func (s *Store) closeHistory() error {
	e, err := s.readEpoch()
	if err != nil || e == nil {
		return err
	}
	e.closed = true
	return s.putEpoch(e, reserve.LeaveHalf)
}

// putEpoch writes the record, durably, in a store that nobody else writes to:
// it is being opened, or has been closed. On a full disk it draws on the
// reserve, but for the part that it leaves.
func (s *Store) putEpoch(e *epoch, leave int64) error {
	t := s.newTx(true)
	t.all, t.floor = true, leave
	for i := range s.stripes {
		t.lockStripe(i)
	}
	t.open = true
	err := t.PutSystem(epochName, e.encode())
	if err == nil {
		_, err = t.Commit()
	}
	t.End()
	if err != nil {
		return err
	}
	return s.log.sync()
}
