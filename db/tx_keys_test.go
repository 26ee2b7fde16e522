package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// onSomeKeys are the ways to a transaction on some keys, which are "list" alone.
var onSomeKeys = map[string]func(t *testing.T, s *db.Store, fn func(*db.Tx)) error{
	"ViewKeys": func(_ *testing.T, s *db.Store, fn func(*db.Tx)) error {
		return s.ViewKeys([]string{"list"}, func(tx *db.Tx) error { fn(tx); return nil })
	},
	"UpdateKeys": func(_ *testing.T, s *db.Store, fn func(*db.Tx)) error {
		return s.UpdateKeys([]string{"list"}, func(tx *db.Tx) error { fn(tx); return nil })
	},
	"Begin": func(t *testing.T, s *db.Store, fn func(*db.Tx)) error {
		tx := ok[*db.Tx](t)(s.Begin(true, "list"))
		fn(tx)
		return first(tx.End(nil))
	},
	"Await": func(t *testing.T, s *db.Store, fn func(*db.Tx)) error {
		return s.Await(t.Context(), db.Wait{Keys: []string{"list"}, Type: db.TypeList, Do: func(tx *db.Tx, _ string) error { fn(tx); return nil }})
	},
}

// TestKeyThatWasNotNamed: whatever is done with a key that is none of the transaction's fails with ErrNotLocked, which
// is the caller's mistake and no defect of the store.
func TestKeyThatWasNotNamed(t *testing.T) {
	for how, run := range onSomeKeys {
		t.Run(how, func(t *testing.T) {
			s := openMemory(t)
			oneOfEach(t, s)
			refused := map[string]bool{}
			check := func(name string, err error) {
				var ofRedis structures.Error
				switch {
				case errors.Is(err, db.ErrNotLocked):
					refused[name] = true
				case err != nil && strings.Contains(err.Error(), "BUG"):
					t.Errorf("%s: %v", name, err)
				case err == nil, errors.Is(err, db.ErrReadOnly), errors.As(err, &ofRedis):
				case errors.Is(err, db.ErrSameKey), errors.Is(err, db.ErrNotFound): // before a key is looked up, of the zeros that it got
				default:
					t.Errorf("%s: %v", name, err)
				}
			}
			mustRefuse := func(name string, err error) {
				if check(name, err); !refused[name] && !errors.Is(err, db.ErrReadOnly) {
					t.Errorf("%s: %v", name, err)
				}
			}
			err := run(t, s, func(tx *db.Tx) {
				for _, h := range handlesOf(tx, "string") {
					everyMethod(t, h, check)
				}
				all := tx.Keyspace()
				mustRefuse("String.Get", first(tx.String("string").Get()))
				mustRefuse("List.Move", first(tx.List("list").Move("string", db.Front, db.Back)))
				mustRefuse("Keyspace.Delete", first(all.Delete("list", "string")))
				mustRefuse("Keyspace.Get", first(all.Get("string")))
				mustRefuse("Keyspace.Put", all.Put(db.Pair{Key: "string"}))
				mustRefuse("Keyspace.Keys", first(all.Keys("*")))
				for _, err := range all.All() {
					mustRefuse("Keyspace.All", err)
				}
				mustRefuse("Tx.Flush", tx.Flush())
				mustRefuse("Tx.Swap", tx.Swap(0, 1))
				mustRefuse("Tx.Try", tx.Try(db.Wait{Keys: []string{"string"}, Type: db.TypeList}))
			})
			if err != nil && !errors.Is(err, db.ErrNotLocked) { // of an iterator
				t.Error(err)
			}
			if len(refused) < 30 {
				t.Errorf("%d calls were refused: %v", len(refused), refused)
			}
			if n, err := s.Key("string").Exists(); !n || err != nil {
				t.Errorf("the key is there: %t, %v", n, err)
			}
			usable(t, how, s)
		})
	}
}

// TestErrorsOfThePackage: no error of the package names another one, which a program may not know.
func TestErrorsOfThePackage(t *testing.T) {
	errs := map[string]error{
		"ErrBadPayload": db.ErrBadPayload, "ErrBound": db.ErrBound, "ErrClock": db.ErrClock, "ErrClosed": db.ErrClosed, "ErrExists": db.ErrExists, "ErrFailed": db.ErrFailed, "ErrLibrary": db.ErrLibrary,
		"ErrMemory": db.ErrMemory, "ErrMergeBusy": db.ErrMergeBusy, "ErrMismatch": db.ErrMismatch, "ErrNamespace": db.ErrNamespace, "ErrNested": db.ErrNested, "ErrNoSpace": db.ErrNoSpace,
		"ErrNotBegun": db.ErrNotBegun, "ErrNotFollowing": db.ErrNotFollowing, "ErrNotFound": db.ErrNotFound, "ErrNotLocked": db.ErrNotLocked, "ErrOption": db.ErrOption,
		"ErrPayload": db.ErrPayload, "ErrReadOnly": db.ErrReadOnly, "ErrReplica": db.ErrReplica, "ErrRolledBack": db.ErrRolledBack, "ErrSameKey": db.ErrSameKey, "ErrSavepoint": db.ErrSavepoint,
		"ErrTooLarge": db.ErrTooLarge, "ErrTxDone": db.ErrTxDone, "ErrWrongType": db.ErrWrongType,
	}
	for _, v := range packageOf(t, ".").Vars {
		for _, name := range v.Names {
			if strings.HasPrefix(name, "Err") && errs[name] == nil {
				t.Errorf("%s is not in the list", name)
			}
		}
	}
	for name, err := range errs {
		for _, other := range []string{"bitcask", "keydir", "structures", "BUG"} {
			if strings.Contains(err.Error(), other) {
				t.Errorf("%s says %q", name, err)
			}
		}
	}
}
