package db_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// followWorkload makes commits of all kinds.
type followWorkload struct {
	s *db.Store
	r *rand.Rand
}

func (w *followWorkload) key() string { return fmt.Sprint("k", w.r.IntN(12)) }
func (w *followWorkload) value() []byte {
	return []byte(strings.Repeat(fmt.Sprint(w.r.IntN(1000), " "), 1+w.r.IntN(60)))
}

// commit makes one commit, at most.
func (w *followWorkload) commit() error {
	s, err := w.s.Use(w.r.IntN(3))
	if err != nil {
		return err
	}
	switch n := w.r.IntN(100); {
	case n < 1:
		return s.Flush()
	case n < 2:
		return s.Swap(0, 1+w.r.IntN(2))
	case n < 3:
		return s.FlushAll()
	case n < 30:
		return s.String(w.key()).Put(w.value())
	default:
		return s.Update(func(tx *db.Tx) error {
			for range 1 + w.r.IntN(6) {
				if err := w.step(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// step changes one key in a transaction.
func (w *followWorkload) step(tx *db.Tx) (err error) {
	key, value := w.key(), w.value()
	member := fmt.Sprint("m", w.r.IntN(30))
	typ, err := tx.Key(key).Type()
	if err != nil {
		return err
	}
	if typ == db.TypeStream && w.r.IntN(2) == 0 {
		return w.group(tx.Stream(key))
	}
	is := func(want db.Type) bool { return typ == db.TypeNone || typ == want }
	later := time.UnixMilli(4e12 + w.r.Int64N(1e6))
	switch n := w.r.IntN(18); {
	case n >= 14:
		err = w.edit(tx, key, typ)
	case n < 2 || !is(db.TypeHash) && n < 4:
		_, err = tx.Key(key).Delete()
	case n == 4:
		err = tx.String(key).Put(value)
	case n == 5 && is(db.TypeString):
		_, err = tx.String(key).Append([]byte(strings.Repeat("long ", 4_000)))
	case n < 8 && is(db.TypeHash):
		if _, err = tx.Hash(key).Put(member, value); err == nil && n == 7 {
			_, err = tx.Hash(key).ExpireFieldsAt(later, []string{member})
		}
	case n == 8 && is(db.TypeHash):
		_, err = tx.Hash(key).Delete(member)
	case n < 10 && is(db.TypeSortedSet):
		_, err = tx.SortedSet(key).Add(db.Scored{Member: member, Score: w.r.Float64()})
	case n == 10 && is(db.TypeList):
		values := [][]byte{value, value}
		for range w.r.IntN(2) * 60 { // an element inserted into a long list gets a sub-index
			values = append(values, fmt.Append(nil, w.r.IntN(1000)))
		}
		_, err = tx.List(key).PushBack(values...)
	case n == 11 && is(db.TypeSet):
		_, err = tx.Set(key).Add(member)
	case n == 12 && is(db.TypeStream):
		_, err = tx.Stream(key).Add(db.Field{Name: member, Value: value})
	default:
		_, err = tx.Key(key).ExpireAt(later)
	}
	return err
}

// edit changes what a key already has, in the middle or at an end, or its name.
func (w *followWorkload) edit(tx *db.Tx, key string, typ db.Type) (err error) {
	switch {
	case typ == db.TypeNone:
	case w.r.IntN(4) == 0:
		err = tx.Key(key).Rename(w.key())
	case typ == db.TypeString:
		_, err = tx.String(key).SetRange(w.r.Int64N(30_000), w.value())
	case typ == db.TypeStream:
		_, err = tx.Stream(key).Trim(db.StreamTrim{MaxLen: w.r.IntN(4)})
	case typ == db.TypeList:
		for range 1 + w.r.IntN(6) {
			err = errors.Join(err, w.editList(tx.List(key)))
		}
	}
	return err
}

// group does something with a group of a stream that exists.
func (w *followWorkload) group(s db.Stream) (err error) {
	g, consumer := s.Group(fmt.Sprint("g", w.r.IntN(2))), fmt.Sprint("c", w.r.IntN(3))
	switch n := w.r.IntN(12); {
	case n < 2:
		err = g.Create(db.StreamGroupStart{})
	case n < 4:
		_, err = g.Read(consumer, 3)
	case n < 8:
		_, _, _, err = g.AutoClaim(db.StreamAutoClaim{Consumer: consumer, Count: 1 + w.r.IntN(4), JustID: n%2 == 0})
	case n < 9:
		_, err = g.History(consumer, db.StreamID{}, 0)
	case n < 10 && w.r.IntN(2) == 0:
		_, err = g.Destroy()
	case n < 10:
		var pending []db.StreamPending
		if pending, err = g.Pending(db.StreamPendingRange{To: db.MaxStreamID, Count: 1}); len(pending) > 0 {
			_, err = g.Ack(pending[0].ID)
		}
	default:
		_, err = g.DeleteConsumer(consumer)
	}
	if errors.Is(err, structures.ErrNoGroup) || errors.Is(err, db.ErrExists) {
		return nil
	}
	return err
}

func (w *followWorkload) editList(l db.List) error {
	n, err := l.Len()
	if err != nil || n == 0 {
		return err
	}
	switch w.r.IntN(9) {
	case 0:
		from := w.r.IntN(n)
		return l.Trim(int64(from), int64(from+w.r.IntN(n)))
	case 1, 2:
		if few := w.r.Int64N(4); n > 8 {
			return l.Trim(few, few-4)
		}
	}
	pivot, err := l.At(w.r.Int64N(int64(n)))
	if err != nil {
		return err
	}
	switch w.r.IntN(3) {
	case 0:
		_, err = l.InsertBefore(pivot, w.value())
	case 1:
		_, err = l.InsertAfter(pivot, w.value())
	default:
		_, err = l.Remove(w.r.Int64N(3)-1, pivot)
	}
	return err
}
