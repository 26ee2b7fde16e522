package bitcask

import (
	"errors"
	"unsafe"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/keydir"
)

// rewrite writes another value of the same length to a record that waits for the commit, so that a record which several
// calls of a transaction change is written once. It reports false if it cannot.
func (t *Tx) rewrite(loc keydir.Loc, value []byte) bool {
	if !loc.Pending() {
		return false
	}
	r := t.recs.At(int(loc.Offset()))
	rec := t.record(r)
	if r.value != 0 || len(rec.Value) != len(value) {
		return false
	}
	at := int(r.pos+r.size) - len(value)
	t.undo.Append(undo.Op{Kind: undo.Rewrite, Index: int64(at), Elem: string(rec.Value)})
	copy(t.buf[at:], value)
	return true
}

// indexed is about how much memory the index takes for a record that a transaction has written, in bytes.
const indexed = 128

// Held is about how much memory the transaction has taken so far, in bytes: its records, what rolls them back, and what
// the index has grown by. O(1).
func (t *Tx) Held() int {
	return cap(t.buf) + t.outOfLine + t.recs.Cap()*int(unsafe.Sizeof(txRecord{})) + t.undo.Cap()*int(unsafe.Sizeof(undo.Op{})) + t.recs.Len()*indexed
}

// Savepoint is a moment within a transaction.
type Savepoint struct{ buf, outOfLine, recs, undo, touched, spaces, values int }

// ErrSavepoint is returned for a savepoint of another transaction, or of a part of this one that has been rolled back.
var ErrSavepoint = errors.New("stave: no such savepoint in the transaction")

// Savepoint marks this moment, to come back to with RollbackTo.
func (t *Tx) Savepoint() Savepoint {
	if !t.open {
		return Savepoint{}
	}
	t.materialize()
	t.made = madeCollection{} // from now on an element may be rolled back while the collection stays
	return t.here()
}

// Version is a number that differs after each write of the transaction, and after a rollback or a commit.
func (t *Tx) Version() uint64 { return t.turns<<40 + uint64(t.recs.Len()+t.undo.Len()) }

// here is Savepoint of a transaction that is open. A single put stays one, and is not rolled back to it.
func (t *Tx) here() Savepoint {
	return Savepoint{len(t.buf), t.outOfLine, t.recs.Len(), t.undo.Len(), len(t.touched), len(t.spaces), len(t.values)}
}

// RollbackTo rolls back everything done since sp.
func (t *Tx) RollbackTo(sp Savepoint) error {
	switch {
	case !t.open:
		return ErrTxDone
	case sp.buf < format.FrameHeaderSize || sp.buf > len(t.buf) || sp.recs > t.recs.Len() || sp.undo > t.undo.Len() || sp.touched > len(t.touched):
		return ErrSavepoint
	}
	t.rollbackTo(sp)
	return nil
}

func (t *Tx) rollbackTo(sp Savepoint) {
	t.turns++
	if t.undo.Len() > sp.undo { // it may be rolled back with its collection
		t.made = madeCollection{}
	}
	for i := t.undo.Len() - 1; i >= sp.undo; i-- {
		if u := t.undo.At(i); u.Kind == undo.Rewrite {
			copy(t.buf[u.Index:], u.Elem)
		} else {
			u.Run()
		}
	}
	if sp.recs == 0 {
		t.single = singlePut{}
	}
	t.recs.Cut(sp.recs)
	t.undo.Cut(sp.undo)
	clear(t.spaces[sp.spaces:])
	clear(t.values[sp.values:])
	t.spaces, t.values = t.spaces[:sp.spaces], t.values[:sp.values]
	clear(t.touched[sp.touched:])
	t.buf, t.outOfLine, t.touched = t.buf[:sp.buf], sp.outOfLine, t.touched[:sp.touched]
	clear(t.known)
}

// madeCollection is the last collection that the transaction has made, as long as no savepoint follows and nothing is removed
// from it. An element of it needs no undo of its own, because every rollback drops the whole collection. A call that is
// refused has put nothing into it.
type madeCollection struct {
	sp  *namespace.Space
	h   uint64
	key string
}

func (m *madeCollection) is(sp *namespace.Space, h uint64, key string) bool {
	return m.sp == sp && m.h == h && m.key == key
}
