package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/vfs"
)

// errShown is the result of a read that sees something expired.
var errShown = errors.New("it is there")

// showing is every way to be shown that something has expired: the string "k",
// the field "f" of "h", which has another field, and the hash "all" with all its
// fields.
var showing = map[string]func(s *db.Store) error{
	"Get": func(s *db.Store) error {
		_, err := s.String("k").Get()
		return wantGone(!errors.Is(err, db.ErrNotFound), nil)
	},
	"Exists":     func(s *db.Store) error { ok, err := s.Key("k").Exists(); return wantGone(ok, err) },
	"Exists all": func(s *db.Store) error { n, err := s.Keyspace().Exists("k", "all"); return wantGone(n > 0, err) },
	"Type":       func(s *db.Store) error { typ, err := s.Key("k").Type(); return wantGone(typ != db.TypeNone, err) },
	"TTL": func(s *db.Store) error {
		_, err := s.Key("k").TTL()
		return wantGone(!errors.Is(err, db.ErrNotFound), nil)
	},
	"StrLen": func(s *db.Store) error { n, err := s.String("k").Len(); return wantGone(n > 0, err) },
	"MGET": func(s *db.Store) error {
		values, err := s.Keyspace().Get("k", "other")
		return wantGone(err == nil && values[0] != nil, err)
	},
	"Scan": func(s *db.Store) error {
		keys, _, err := s.Keyspace().Scan(0, db.KeyScanOptions{Count: 1000})
		return wantGone(slices.ContainsFunc(keys, func(k db.KeyInfo) bool { return k.Key == "k" || k.Key == "all" }), err)
	},
	"Keys": func(s *db.Store) error {
		keys, err := s.Keyspace().Keys("*")
		return wantGone(slices.Contains(keys, "k") || slices.Contains(keys, "all"), err)
	},
	"All": func(s *db.Store) error {
		for k, err := range s.Keyspace().All() {
			if err != nil || k.Key == "k" || k.Key == "all" {
				return errors.Join(err, errShown)
			}
		}
		return nil
	},
	"Range": func(s *db.Store) error {
		for k, err := range s.Keyspace().Range(db.KeyRange{}) {
			if err != nil || k.Key == "k" || k.Key == "all" {
				return errors.Join(err, errShown)
			}
		}
		return nil
	},
	"CountRange": func(s *db.Store) error { n, err := s.Keyspace().CountRange(db.KeyRange{}); return wantGone(n > 2, err) },
	"RandomKey": func(s *db.Store) error {
		for range 100 {
			if key, err := s.Keyspace().RandomKey(); err != nil || key == "k" || key == "all" {
				return errors.Join(errShown, err)
			}
		}
		return nil
	},
	"Dump": func(s *db.Store) error {
		_, err := s.Key("k").Dump()
		return wantGone(!errors.Is(err, db.ErrNotFound), nil)
	},
	"Usage": func(s *db.Store) error {
		_, err := s.Key("k").Usage(0)
		return wantGone(!errors.Is(err, db.ErrNotFound), nil)
	},
	"View": func(s *db.Store) error {
		return s.View(func(tx *db.Tx) error { ok, err := tx.Key("k").Exists(); return wantGone(ok, err) })
	},
	"View that fails": func(s *db.Store) error {
		failed := errors.New("failed")
		err := s.View(func(tx *db.Tx) error { ok, err := tx.Key("k").Exists(); return errors.Join(wantGone(ok, err), failed) })
		if errors.Is(err, failed) && !errors.Is(err, errShown) {
			return nil
		}
		return err
	},
	"Update rolled back": func(s *db.Store) error {
		failed := errors.New("failed")
		err := s.Update(func(tx *db.Tx) error { ok, err := tx.Key("k").Exists(); return errors.Join(wantGone(ok, err), failed) })
		if errors.Is(err, failed) && !errors.Is(err, errShown) {
			return nil
		}
		return err
	},
	"Update with a savepoint": func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error {
			sp := tx.Savepoint()
			ok, err := tx.Key("k").Exists()
			return errors.Join(wantGone(ok, err), tx.RollbackTo(sp))
		})
	},
	"Update": func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error { ok, err := tx.Key("k").Exists(); return wantGone(ok, err) })
	},
	"Append": func(s *db.Store) error {
		n, err := s.String("k").Append([]byte("+"))
		return errors.Join(wantGone(n != 1, err), func() error { _, err := s.Key("k").Delete(); return err }())
	},
	"Watch": func(s *db.Store) error {
		w, err := s.Watch("k")
		if err != nil {
			return err
		}
		defer w.Close()
		return s.View(func(tx *db.Tx) error {
			changed, err := w.Changed(tx)
			if err != nil || changed {
				return errors.Join(errShown, err) // it was gone when the watch began
			}
			ok, err := tx.Key("k").Exists()
			return wantGone(ok, err)
		})
	},
	"HGET": func(s *db.Store) error {
		_, err := s.Hash("h").Get("f")
		return wantGone(!errors.Is(err, db.ErrNotFound), nil)
	},
	"HEXISTS": func(s *db.Store) error { ok, err := s.Hash("h").Has("f"); return wantGone(ok, err) },
	"HLEN":    func(s *db.Store) error { n, err := s.Hash("h").Len(); return wantGone(n != 1, err) },
	"HKEYS":   func(s *db.Store) error { f, err := s.Hash("h").Fields(); return wantGone(len(f) != 1, err) },
	"HSCAN": func(s *db.Store) error {
		f, _, err := s.Hash("h").Scan(0, db.ScanOptions{Count: 100})
		return wantGone(len(f) != 1, err)
	},
	"HPTTL": func(s *db.Store) error {
		ttls, err := s.Hash("h").FieldTTLs("f")
		return wantGone(len(ttls) == 1 && ttls[0] > 0, err)
	},
	"HSET and roll back": func(s *db.Store) error {
		failed := errors.New("failed")
		err := s.Update(func(tx *db.Tx) error {
			added, err := tx.Hash("h").Put("f", []byte("2"))
			return errors.Join(wantGone(!added, err), failed)
		})
		if errors.Is(err, failed) && !errors.Is(err, errShown) {
			return nil
		}
		return err
	},
	"all fields":     func(s *db.Store) error { ok, err := s.Key("all").Exists(); return wantGone(ok, err) },
	"all fields' no": func(s *db.Store) error { n, err := s.Hash("all").Len(); return wantGone(n > 0, err) },
}

