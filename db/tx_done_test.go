package db_test

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// leaks are the ways by which a transaction can be kept beyond its end.
var leaks = map[string]func(t *testing.T, s *db.Store) *db.Tx{
	"View": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		must(t, s.View(func(tx *db.Tx) error { leaked = tx; return nil }))
		return leaked
	},
	"Update": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		must(t, s.Update(func(tx *db.Tx) error { leaked = tx; return nil }))
		return leaked
	},
	"an Update that failed": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		no := errors.New("no")
		if err := s.UpdateKeys([]string{"k"}, func(tx *db.Tx) error { leaked = tx; return no }); !errors.Is(err, no) {
			t.Error(err)
		}
		return leaked
	},
	"an Update that panicked": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		defer func() { _ = recover() }()
		err := s.Update(func(tx *db.Tx) error { leaked = tx; panic("mine") })
		t.Error("no panic", err)
		return leaked
	},
	"another namespace": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		must(t, s.Update(func(tx *db.Tx) (err error) { leaked, err = tx.Use(1); return err }))
		return leaked
	},
	"Begin and End": func(t *testing.T, s *db.Store) *db.Tx {
		tx := ok[*db.Tx](t)(s.Begin(true, "k"))
		ok[db.Ticket](t)(tx.End(nil))
		return tx
	},
	"Await": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		ok[int](t)(s.List("awaited").PushBack([]byte("x")))
		must(t, s.Await(t.Context(), db.Wait{Keys: []string{"awaited"}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
			leaked = tx
			return nil
		}}))
		return leaked
	},
	"Await, served by a push": func(t *testing.T, s *db.Store) (leaked *db.Tx) {
		tx := ok[*db.Tx](t)(s.Begin(true, "pushed"))
		waiter := tx.Enqueue(db.Wait{Keys: []string{"pushed"}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
			leaked = tx
			_, err := tx.List(key).PopFront()
			return err
		}}, nil)
		ok[db.Ticket](t)(tx.End(nil))
		ok[int](t)(s.List("pushed").PushBack([]byte("x")))
		<-waiter.Done()
		return leaked
	},
}

