package bitcask

import (
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// fieldDeadline applies an entry that gives a field a deadline.
func (a *applier) fieldDeadline(sp *space, h uint64, sg *segment, e *entry, loc keydir.Loc) error {
	ms, err := e.deadline(sg)
	if err != nil {
		return err
	}
	coll, ok := sp.dir.FindFieldDeadlines(h, text(e.Key))
	if !ok {
		coll = sp.dir.NewCollection(h, keydir.FieldDeadlines, string(e.Key))
	}
	_, old, _ := coll.PutScored(text(e.Elem), ordered.Int(ms), loc)
	a.dead(old)
	a.alive(loc)
	return nil
}

// removeFieldDeadline removes the deadline of a field.
func (a *applier) removeFieldDeadline(sp *space, h uint64, e *entry) {
	coll, ok := sp.dir.FindFieldDeadlines(h, text(e.Key))
	if !ok {
		return
	}
	_, old, _ := coll.DeleteScored(text(e.Elem))
	a.dead(old)
	if coll.Len() == 0 {
		sp.dir.DropCollection(h, coll)
	}
}

// dropFieldDeadlines removes the deadlines of all fields of a key.
func (a *applier) dropFieldDeadlines(sp *space, h uint64, key []byte) {
	if coll, ok := sp.dir.FindFieldDeadlines(h, text(key)); ok {
		a.drop(sp.dir.DropCollection(h, coll))
	}
}