func wantGone(there bool, err error) error {
	if there {
		return errors.Join(errShown, err)
	}
	return err
}

// TestShownAsGoneStaysGone: a key shown as expired is not back after the store was closed, or its
// process killed, and the clock has been put back. The clock of each bubble begins at the same
// moment.
func TestShownAsGoneStaysGone(t *testing.T) {
	for _, name := range budget.Some(t, slices.Sorted(maps.Keys(showing)), 8) {
		show := showing[name]
		for _, ordered := range []bool{false, true} {
			if ordered && !strings.Contains(name, "Range") && name != "Update" {
				continue // the same as without
			}
			for _, closed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/ordered=%v/closed=%v", name, ordered, closed), func(t *testing.T) {
					o := db.Options{ExpireEvery: -1, NoMerge: true, Sync: db.SyncNone, OrderedKeys: ordered}
					var left *vfs.Mem
					synctest.Test(t, func(t *testing.T) { left = showGone(t, o, show, closed) })
					synctest.Test(t, func(t *testing.T) { wantStillGone(t, o, show, left) })
				})
			}
		}
	}
}

// showGone lets things expire, looks, and returns what a closed or killed store
// leaves.
func showGone(t *testing.T, o db.Options, show func(s *db.Store) error, closed bool) *vfs.Mem {
	mem := vfs.NewMem()
	seam.Of(&o).FS = mem
	s, err := db.Open("d", &o)
	must(t, err)
	must(t, s.String("stays").Put(nil, db.TTL(3*time.Hour)))
	must(t, s.String("k").Put([]byte("1"), db.TTL(time.Hour)))
	_, err = s.Hash("h").PutAll(db.Field{Name: "f", Value: []byte("1")}, db.Field{Name: "g"})
	must(t, err)
	_, err = s.Hash("all").PutAll(db.Field{Name: "a"}, db.Field{Name: "b"})
	must(t, err)
	_, err = s.Hash("h").ExpireFields(time.Hour, []string{"f"})
	must(t, err)
	_, err = s.Hash("all").ExpireFields(time.Hour, []string{"a", "b"})
	must(t, err)
	time.Sleep(2 * time.Hour)
	before := s.Log().Sequence()
	if err := show(s); err != nil {
		t.Fatalf("when it has expired: %v", err)
	}
	if s.Log().Sequence() == before {
		t.Error("nothing has been written")
	}
	appended := s.Log().Appended()
	must(t, show(s))
	if n := s.Log().Appended() - appended; n > 200 {
		t.Errorf("shown again: %d bytes written", n)
	}
	left := mem.Clone()
	must(t, s.Close())
	if closed {
		return mem
	}
	return left
}

