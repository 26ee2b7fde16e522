package db_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// listenToChanges collects what OnChanges reports, a string for each commit.
func listenToChanges(t *testing.T, s *db.Store) (take func() []string) {
	t.Helper()
	var commits []string
	t.Cleanup(serverside.DB.OnChangesAndReads(s, func(changes []serverside.Change, _ uint64) {
		var words []string
		for _, c := range changes {
			switch {
			case c.Whole:
				words = append(words, fmt.Sprintf("%d:*", c.Namespace))
			case c.Read:
				words = append(words, fmt.Sprintf("read %d:%s by %d", c.Namespace, c.Key, c.Origin))
			default:
				words = append(words, fmt.Sprintf("%d:%s by %d", c.Namespace, c.Key, c.Origin))
			}
		}
		commits = append(commits, strings.Join(words, ", "))
	}))
	return func() []string {
		taken := commits
		commits = nil
		return taken
	}
}

// TestOnChangesWithoutReads: a program hears of changes, whatever a server has noted among them.
func TestOnChangesWithoutReads(t *testing.T) {
	s := openMemory(t)
	var got [][]db.Change
	defer s.OnChanges(func(changes []db.Change, _ db.Ticket) { got = append(got, changes) })()
	must(t, s.Update(func(tx *db.Tx) error {
		serverside.DB.SetOrigin(tx, 7)
		err := tx.String("a").Put(nil)
		if !serverside.DB.NoteRead(tx, "a") {
			t.Error("the read is not noted")
		}
		return errors.Join(err, tx.String("b").Put(nil))
	}))
	must(t, s.Flush())
	want := [][]db.Change{{{Key: "a"}, {Key: "b"}}, {{Whole: true}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("changes are %v, want %v", got, want)
	}
}

func TestOnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, &db.Options{ExpireEvery: -1})
		other := ok[*db.Store](t)(s.Use(1))
		must(t, s.String("short").Put([]byte("v"), db.TTL(time.Second)))
		must(t, s.String("shorter").Put([]byte("v"), db.TTL(time.Second)))
		ok[bool](t)(s.Hash("fields").Put("f", []byte("v")))
		ok[bool](t)(s.Hash("fields").Put("g", []byte("v")))
		ok[[]db.FieldResult](t)(s.Hash("fields").ExpireFields(time.Second, []string{"f"}))
		take := listenToChanges(t, s)
		refused := errors.New("refused")
		for _, step := range []struct {
			name string
			do   func() error
			want string // commits, separated by semicolons
		}{
			{"put", func() error { return s.String("k").Put([]byte("v")) }, "0:k by 0"},
			{"the same value", func() error { return s.String("k").Put([]byte("v")) }, "0:k by 0"},
			{"another namespace", func() error { return other.String("k").Put([]byte("v")) }, "1:k by 0"},
			{"read", func() error { return first(s.String("k").Get()) }, ""},
			{"delete of nothing", func() error { return first(s.Key("none").Delete()) }, ""},
			{"deadline", func() error { return first(s.Key("k").Expire(time.Hour)) }, "0:k by 0"},
			{"push", func() error { return first(s.List("l").PushBack([]byte("a"), []byte("b"))) }, "0:l by 0"},
			{"pop", func() error { return first(s.List("l").PopFront()) }, "0:l by 0"},
			{"rename", func() error { return s.Key("k").Rename("k2") }, "0:k2 by 0, 0:k by 0, 0:k2 by 0"},
			{"several", func() error { return s.Keyspace().Put(db.Pair{Key: "a"}, db.Pair{Key: "b"}) }, "0:a by 0, 0:b by 0"},
			{"refused", func() error {
				_ = s.Update(func(tx *db.Tx) error { return errors.Join(tx.String("a").Put(nil), refused) })
				return nil
			}, ""},
			{"origins, reads and a savepoint", func() error {
				return s.Update(func(tx *db.Tx) error {
					serverside.DB.SetOrigin(tx, 7)
					if serverside.DB.NoteRead(tx, "a") {
						t.Error("a read before the first change was noted")
					}
					err := tx.String("a").Put([]byte("1"))
					serverside.DB.SetOrigin(tx, 8)
					noted := serverside.DB.NoteRead(tx, "a")
					mark := tx.Savepoint()
					err = errors.Join(err, tx.String("b").Put([]byte("1")))
					noted = serverside.DB.NoteRead(tx, "b") && noted
					if !noted {
						t.Error("a read after a change was not noted")
					}
					return errors.Join(err, tx.RollbackTo(mark), tx.String("a").Put([]byte("2")))
				})
			}, "0:a by 7, read 0:a by 8, 0:a by 8"},
			{"time passes", func() error { time.Sleep(2 * time.Second); return nil }, ""},
			{"expired, found by a reader", func() error { _, _ = s.String("short").Get(); return nil }, ""},
			{"expired, found by a writer", func() error { return first(s.String("short").Append([]byte("x"))) }, "0:short by 0"},
			{"flush within a transaction", func() error { return other.Update(func(tx *db.Tx) error { return tx.Flush() }) }, "1:k by 0, 1:*"},
			{"swap within a transaction", func() error {
				return s.Update(func(tx *db.Tx) error { return errors.Join(tx.Keyspace().Put(), tx.Swap(1, 2)) })
			}, "1:*, 2:*"},
			{"swap", func() error { return s.Swap(1, 2) }, "1:*; 2:*"},
			{"flush", func() error { return s.Flush() }, "0:*"},
		} {
			must(t, step.do())
			got := strings.Join(take(), "; ")
			if step.name == "swap" {
				got = strings.ReplaceAll(got, ", ", "; ")
			}
			if got != step.want {
				t.Errorf("%s: changes are %q, want %q", step.name, got, step.want)
			}
		}
	})
}

// TestOnChangesOfExpiry: the cycle reports the keys that it deletes, and the hashes that it takes fields from.
func TestOnChangesOfExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, &db.Options{ExpireEvery: -1})
		must(t, s.String("k").Put([]byte("v"), db.TTL(time.Second)))
		for _, f := range []string{"f", "g"} {
			ok[bool](t)(s.Hash("part").Put(f, []byte("v")))
		}
		ok[[]db.FieldResult](t)(s.Hash("part").ExpireFields(time.Second, []string{"f"}))
		ok[bool](t)(s.Hash("whole").Put("f", []byte("v")))
		ok[[]db.FieldResult](t)(s.Hash("whole").ExpireFields(time.Second, []string{"f"}))
		take := listenToChanges(t, s)
		time.Sleep(2 * time.Second)
		ok[int](t)(s.Expire(time.Second, 100))
		got := take()
		slices.Sort(got)
		if want := []string{"0:k by 0", "0:part by 0", "0:whole by 0"}; !slices.Equal(got, want) {
			t.Errorf("changes are %q, want %q", got, want)
		}
	})
}
