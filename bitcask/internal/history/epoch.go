package history

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// ID is the name of one order of commits: random, but for that of a store
// that has never noted one.
type ID [20]byte

// String returns it as 40 hex digits.
func (id ID) String() string { return fmt.Sprintf("%x", id[:]) }

// Past is one that the store was in before. All its records up to Last,
// and none beyond it, are in the store's past.
type Past struct {
	ID   ID
	Last uint64 // sequence of the last record
}

// MaxPast is how many past histories are kept, the newest ones.
const MaxPast = 32

// Epoch is the value of the system record.
//
//	term u64 | history id 20 | began i64, Unix ms | store id 16 | closed u8 | n u32 | n times: history id 20, last sequence u64
type Epoch struct {
	Term   uint64
	ID     ID
	Began  int64
	Store  [16]byte // that noted it: a copy is not closed because its original was
	Closed bool     // nothing comes after this record
	Past   []Past
}

// Next is the history that begins after the record with the sequence last.
func (e *Epoch) Next(store [16]byte, last uint64) (*Epoch, error) {
	if e.Term == math.MaxUint64 {
		return nil, fmt.Errorf("term of the history: %w", failure.ErrFull)
	}
	next := &Epoch{Term: e.Term + 1, Began: time.Now().UnixMilli(), Store: store}
	if _, err := io.ReadFull(crand.Reader, next.ID[:]); err != nil {
		return nil, err
	}
	past := append(e.Past[:len(e.Past):len(e.Past)], Past{e.ID, last})
	next.Past = past[max(len(past)-MaxPast, 0):]
	return next, nil
}

func (e *Epoch) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, e.Term)
	b = append(b, e.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Began))
	b = append(b, e.Store[:]...)
	closed := byte(0)
	if e.Closed {
		closed = 1
	}
	b = append(b, closed)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Past)))
	for _, p := range e.Past {
		b = append(b, p.ID[:]...)
		b = binary.LittleEndian.AppendUint64(b, p.Last)
	}
	return b
}

const (
	epochSize     = 8 + 20 + 8 + 16 + 1 + 4
	epochPastSize = 20 + 8
)

// Decode is the inverse of Encode. The record it is from has been
// verified: what does not parse is of a newer version.
func Decode(b []byte) (*Epoch, error) {
	if len(b) < epochSize || b[52] > 1 {
		return nil, errRecord
	}
	e := &Epoch{
		Term: binary.LittleEndian.Uint64(b), ID: ID(b[8:28]), Began: int64(binary.LittleEndian.Uint64(b[28:])),
		Store: [16]byte(b[36:52]), Closed: b[52] == 1,
	}
	n := binary.LittleEndian.Uint32(b[53:])
	if b = b[epochSize:]; n > MaxPast || len(b) != int(n)*epochPastSize {
		return nil, errRecord
	}
	for ; len(b) > 0; b = b[epochPastSize:] {
		e.Past = append(e.Past, Past{ID(b[:20]), binary.LittleEndian.Uint64(b[20:])})
	}
	return e, nil
}

var errRecord = fmt.Errorf("system record %q: %w", RecordName, failure.ErrVersion)

// First is the history of a store that has noted none: its id is derived from
// the store id, so that stores without followers need no record.
func First(store [16]byte) *Epoch {
	sum := sha256.Sum256(append([]byte("stave history "), store[:]...))
	return &Epoch{ID: ID(sum[:20]), Store: store}
}

// RecordName is the name of the system record.
const RecordName = "epoch"