// TestEndedTransactionSaysSo: whatever is done with a transaction after its end fails with ErrTxDone and changes
// nothing, also while another one runs in what may have been its memory.
func TestEndedTransactionSaysSo(t *testing.T) {
	for how, leak := range leaks {
		t.Run(how, func(t *testing.T) {
			s := openToHang(t)
			must(t, s.String("k").Put([]byte("v")))
			handlesBefore := []any(nil)
			must(t, s.View(func(tx *db.Tx) error { handlesBefore = handlesOf(tx, "k"); return nil }))
			tx := leak(t, s)
			before := allKeys(t, s)
			use := func() {
				for _, h := range slices.Concat(handlesOf(tx, "k"), handlesBefore) {
					everyMethod(t, h, func(name string, err error) {
						if !errors.Is(err, db.ErrTxDone) {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
				everyTxMethod(t, tx)
			}
			use()
			if t.Failed() {
				return // it may hang now
			}
			// In the middle of others' transactions of each kind.
			must(t, s.Update(func(*db.Tx) error { use(); return nil }))
			must(t, s.View(func(*db.Tx) error { use(); return nil }))
			must(t, s.Hash("h").Visit(nil, func(_, _ []byte) bool { use(); return true }))
			equal(t, "keys", allKeys(t, s), before)
			usable(t, how, s)
		})
	}
}

// everyTxMethod calls what a transaction has besides handles.
func everyTxMethod(t *testing.T, tx *db.Tx) {
	t.Helper()
	wait := db.Wait{Keys: []string{"k"}, Type: db.TypeList, Do: func(*db.Tx, string) error { t.Error("Do runs"); return nil }}
	rows := map[string]func() error{
		"End":          func() error { _, err := tx.End(nil); return err },
		"Flush":        tx.Flush,
		"Swap":         func() error { return tx.Swap(0, 1) },
		"RollbackTo":   func() error { return tx.RollbackTo(tx.Savepoint()) },
		"Use":          func() error { _, err := tx.Use(1); return err },
		"Try":          func() error { return tx.Try(wait) },
		"OnCommit":     func() error { return tx.OnCommit(func(db.Ticket) {}) },
		"Enqueue":      func() error { w := tx.Enqueue(wait, nil); <-w.Done(); _, err := w.Result(); return err },
		"Watch.Add":    func() error { return openMemory(t).NewWatch().Add(tx, "k") },
		"Changed":      func() error { _, err := openMemory(t).NewWatch().Changed(tx); return err },
		"PutLibrary":   func() error { return serverside.DB.PutLibrary(tx, "l", "text") },
		"ServeWaiters": nil, // the others return no error
		"Savepoint":    nil,
		"Held":         nil, // it is 0
		"Len":          nil,
		"Now":          nil,
		"Namespace":    nil,
		"Writable":     nil,
		"NoteRead":     nil, // it reports false
		"Visited":      nil, // likewise
		"SetOrigin":    nil,
		"Apply":        nil,
		"PutOrigin":    func() error { return serverside.DB.PutOrigin(tx, serverside.Origin{}) },
		"Shadow":       func() error { _, err := serverside.DB.Shadow(tx, 0); return err },
		"Prefetch":     nil,
		"SetInterrupt": nil,
		"SetRoom":      nil,
		"SetRollsBack": nil,
		"String":       nil,
		"Bitmap":       nil,
		"HyperLogLog":  nil,
		"Hash":         nil,
		"List":         nil,
		"Set":          nil,
		"SortedSet":    nil,
		"Stream":       nil,
		"Geo":          nil,
		"Key":          nil,
		"Keyspace":     nil,
	}
	for name, m := range methodsOf(reflect.TypeOf(tx)) {
		row, ok := rows[name]
		if !ok {
			t.Errorf("Tx.%s has no row", name)
		} else if row == nil {
			args := []reflect.Value{reflect.ValueOf(tx)}
			for j := len(args); j < m.Type().NumIn(); j++ {
				args = append(args, reflect.Zero(m.Type().In(j)))
			}
			m.Call(args)
		}
	}
	for name, row := range rows {
		if row == nil {
			continue
		}
		if err := row(); !errors.Is(err, db.ErrTxDone) {
			t.Errorf("Tx.%s: %v", name, err)
		}
	}
}

// TestIteratorBeyondItsTransaction ends, and says why.
func TestIteratorBeyondItsTransaction(t *testing.T) {
	s := openMemory(t)
	fields := make([]db.Field, 1000) // more than a page
	for i := range fields {
		fields[i].Name = string(rune('a' + i))
	}
	ok[int](t)(s.Hash("h").PutAll(fields...))
	var next func() (db.Field, error, bool)
	must(t, s.View(func(tx *db.Tx) error {
		var stop func()
		next, stop = iter.Pull2(tx.Hash("h").All())
		t.Cleanup(stop)
		next()
		return nil
	}))
	n, last := 1, error(nil)
	for {
		_, err, more := next()
		if !more {
			break
		}
		last = err
		n++
	}
	if n >= len(fields) {
		t.Error("all fields were seen")
	}
	if !errors.Is(last, db.ErrTxDone) {
		t.Error(last)
	}
	usable(t, "an iterator that outlived its transaction", s)
}

// TestEndWhereItIsNotDue: a closure's transaction is ended by the store alone, and one of Begin not within its own
// callbacks.
func TestEndWhereItIsNotDue(t *testing.T) {
	s := openMemory(t)
	must(t, s.Update(func(tx *db.Tx) error {
		if _, err := tx.End(nil); !errors.Is(err, db.ErrNotBegun) {
			t.Error(err)
		}
		return tx.String("k").Put([]byte("v"))
	}))
	equal(t, "k", string(ok[[]byte](t)(s.String("k").Get())), "v")
	tx := ok[*db.Tx](t)(s.Begin(true, "s"))
	ok[int](t)(tx.Set("s").Add("member"))
	must(t, tx.Set("s").Visit(nil, func([]byte) bool {
		if _, err := tx.End(nil); !errors.Is(err, db.ErrNested) {
			t.Error(err)
		}
		if _, err := tx.Set("s").Add("other"); !errors.Is(err, db.ErrNested) {
			t.Error(err)
		}
		return true
	}))
	ok[db.Ticket](t)(tx.End(nil))
	equal(t, "members", ok[int](t)(s.Set("s").Len()), 1)
}

// TestSavepointOfAnother is refused.
func TestSavepointOfAnother(t *testing.T) {
	s := openMemory(t)
	must(t, s.Update(func(tx *db.Tx) error {
		first := tx.Savepoint()
		must(t, tx.String("a").Put(nil))
		second := tx.Savepoint()
		must(t, tx.RollbackTo(first))
		for _, sp := range []db.Savepoint{second, {}} {
			if err := tx.RollbackTo(sp); !errors.Is(err, db.ErrSavepoint) {
				t.Error(err)
			}
		}
		must(t, tx.RollbackTo(first))
		return tx.String("b").Put(nil)
	}))
	equal(t, "keys", allKeys(t, s), "[b]")
}

// TestLeakedTransactionBesideOthers: a goroutine that uses a transaction which has ended disturbs no other, and the
// race detector finds nothing.
func TestLeakedTransactionBesideOthers(t *testing.T) {
	s := openMemory(t)
	var leaked []*db.Tx
	for _, leak := range leaks {
		leaked = append(leaked, leak(t, s))
	}
	var work sync.WaitGroup
	stop := make(chan struct{})
	for _, tx := range leaked {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := tx.String("stray").Put([]byte("x")); !errors.Is(err, db.ErrTxDone) {
					t.Error(err)
				}
				if _, err := tx.End(nil); !errors.Is(err, db.ErrTxDone) {
					t.Error(err)
				}
				tx.Savepoint()
			}
		})
	}
	for range 300 {
		must(t, s.Update(func(tx *db.Tx) error { return tx.String("k").Put(nil) }))
		must(t, s.String("k").Put(nil))
		ok[int](t)(s.List("l").PushBack(nil))
	}
	close(stop)
	work.Wait()
	equal(t, "stray", ok[bool](t)(s.Key("stray").Exists()), false)
	usable(t, "the use of ended transactions", s)
}

func allKeys(t *testing.T, s *db.Store) string {
	t.Helper()
	keys := ok[[]string](t)(s.Keyspace().Keys("*"))
	slices.Sort(keys)
	return fmt.Sprint(keys)
}
