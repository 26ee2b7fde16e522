package db_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

// timedHash makes a hash of which the field "short" expires after a second, "long" after twenty and "plain" never.
func timedHash(t *testing.T, h db.Hash) {
	t.Helper()
	ok[int](t)(h.PutAll(db.Field{Name: "short"}, db.Field{Name: "long"}, db.Field{Name: "plain"}))
	ok[[]db.FieldResult](t)(h.ExpireFields(time.Second, []string{"short"}))
	ok[[]db.FieldResult](t)(h.ExpireFields(20*time.Second, []string{"long"}))
}

// ttls are the times that the fields of a timed hash have left.
func ttls(t *testing.T, h db.Hash) string {
	t.Helper()
	return fmt.Sprint(ok[[]time.Duration](t)(h.FieldTTLs("short", "long", "plain")))
}

func TestHashDeadlineMethods(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		h := k.Hash("h")
		ok[int](t)(h.PutAll(db.Field{Name: "a", Value: []byte("1")}, db.Field{Name: "b"}, db.Field{Name: "c"}))
		at := time.UnixMilli(time.Now().UnixMilli() + 3_600_000)
		for _, c := range []struct {
			name      string
			got, want any
		}{
			{"set", ok[[]db.FieldResult](t)(h.ExpireFieldsAt(at, []string{"a", "x"})), []db.FieldResult{db.FieldChanged, db.FieldMissing}},
			{"again", ok[[]db.FieldResult](t)(h.ExpireFields(time.Minute, []string{"a", "b"}, db.IfPresent, db.IfGreater)),
				[]db.FieldResult{db.FieldUnchanged, db.FieldUnchanged}},
			{"deadlines", ok[[]db.FieldDeadline](t)(h.FieldDeadlines("a", "b", "x")), []db.FieldDeadline{{Exists: true, At: at}, {Exists: true}, {}}},
			{"persist", ok[[]db.FieldResult](t)(h.PersistFields("a", "a", "x")), []db.FieldResult{db.FieldChanged, db.FieldWithoutTTL, db.FieldMissing}},
			{"past", ok[[]db.FieldResult](t)(h.ExpireFields(0, []string{"b"})), []db.FieldResult{db.FieldDeleted}},
			{"get", ok[[][]byte](t)(h.GetAndExpire(time.Hour, "a", "x")), [][]byte{[]byte("1"), nil}},
			{"get and persist", ok[[][]byte](t)(h.GetAndPersist("a")), [][]byte{[]byte("1")}},
			{"get and delete", ok[[][]byte](t)(h.GetAndExpireAt(time.UnixMilli(5), "a")), [][]byte{[]byte("1")}},
			{"what is left", ok[[]string](t)(h.Fields()), []string{"c"}},
		} {
			if !reflect.DeepEqual(c.got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
			}
		}
		field := []db.Field{{Name: "c"}}
		_, conditions := h.ExpireFields(1, nil, db.IfAbsent, db.IfPresent)
		_, late := h.ExpireFieldsAt(db.LastFieldDeadline.Add(time.Millisecond), nil)
		_, never := h.GetAndExpire(0, "c")
		for _, c := range []struct {
			name      string
			err, want error
		}{
			{"absent", h.PutWith(field, db.IfAbsent), db.ErrExists},
			{"present", k.Hash("none").PutWith(field, db.IfPresent), db.ErrNotFound},
			{"two deadlines", h.PutWith(field, db.TTL(time.Hour), db.KeepTTL), structures.ErrSyntax},
			{"two conditions", h.PutWith(field, db.IfAbsent, db.IfPresent), structures.ErrSyntax},
			{"no time", h.PutWith(field, db.TTL(0)), structures.ErrExpireTime},
			{"contradiction", conditions, structures.ErrExpireNX},
			{"too late", late, structures.ErrExpireTime},
			{"never", never, structures.ErrExpireTime},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
			}
		}
	})
}

// TestHashDeadlinesTravel renames, copies, moves, dumps and restores a hash. Expired fields are left out.
func TestHashDeadlinesTravel(t *testing.T) {
	travel := map[string]func(s *db.Store) (db.Hash, error){
		"rename": func(s *db.Store) (db.Hash, error) { return s.Hash("to"), s.Key("h").Rename("to") },
		"copy": func(s *db.Store) (db.Hash, error) {
			err := s.Key("h").CopyTo(0, "to", db.IfAbsent)
			return s.Hash("to"), err
		},
		"move": func(s *db.Store) (db.Hash, error) {
			err := s.Key("h").MoveTo(1)
			other, uerr := s.Use(1)
			return other.Hash("h"), errors.Join(err, uerr)
		},
		"restore": func(s *db.Store) (db.Hash, error) {
			payload, err := s.Key("h").Dump()
			return s.Hash("to"), errors.Join(err, s.Key("to").Restore(payload, db.IfAbsent))
		},
		"restore over itself": func(s *db.Store) (db.Hash, error) {
			payload, err := s.Key("h").Dump()
			return s.Hash("h"), errors.Join(err, s.Key("h").Restore(payload))
		},
	}
	for name, do := range travel {
		for _, expired := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", expired ", expired), func(t *testing.T) {
				withDeadlines(t, func(t *testing.T, s *deadlineStore) {
					timedHash(t, s.Hash("h"))
					want := "[1s 20s -1ns]"
					if expired {
						must(t, s.Close())
						s.openWith(&db.Options{ExpireEvery: -1}) // not reaped
						time.Sleep(time.Second)
						want = "[-2ns 19s -1ns]"
					}
					to := ok[db.Hash](t)(do(s.Store))
					equal(t, "deadlines", ttls(t, to), want)
					time.Sleep(20 * time.Second)
					equal(t, "fields left", fmt.Sprint(ok[[]string](t)(to.Fields())), "[plain]")
					ok[int](t)(s.Expire(time.Hour, 100))
					must(t, checkStore(s.Store))
				})
			})
		}
	}
}