// wantStillGone opens the files that are left, for reading and for writing, at a time before
// anything has expired.
func wantStillGone(t *testing.T, o db.Options, show func(s *db.Store) error, left *vfs.Mem) {
	for _, readOnly := range []bool{true, false} {
		o := o
		seam.Of(&o).FS, o.ReadOnly = left, readOnly
		s, err := db.Open("d", &o)
		must(t, err)
		if err := show(s); err != nil && !errors.Is(err, db.ErrReadOnly) {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
		if ok, err := s.Key("stays").Exists(); err != nil || !ok {
			t.Errorf("what had not expired: %v, %v", ok, err)
		}
		if !readOnly { // the clock is the machine's again
			must(t, s.String("new").Put(nil, db.TTL(time.Minute)))
			time.Sleep(59 * time.Second)
			if ok, err := s.Key("new").Exists(); err != nil || !ok {
				t.Errorf("before its time: %v, %v", ok, err)
			}
			time.Sleep(2 * time.Second)
			if ok, err := s.Key("new").Exists(); err != nil || ok {
				t.Errorf("after its time: %v, %v", ok, err)
			}
		}
		_, err = s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) })
		must(t, err)
		must(t, s.Close())
	}
}

// Reading unexpired keys writes nothing and notes nothing.
func TestClockCostsNothingUnlessNeeded(t *testing.T) {
	o := *seam.With(&db.Options{ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()})
	s, err := db.Open("d", &o)
	must(t, err)
	must(t, s.String("k").Put([]byte("1"), db.TTL(time.Hour)))
	before := s.Log().Sequence()
	_, err = s.String("k").Get()
	must(t, err)
	_, err = s.Keyspace().Keys("*")
	must(t, err)
	if after := s.Log().Sequence(); after != before {
		t.Errorf("%d records", after-before)
	}
	must(t, s.Close())
}

// TestClockOfANewerVersion: a record of the clock that this version cannot read refuses the store, of which nothing has
// changed by then.
func TestClockOfANewerVersion(t *testing.T) {
	dir := onDisk(t)
	s := openHere(t, dir, db.Options{NoMerge: true})
	putNumbered(t, s, "k", 0, 20)
	tx := ok[*bitcask.Tx](t)(s.Log().Begin(true, "k"))
	must(t, tx.PutSystem("clock", []byte("12345678, and more")))
	ok[uint64](t)(tx.Commit())
	tx.End()
	must(t, s.Close())
	now := filesOf(t, dir)
	for _, o := range []db.Options{{}, {ReadOnly: true}, {ReadDamaged: true}} {
		if _, err := db.Open(dir, &o); !errors.Is(err, bitcask.ErrVersion) {
			t.Errorf("%+v: %v", o, err)
		}
		sameFiles(t, dir, now)
	}
}
