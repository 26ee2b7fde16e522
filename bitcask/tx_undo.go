package bitcask

import (
	"errors"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// undoOp rolls back one change of the keydir. It also holds what the change replaced, whose bytes
// turn from live to dead at the commit.
type undoOp struct {
	op       uint8
	had      bool
	of       keydir.Type // the one of keydir.Alongside that the change is to; keydir.None: to the collection of the key
	dir      *keydir.Directory
	h        uint64
	old, new keydir.Slot
	key      string
	elem     string // of undoRewrite the value
	index    int64  // of undoRewrite where that is in the buffer
	score    uint64
	loc      keydir.Loc   // replaced or deleted element
	place    keydir.Place // of an element of a hash or set
	dropped  keydir.Dropped
	id       keydir.StreamID // of an entry of a stream
	trimmed  keydir.Trimmed
}

const (
	undoInsert        = iota // delete slot new
	undoSwap                 // put slot old back in place of new
	undoDeleteSlot           // insert slot old
	undoNewCollection        // drop the collection
	undoDrop                 // restore the dropped collection
	undoPut                  // put the old location back, or delete
	undoPutScored            // same, with its score
	undoPutAt                // same, of a list
	undoDelete               // insert again
	undoDeleteScored         // insert again
	undoDeleteAt             // insert again
	undoPutEntry             // put the old location back, or delete, of a stream
	undoDeleteEntry          // insert again
	undoTrim                 // restore the entries
	undoMeta                 // put the old location of the meta record back
	undoRewrite              // put the old value of a record that waits back
)

func (u *undoOp) run() {
	switch u.op {
	case undoInsert:
		u.dir.Delete(u.h, u.new)
		return
	case undoSwap:
		u.dir.Replace(u.h, u.new, u.old)
		return
	case undoDeleteSlot:
		u.dir.Insert(u.h, u.old)
		return
	case undoDrop:
		u.dir.Restore(u.h, u.dropped)
		return
	}
	var coll keydir.Collection
	var ok bool
	if u.of == keydir.None {
		coll, ok = u.dir.FindCollection(u.h, u.key)
	} else {
		coll, ok = u.dir.FindAlongside(u.h, u.key, u.of)
	}
	if !ok {
		panic("BUG: undo of a change to a collection that is not there")
	}
	switch {
	case u.op == undoMeta:
		coll.SetMeta(u.loc)
	case u.op == undoNewCollection:
		u.dir.DropCollection(u.h, coll)
	case u.op == undoPut && u.had:
		coll.Put(u.elem, u.loc)
	case u.op == undoPut:
		coll.RollbackPut(u.elem, u.place)
	case u.op == undoDelete:
		coll.RollbackDelete(u.elem, u.loc, u.place)
	case u.op == undoPutScored && u.had, u.op == undoDeleteScored:
		coll.PutScored(u.elem, u.score, u.loc)
	case u.op == undoPutScored:
		coll.DeleteScored(u.elem)
	case u.op == undoPutAt && u.had, u.op == undoDeleteAt:
		coll.PutAt(u.index, u.loc)
	case u.op == undoPutAt:
		coll.DeleteAt(u.index)
	case u.op == undoPutEntry && u.had, u.op == undoDeleteEntry:
		coll.PutEntry(u.id, u.loc)
	case u.op == undoPutEntry:
		coll.DeleteEntry(u.id)
	case u.op == undoTrim:
		coll.RestoreEntries(u.trimmed)
	}
}

// Changes is a number that is another one after each change of the transaction, a rollback and a commit included.
func (t *Tx) Changes() uint64 { return t.changes }

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
	t.changes++
	at := r.pos + r.size - len(value)
	t.undo = append(t.undo, undoOp{op: undoRewrite, index: int64(at), elem: string(rec.Value)})
	copy(t.buf[at:], value)
	return true
}

// Savepoint is a moment within a transaction.
type Savepoint struct{ buf, outOfLine, recs, undo, touched int }

// ErrSavepoint is returned for a savepoint of another transaction, or of a part of this one that has been rolled back.
var ErrSavepoint = errors.New("bitcask: no such savepoint in the transaction")

// Savepoint marks this moment, to come back to with RollbackTo.
func (t *Tx) Savepoint() Savepoint {
	if !t.open {
		return Savepoint{}
	}
	t.materialize()
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
	t.changes++
	for i := len(t.undo) - 1; i >= sp.undo; i-- {
		if u := &t.undo[i]; u.op == undoRewrite {
			copy(t.buf[u.index:], u.elem)
		} else {
			u.run()
		}
	}
	t.single = singlePut{}
	t.lastCollection, t.lastKey = keydir.Collection{}, "" // its reference may be another's again
	clear(t.recs[sp.recs:])
	clear(t.undo[sp.undo:])
	clear(t.touched[sp.touched:])
	t.buf, t.outOfLine, t.recs = t.buf[:sp.buf], sp.outOfLine, t.recs[:sp.recs]
	t.undo, t.touched = t.undo[:sp.undo], t.touched[:sp.touched]
	clear(t.known)
}
