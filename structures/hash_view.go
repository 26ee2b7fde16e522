package structures

import (
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// hashView is a hash at one moment: its collection without the expired fields. Those stay there
// until they are deleted or written again, which no call can notice. The zero hashView, but for the
// key, is that of a key that does not exist.
type hashView struct {
	hash      Hash
	all       keydir.Collection
	deadlines keydir.Collection // of all fields that have one; not valid if none has
	due       uint64            // the score of the last deadline that has passed
	expired   int               // fields whose time has come
}

// open finds the fields of a hash and proves its type.
func (h Hash) open() (hashView, error) {
	f, err := open(h.Txn, h.Key, keydir.Hash)
	v := hashView{hash: h, all: f}
	if err == nil && f.Valid() {
		err = v.refresh()
	}
	return v, err
}

// create is open for writers: an absent hash is made. The caller puts at least
// one field into it.
func (h Hash) create() (hashView, error) {
	v, err := h.open()
	if err == nil {
		err = v.ensure()
	}
	return v, err
}

// ensure makes the hash if it is absent.
func (v *hashView) ensure() (err error) {
	if !v.all.Valid() {
		v.all, err = v.hash.Txn.Collection(v.hash.Key, keydir.Hash)
	}
	return err
}

// refresh reads the deadlines, again after each change of them: the collection
// comes with the first and goes with the last.
func (v *hashView) refresh() (err error) {
	var now int64
	v.deadlines, now, err = v.hash.Txn.FieldDeadlines(v.hash.Key)
	v.expired = 0
	if err == nil && v.deadlines.Valid() {
		v.due = ordered.Int(now)
		v.expired = v.deadlines.Rank(v.due+1, "")
	}
	return err
}

// len is the number of fields. O(1): it is counted when the hash is opened.
func (v *hashView) len() int {
	if !v.all.Valid() {
		return 0
	}
	return v.all.Len() - v.expired
}

// hidden says whether the time of a field of the collection has come.
func (v *hashView) hidden(field string) bool {
	if v.expired == 0 {
		return false
	}
	score, _, ok := v.deadlines.Score(field)
	return ok && score <= v.due
}

func (v *hashView) get(field string) (keydir.Loc, bool) {
	if !v.all.Valid() {
		return 0, false
	}
	loc, ok := v.all.Get(field)
	if !ok || v.hidden(field) {
		return 0, false
	}
	return loc, true
}

// deadline is the deadline of a field that exists, and whether it has one.
func (v *hashView) deadline(field string) (ms int64, ok bool) {
	if !v.deadlines.Valid() {
		return 0, false
	}
	score, _, ok := v.deadlines.Score(field)
	return ordered.ToInt(score), ok
}

// value appends a field's value to dst.
func (v *hashView) value(dst []byte, field string, loc keydir.Loc) ([]byte, error) {
	return v.hash.Txn.Value(dst, v.hash.Key, field, keydir.Hash, loc)
}

// getMany calls visit with the value of each of several fields, nil for one that does not exist, after then, unless
// that is nil, has been called for one that does, until visit returns false.
func (v *hashView) getMany(fields []string, visit func(i int, value []byte) bool, then func(field string) error) (err error) {
	buf := make([]byte, 0, 64) // never nil: an empty value is not a missing one
	for i, field := range fields {
		var value []byte
		if loc, ok := v.get(field); ok {
			if buf, err = v.value(buf[:0], field, loc); err != nil {
				return err
			}
			if value = buf; then != nil {
				if err := then(field); err != nil {
					return err
				}
			}
		}
		if !visit(i, value) {
			break
		}
	}
	return nil
}

// each calls visit for the fields until it returns false.
func (v *hashView) each(visit func(field []byte, loc keydir.Loc) bool) {
	step := walk(v.hash.Txn)
	v.all.Each(func(field []byte, loc keydir.Loc) bool {
		return (v.expired > 0 && v.hidden(text(field)) || visit(field, loc)) && step()
	})
}

// put sets a field and says whether it is new. Its deadline goes unless it is to
// be kept; that of a field whose time has come goes in any case.
func (v *hashView) put(field string, value []byte, keep bool) (isNew bool, err error) {
	before := v.all.Len()
	if err := v.hash.Txn.PutElem(v.hash.Key, v.all, field, value); err != nil {
		return false, err
	}
	isNew = v.all.Len() > before
	if !v.deadlines.Valid() {
		return isNew, nil
	}
	hidden := v.hidden(field)
	if keep && !hidden {
		return isNew, nil
	}
	return isNew || hidden, v.persist(field)
}

// replace sets a field, of a hash that need not be there yet, and keeps its
// deadline.
func (v *hashView) replace(field string, value []byte) (err error) {
	if err = v.ensure(); err == nil {
		_, err = v.put(field, value, true)
	}
	return err
}

// persist takes the deadline of a field away.
func (v *hashView) persist(field string) error {
	had, err := v.hash.Txn.ClearFieldDeadline(v.hash.Key, field)
	if err != nil || !had {
		return err
	}
	return v.refresh()
}

// expire gives a field that exists a deadline.
func (v *hashView) expire(field string, ms int64) error {
	if err := v.hash.Txn.SetFieldDeadline(v.hash.Key, field, ms); err != nil || v.deadlines.Valid() {
		return err // no more of them have passed than had before
	}
	return v.refresh()
}

// delete deletes a field and says whether it existed.
func (v *hashView) delete(field string) (bool, error) {
	if _, ok := v.get(field); !ok {
		return false, nil
	}
	if _, err := v.hash.Txn.DeleteElem(v.hash.Key, v.all, field); err != nil || !v.deadlines.Valid() {
		return true, err
	}
	return true, v.refresh()
}

// afterDelete is called after fields were deleted, by which event. With the last
// field that a caller can see the key goes.
func (v *hashView) afterDelete(e EventKind) error {
	t, key := v.hash.Txn, v.hash.Key
	if v.len() == 0 && v.all.Len() > 0 {
		return dropAll(t, key, e)
	}
	return afterDelete(t, key, v.all, e)
}

// random is visitRandom for fields. Hidden fields make it O(n).
func (v *hashView) random(n int, random func() uint64, start func(n int), visit func(field []byte, loc keydir.Loc) bool) {
	if v.expired == 0 {
		step := walk(v.hash.Txn)
		visitRandom(v.all, n, random, start, func(field []byte, loc keydir.Loc) bool { return visit(field, loc) && step() })
		return
	}
	shown := make([]int, 0, v.len()) // positions, in the order of At
	i := 0
	note := func(field []byte) bool {
		if !v.hidden(text(field)) {
			shown = append(shown, i)
		}
		i++
		return true
	}
	if v.all.Private() {
		v.all.Scan(0, func(_ uint64, field []byte, _ keydir.Loc) bool { return note(field) })
	} else {
		v.all.Each(func(field []byte, _ keydir.Loc) bool { return note(field) })
	}
	count := drawCount(n, len(shown))
	if start != nil {
		start(count)
	}
	for k := range count {
		at := below(random(), len(shown))
		if n > 0 { // each once: the first k have been drawn
			at = k + below(random(), len(shown)-k)
			shown[k], shown[at] = shown[at], shown[k]
			at = k
		}
		if !visit(v.all.At(shown[at])) || v.hash.Txn.Step(1) != nil {
			break
		}
	}
}
