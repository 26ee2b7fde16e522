package bitcask

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Deadlines of hash fields. In the keydir those of one hash are a collection of
// their own alongside it, with the deadlines as scores; in the log each is a
// record alongside the field's. It lives as long as the field: what takes the
// field away, a tombstone of the field, of the key, or a string in its place,
// takes the deadline too. A new value alone leaves it.

var errNoField = errors.New("BUG: deadline of a field that is not there")

// FieldDeadlines returns the deadlines of the fields of the hash at key, by
// field and in order; not valid if no field has one. Scores are deadlines in the
// form of FieldDeadlineScore.
func (t *Tx) FieldDeadlines(ns int, key string) (keydir.Collection, error) {
	if !t.open {
		return keydir.Collection{}, ErrTxDone
	}
	sp := t.s.spaces.Of(ns)
	if sp == nil || sp.Dir.LenFieldDeadlines() == 0 {
		return keydir.Collection{}, nil
	}
	h, err := t.hash(key)
	if err != nil {
		return keydir.Collection{}, err
	}
	coll, _ := sp.Dir.FindFieldDeadlines(h, key)
	return coll, nil
}

// FieldDeadlineScore is the score of a deadline in Unix milliseconds.
func FieldDeadlineScore(ms int64) uint64 { return ordered.Int(ms) }

// FieldDeadlineOf is the inverse of FieldDeadlineScore.
func FieldDeadlineOf(score uint64) int64 { return ordered.ToInt(score) }

// SetFieldDeadline gives a field that exists a deadline in Unix milliseconds.
func (t *Tx) SetFieldDeadline(ns int, key, field string, ms int64) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	hash, ok := sp.Dir.FindCollection(h, key)
	if !ok || hash.Type() != keydir.Hash {
		return errNoField
	}
	if _, ok := hash.Get(field); !ok {
		return errNoField
	}
	coll, ok := sp.Dir.FindFieldDeadlines(h, key)
	if ok {
		err = roomFor(coll, field)
	} else if sp.Dir.Full(h) {
		err = fmt.Errorf("bitcask: new deadline of a field: %w", ErrIndexFull)
	}
	if err != nil {
		return err
	}
	var b [20]byte
	loc, err := t.add(KindFieldDeadline, keydir.FieldDeadlines, sp, h, key, field, strconv.AppendInt(b[:0], ms, 10))
	if err != nil {
		return err
	}
	if !ok {
		coll = sp.Dir.NewCollection(h, keydir.FieldDeadlines, key)
		t.undo = append(t.undo, undoOp{op: undoNewCollection, of: keydir.FieldDeadlines, dir: sp.Dir, h: h, key: key})
	}
	score, old, had := coll.PutScored(field, ordered.Int(ms), loc)
	t.undo = append(t.undo, undoOp{
		op: undoPutScored, of: keydir.FieldDeadlines, dir: sp.Dir, h: h, key: key, elem: field, loc: old, had: had, score: score,
	})
	return nil
}

// ClearFieldDeadline takes the deadline of a field away. It reports whether
// there was one.
func (t *Tx) ClearFieldDeadline(ns int, key, field string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	if !t.dropFieldDeadline(sp, h, key, field) {
		return false, nil
	}
	_, err = t.add(KindFieldDeadlineTombstone, keydir.FieldDeadlines, sp, h, key, field, nil)
	return true, err
}

// dropFieldDeadline forgets the deadline of a field for which a tombstone is
// added. It reports whether there was one.
func (t *Tx) dropFieldDeadline(sp *namespace.Space, h uint64, key, field string) bool {
	coll, ok := sp.Dir.FindFieldDeadlines(h, key)
	if !ok {
		return false
	}
	score, old, had := coll.DeleteScored(field)
	if !had {
		return false
	}
	t.undo = append(t.undo, undoOp{
		op: undoDeleteScored, of: keydir.FieldDeadlines, dir: sp.Dir, h: h, key: key, elem: field, loc: old, score: score,
	})
	if coll.Len() == 0 {
		t.undo = append(t.undo, undoOp{op: undoDrop, dir: sp.Dir, h: h, dropped: sp.Dir.DropCollection(h, coll)})
	}
	return true
}

// EachFieldDeadline calls fn for every hash of every namespace that has fields
// with deadlines, with the earliest of these. Only hashes with such fields are
// examined, if there are any; Open does it once.
func (s *Store) EachFieldDeadline(fn func(space uint32, key string, ms int64)) {
	for _, sp := range s.spaces.Now.Load().ByID {
		for stripe := 0; stripe < keydir.Stripes && sp.Dir.LenFieldDeadlines() > 0; stripe++ {
			s.eachFieldDeadline(sp, stripe, fn)
		}
	}
}

func (s *Store) eachFieldDeadline(sp *namespace.Space, stripe int, fn func(space uint32, key string, ms int64)) {
	s.stripes[stripe].RLock()
	defer s.stripes[stripe].RUnlock()
	sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		if slot.Type == keydir.FieldDeadlines {
			coll := sp.Dir.CollectionOf(h, slot)
			_, score := coll.First()
			fn(sp.ID, coll.Key(), ordered.ToInt(score))
		}
		return true
	})
}