func checkStore(s *db.Store) (err error) {
	_, cerr := s.Check(context.Background(), func(f bitcask.Finding) { err = errors.Join(err, errors.New(f.String())) })
	return errors.Join(err, cerr)
}

func (d *deadlineStore) openWith(o *db.Options) {
	seam.Of(o).FS = d.fs
	d.Store = ok[*db.Store](d.t)(db.Open("d", o))
}

// TestExpiryCycleReapsFields reaps a large hash piece by piece, and hashes of which nothing is left whole.
func TestExpiryCycleReapsFields(t *testing.T) {
	withDeadlines(t, func(t *testing.T, s *deadlineStore) {
		fields, names := make([]db.Field, 2500), make([]string, 2500)
		for i := range fields {
			names[i] = fmt.Sprint("field", i)
			fields[i].Name = names[i]
		}
		ok[int](t)(s.Hash("large").PutAll(fields...))
		ok[[]db.FieldResult](t)(s.Hash("large").ExpireFields(time.Second, names[1:]))
		must(t, s.Hash("whole").PutWith(fields, db.TTL(time.Second)))
		must(t, s.Hash("last").PutWith(fields[:1], db.TTL(time.Second)))
		must(t, s.String("key").Put(nil, db.TTL(time.Second)))
		equal(t, "timed hashes", s.Stats().Namespaces[0].TimedHashes, 3)
		time.Sleep(990 * time.Millisecond)
		equal(t, "fields before", ok[int](t)(s.Hash("large").Len()), 2500)
		equal(t, "reaped before", s.Stats().ExpiredFields, 0)
		time.Sleep(20 * time.Millisecond)
		equal(t, "fields after", ok[int](t)(s.Hash("large").Len()), 1)
		time.Sleep(time.Second) // ten runs of the cycle
		equal(t, "reaped fields", s.Stats().ExpiredFields, 2499+2500+1)
		equal(t, "reaped keys", s.Stats().Expired, 1)
		equal(t, "keys", s.Len(), 1)
		equal(t, "timed hashes", s.Stats().Namespaces[0].TimedHashes, 0)
		must(t, checkStore(s.Store))
	})
}

// TestFieldsStayGone sets the clock back: a bubble begins where the previous one began. Deleted fields stay gone, with
// the TTL file and without.
func TestFieldsStayGone(t *testing.T) {
	for _, file := range []bool{true, false} {
		disk := vfs.NewMem()
		synctest.Test(t, func(t *testing.T) {
			s := &deadlineStore{t: t, fs: disk}
			s.openWith(&db.Options{})
			timedHash(t, s.Hash("h"))
			time.Sleep(10 * time.Second)
			must(t, s.Close())
			if !file {
				must(t, disk.Remove(filepath.Join("d", bitcask.TTLName)))
			}
		})
		synctest.Test(t, func(t *testing.T) {
			s := &deadlineStore{t: t, fs: disk}
			s.openWith(&db.Options{})
			equal(t, "deadlines", ttls(t, s.Hash("h")), "[-2ns 20s -1ns]")
			must(t, s.Close())
		})
	}
}

// TestHashDeadlinesAreKept opens a store with deadlines of fields as each kind of ending leaves it.
func TestHashDeadlinesAreKept(t *testing.T) {
	endings := map[string]func(s *deadlineStore){
		"closed": func(s *deadlineStore) { must(s.t, s.Close()) },
		"killed": func(s *deadlineStore) {
			dead := s.Store
			s.fs = s.fs.Clone()
			must(s.t, dead.Close())
		},
		"without TTL file": func(s *deadlineStore) {
			must(s.t, s.Close())
			must(s.t, s.fs.Remove(filepath.Join("d", bitcask.TTLName)))
		},
		"damaged TTL file": func(s *deadlineStore) {
			must(s.t, s.Close())
			b := s.ttlFile()
			b[len(b)/2] ^= 1
			s.putTTLFile(b)
		},
		"without INDEX": func(s *deadlineStore) {
			must(s.t, s.Close())
			if !s.noIndex {
				must(s.t, s.fs.Remove(filepath.Join("d", bitcask.IndexFile)))
			}
		},
		"merged": func(s *deadlineStore) {
			s.mergeAll()
			must(s.t, s.Close())
		},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			withDeadlines(t, func(t *testing.T, s *deadlineStore) {
				timedHash(t, s.Hash("h"))
				must(t, s.String("key").Put(nil, db.TTL(20*time.Second)))
				end(s)
				s.open()
				equal(t, "deadlines", ttls(t, s.Hash("h")), "[1s 20s -1ns]")
				time.Sleep(1100 * time.Millisecond)
				equal(t, "reaped", s.Stats().ExpiredFields, 1)
				time.Sleep(20 * time.Second)
				equal(t, "reaped", s.Stats().ExpiredFields, 2)
				equal(t, "keys", s.Len(), 1)
				must(t, checkStore(s.Store))
			})
		})
	}
}
