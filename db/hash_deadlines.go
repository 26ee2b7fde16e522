package db

import (
	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// Deadlines of fields. The log has those of each hash, in order; core.fields has, for every such hash, a moment before
// which none of its fields expires, for the cycle to find it. That moment may be too early: it advances only when the
// cycle reaches it, and goes with the last deadline.

func (t *txn) FieldDeadlines(key string) (deadlines keydir.Collection, now int64, err error) {
	deadlines, err = t.base.FieldDeadlines(t.ns, key)
	if err == nil && deadlines.Valid() {
		now = t.passed()
		t.foundFieldsDue(deadlines)
	}
	return deadlines, now, err
}

// noteFields changes the moment before which no field of a hash expires, in a way that can be rolled back. 0
// clears.
func (t *txn) noteFields(key string, ms int64) { t.noteIn(t.store.fields, key, ms) }

// fieldDeadlineGone is called after a field has lost its deadline, if it had one.
func (t *txn) fieldDeadlineGone(key string) error {
	if _, ok := t.store.fields.Get(t.space(), key); !ok {
		return nil
	}
	deadlines, err := t.base.FieldDeadlines(t.ns, key)
	if err == nil && !deadlines.Valid() {
		t.noteFields(key, 0)
	}
	return err
}

// noteFirstField makes the moment of a hash exact.
func (t *txn) noteFirstField(key string) error {
	deadlines, err := t.base.FieldDeadlines(t.ns, key)
	if err != nil {
		return err
	}
	ms := int64(0)
	if deadlines.Valid() {
		_, score := deadlines.First()
		ms = bitcask.FieldDeadlineOf(score)
	}
	t.noteFields(key, ms)
	return nil
}

// fieldsGone reports whether a key is a hash of which every field has expired.
func (t *Tx) fieldsGone(ns int, space uint32, key string) (bool, error) {
	if ms, ok := t.store.fields.Get(space, key); !ok || !t.due(ms) {
		return false, nil
	}
	deadlines, err := t.base.FieldDeadlines(ns, key)
	if err != nil || !deadlines.Valid() {
		return false, err
	}
	_, hash, err := t.base.Find(ns, key)
	if err != nil || !hash.Valid() || hash.Len() != deadlines.Len() {
		return false, err
	}
	if deadlines.Rank(bitcask.FieldDeadlineScore(t.passed())+1, "") < hash.Len() {
		return false, nil
	}
	t.foundFieldsDue(deadlines)
	return true, nil
}

// expireFields drops a hash of which every field has expired.
func (t *txn) expireFields(key string) error {
	_, hash, err := t.base.Find(t.ns, key)
	if err != nil {
		return err
	}
	n := hash.Len()
	t.leaveOrder(key)
	if _, err := t.drop(key); err != nil {
		return err
	}
	t.reaped += n
	t.changed(key)
	t.note(structures.EventHExpired, key)
	t.note(structures.EventDel, key)
	return nil
}

// Bounds of what the cycle does to one hash.
const (
	reapFieldsMax    = 1000 // fields
	reapFieldsAtOnce = 100  // fields, with the key locked
)

// reapFields deletes fields of one hash that have expired, the first ones first, and returns how many.
func (s *Store) reapFields(space uint32, key string, observe func(*Store) *observation) (n int, err error) {
	ns, ok := s.base.NamespaceOf(space)
	if !ok {
		return 0, nil
	}
	view := &Store{core: s.core, ns: ns}
	for more := true; more && n < reapFieldsMax && err == nil; {
		var reaped int
		reaped, more, err = view.reapSomeFields(space, key, observe)
		n += reaped
	}
	return n, err
}

func (s *Store) reapSomeFields(space uint32, key string, observe func(*Store) *observation) (n int, more bool, err error) {
	first, err := s.beginReaping([]string{key}, observe)
	if err != nil {
		return 0, false, err
	}
	defer first.recycle()
	t := &first.Tx
	if s.base.Space(s.ns) != space { // swapped before the key was locked: it names another one now
		return 0, false, t.end(nil)
	}
	n, more, err = (*txn)(t).reapFields(key)
	if err = t.end(err); err != nil {
		return 0, false, err
	}
	return n, more, nil
}

// reapFields is one step of it; more says that there are others.
func (t *txn) reapFields(key string) (n int, more bool, err error) {
	gone, err := t.hideExpired(key)
	if gone || err != nil {
		return t.reaped, false, err
	}
	deadlines, err := t.base.FieldDeadlines(t.ns, key)
	if err != nil {
		return 0, false, err
	}
	var due []string
	if deadlines.Valid() {
		until, size := bitcask.FieldDeadlineScore(t.passed()), 0
		deadlines.AscendRank(0, func(field []byte, score uint64) bool {
			if score > until {
				return false
			}
			size += len(key) + len(field)
			if more = len(due) == reapFieldsAtOnce || len(due) > 0 && size > deletesBytes; more {
				return false
			}
			due = append(due, string(field))
			return true
		})
	}
	_, hash, err := t.base.Find(t.ns, key)
	for _, field := range due {
		if err == nil {
			_, err = t.DeleteElem(key, hash, field)
		}
	}
	if err == nil {
		err = t.noteFirstField(key)
	}
	if err != nil || len(due) == 0 {
		return 0, false, err
	}
	t.reaped += len(due)
	t.changed(key)
	t.note(structures.EventHExpired, key)
	return len(due), more, nil
}
