package bitcask

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/undo"
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
	return t.alongside(ns, key, keydir.FieldDeadlines)
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
	coll, ok := sp.Dir.FindAlongside(h, key, keydir.FieldDeadlines)
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
	t.putAlongside(coll, keydir.FieldDeadlines, sp, h, key, field, ordered.Int(ms), loc)
	return nil
}

// ClearFieldDeadline takes the deadline of a field away. It reports whether
// there was one.
func (t *Tx) ClearFieldDeadline(ns int, key, field string) (bool, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return false, err
	}
	if t.dropAlongside(keydir.FieldDeadlines, sp, h, key, field) == 0 {
		return false, nil
	}
	_, err = t.add(KindFieldDeadlineTombstone, keydir.FieldDeadlines, sp, h, key, field, nil)
	return err == nil, err
}

// alongside returns what stands alongside the collection of a key, for reading; not valid if there is nothing.
func (t *Tx) alongside(ns int, key string, typ keydir.Type) (keydir.Collection, error) {
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
	coll, _ := sp.Dir.FindAlongside(h, key, typ)
	return coll, nil
}

// putAlongside notes a record in coll, or in a new collection if that is not valid.
func (t *Tx) putAlongside(coll keydir.Collection, typ keydir.Type, sp *namespace.Space, h uint64, key, elem string, score uint64, loc keydir.Loc) {
	if !coll.Valid() {
		coll = sp.Dir.NewCollection(h, typ, key)
		t.undo.Append(undo.Op{Kind: undo.NewCollection, Of: typ, Dir: sp.Dir, Hash: h, Key: key})
	}
	oldScore, old, had := coll.PutScored(elem, score, loc)
	t.undo.Append(undo.Op{Kind: undo.PutScored, Of: typ, Dir: sp.Dir, Hash: h, Key: key, Elem: elem, Loc: old, Had: had, Score: oldScore})
}

// dropAlongside forgets elements for which a tombstone is added, and returns how many there were.
func (t *Tx) dropAlongside(typ keydir.Type, sp *namespace.Space, h uint64, key string, elems ...string) (n int) {
	coll, ok := sp.Dir.FindAlongside(h, key, typ)
	if !ok {
		return 0
	}
	return t.dropAlongsideOf(coll, typ, sp, h, key, elems...)
}

// dropAlongsideOf is dropAlongside of the collection that stands alongside.
func (t *Tx) dropAlongsideOf(coll keydir.Collection, typ keydir.Type, sp *namespace.Space, h uint64, key string, elems ...string) (n int) {
	for _, elem := range elems {
		if score, old, had := coll.DeleteScored(elem); had {
			n++
			t.undo.Append(undo.Op{Kind: undo.DeleteScored, Of: typ, Dir: sp.Dir, Hash: h, Key: key, Elem: elem, Loc: old, Score: score})
		}
	}
	if n > 0 && coll.Len() == 0 {
		t.dropOne(sp, h, coll)
	}
	return n
}

// EachFieldDeadline calls fn for every hash of every namespace that has fields with deadlines, with the earliest of
// these. Only hashes with such fields are examined, if there are any; Open does it once. Errors: those of loading the
// INDEX, which takes only the stripes that have such hashes.
func (s *Store) EachFieldDeadline(fn func(space uint32, key string, ms int64)) error {
	for _, sp := range s.spaces.Now.Load().ByID {
		for stripe := 0; stripe < keydir.Stripes && sp.Dir.LenFieldDeadlines() > 0; stripe++ {
			if err := s.interrupted(); err != nil {
				return err
			}
			if err := s.eachFieldDeadline(sp, stripe, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) eachFieldDeadline(sp *namespace.Space, stripe int, fn func(space uint32, key string, ms int64)) error {
	if s.stripes[stripe].promisesNoFieldDeadline(sp.Dir, stripe) {
		return nil
	}
	if err := s.lockWhole(stripe, false); err != nil {
		return err
	}
	defer s.unlockWhole(stripe, false)
	sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		if slot.Type == keydir.FieldDeadlines {
			coll := sp.Dir.CollectionOf(h, slot)
			_, score := coll.First()
			fn(sp.ID, coll.Key(), ordered.ToInt(score))
		}
		return true
	})
	return nil
}

// promisesNoFieldDeadline reports whether a stripe need not be loaded to know that no field in it has a deadline.
func (st *stripe) promisesNoFieldDeadline(dir *keydir.Directory, i int) bool {
	st.RLock()
	defer st.RUnlock()
	c, unloaded := dir.Promised(i)
	return unloaded && c.FieldDeadlines == 0
}
