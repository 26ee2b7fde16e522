package bitcask

import (
	"errors"
	"unsafe"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/keydir"
)

// rewrite writes another value of the same length to a record that waits for the commit, so that a record which several
// calls of a transaction change is written once. It reports false if it cannot.
func (t *Tx) rewrite(loc keydir.Loc, value []byte) bool {
	if !loc.Pending() {
		return false
	}
	r := &t.recs[loc.Offset()]
	rec := r.record(t.buf)
	if r.value != nil || len(rec.Value) != len(value) {
		return false
	}
	at := r.pos + r.size - len(value)
	t.undo = append(t.undo, undo.Op{Kind: undo.Rewrite, Index: int64(at), Elem: string(rec.Value)})
	copy(t.buf[at:], value)
	return true
}

// indexed is about how much memory the index takes for a record that a transaction has written, in bytes.
const indexed = 128

// Held is about how much memory the transaction has taken so far, in bytes: its records, what rolls them back, and what
// the index has grown by. O(1).
func (t *Tx) Held() int {
	return cap(t.buf) + t.outOfLine + cap(t.recs)*int(unsafe.Sizeof(txRecord{})) + cap(t.undo)*int(unsafe.Sizeof(undo.Op{})) + len(t.recs)*indexed
}

// Savepoint is a moment within a transaction.
type Savepoint struct{ buf, outOfLine, recs, undo, touched int }

// ErrSavepoint is returned for a savepoint of another transaction, or of a part of this one that has been rolled back.
var ErrSavepoint = errors.New("stave: no such savepoint in the transaction")

// Savepoint marks this moment, to come back to with RollbackTo.
func (t *Tx) Savepoint() Savepoint {
	if !t.open {
		return Savepoint{}
	}
	t.materialize()
	return t.here()
}

// here is Savepoint of a transaction that is open. A single put stays one, and is not rolled back to it.
func (t *Tx) here() Savepoint {
	return Savepoint{len(t.buf), t.outOfLine, len(t.recs), len(t.undo), len(t.touched)}
}

// RollbackTo rolls back everything done since sp.
func (t *Tx) RollbackTo(sp Savepoint) error {
	switch {
	case !t.open:
		return ErrTxDone
	case sp.buf < format.FrameHeaderSize || sp.buf > len(t.buf) || sp.recs > len(t.recs) || sp.undo > len(t.undo) || sp.touched > len(t.touched):
		return ErrSavepoint
	}
	t.rollbackTo(sp)
	return nil
}

func (t *Tx) rollbackTo(sp Savepoint) {
	for i := len(t.undo) - 1; i >= sp.undo; i-- {
		if u := &t.undo[i]; u.Kind == undo.Rewrite {
			copy(t.buf[u.Index:], u.Elem)
		} else {
			u.Run()
		}
	}
	if sp.recs == 0 {
		t.single = singlePut{}
	}
	clear(t.recs[sp.recs:])
	clear(t.undo[sp.undo:])
	clear(t.touched[sp.touched:])
	t.buf, t.outOfLine, t.recs = t.buf[:sp.buf], sp.outOfLine, t.recs[:sp.recs]
	t.undo, t.touched = t.undo[:sp.undo], t.touched[:sp.touched]
	clear(t.known)
}
