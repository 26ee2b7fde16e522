// Package storetest has what the tests of package db and those in db/test do with a store alike.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// Must ends the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// OK returns the value of a call that must not fail: OK[T](t)(call()).
func OK[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Equal compares what a test got with what it wants.
func Equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// First is the error of a call whose value does not matter.
func First[T any](_ T, err error) error { return err }

// Numbers are those below n.
func Numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Keys is what a store and a transaction have in common.
type Keys interface {
	String(key string) db.String
	Hash(key string) db.Hash
	List(key string) db.List
	Set(key string) db.Set
	Bitmap(key string) db.Bitmap
	HyperLogLog(key string) db.HyperLogLog
	SortedSet(key string) db.SortedSet
	Stream(key string) db.Stream
	Key(key string) db.Key
	Keyspace() db.Keyspace
}

// Add appends an entry with the id ms-0 to a stream.
func Add(t *testing.T, s db.Stream, ms uint64, fields ...db.Field) {
	t.Helper()
	if len(fields) == 0 {
		fields = []db.Field{{Name: "f", Value: []byte("v")}}
	}
	_, err := s.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: ms}}, fields...)
	Must(t, err)
}

// FieldsText is the fields of a stream entry on one line.
func FieldsText(fields []db.Field) string {
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "%q:%q ", f.Name, f.Value)
	}
	return b.String()
}

// MergeEverything merges all sealed segments.
func MergeEverything(s *db.Store) error {
	_, err := s.Merge(context.Background(), merge.RunOptions{All: true})
	return err
}

// RewriteNewest merges the newest sealed segment alone: its tombstones are needed as long as they hide something
// older.
func RewriteNewest(s *db.Store) (bitcask.RewriteResult, error) {
	var ids []uint32
	for _, sg := range s.Log().Segments() {
		if sg.Sealed {
			ids = append(ids[:0], sg.ID)
		}
	}
	return s.Log().Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
}

// FullPage is the page size of a disk that fills up.
const FullPage = 4 << 10

// FillStore puts strings until that is refused.
func FillStore(t *testing.T, s *db.Store) {
	t.Helper()
	var err error
	for i := 0; err == nil; i++ {
		err = s.String(fmt.Sprint("filler", i)).Put([]byte(strings.Repeat("v", 400)))
	}
	err = nil
	for i := 0; err == nil; i++ { // and shorter ones
		err = s.String(fmt.Sprint("short", i)).Put(nil)
	}
	if !errors.Is(err, db.ErrNoSpace) || errors.Is(err, db.ErrFailed) {
		t.Fatal(err)
	}
}

// BackupCommit is the n-th commit of a writer: its counter, the last fields and the length of its list agree in each
// state, and of two keys one has a deadline that has passed soon.
func BackupCommit(s *db.Store, w int, n int64) error {
	name := func(what string) string { return what + strconv.Itoa(w) }
	return s.UpdateKeys([]string{name("counter"), name("last"), name("list"), name("due")}, func(tx *db.Tx) error {
		text := []byte(strconv.FormatInt(n, 10))
		if err := tx.String(name("counter")).Put(text); err != nil {
			return err
		}
		if _, err := tx.Hash(name("last")).Put(strconv.FormatInt(n%50, 10), text); err != nil {
			return err
		}
		if err := tx.String(name("due")).Put(text, db.TTL(time.Duration(n%5)*time.Millisecond+time.Millisecond)); err != nil {
			return err
		}
		_, err := tx.List(name("list")).PushBack(text)
		if err == nil && n > 20 {
			_, err = tx.List(name("list")).PopFront()
		}
		return err
	})
}

// VerifyCommits checks that a store holds one of the states that BackupCommit made, of commit before or a later one. It
// returns which.
func VerifyCommits(t *testing.T, s *db.Store, dir string, w int, before int64) (held int64) {
	t.Helper()
	name := func(what string) string { return what + strconv.Itoa(w) }
	Must(t, s.View(func(tx *db.Tx) error {
		n := int64(0)
		if text, err := tx.String(name("counter")).Get(); err == nil {
			if n, err = strconv.ParseInt(string(text), 10, 64); err != nil {
				return err
			}
		} else if !errors.Is(err, db.ErrNotFound) {
			return err
		}
		if held = n; n < before {
			t.Errorf("%s holds commit %d of writer %d, %d had been acknowledged", dir, n, w, before)
		}
		for i := max(n-49, 1); i <= n; i++ {
			field, err := tx.Hash(name("last")).Get(strconv.FormatInt(i%50, 10))
			if err != nil || string(field) != strconv.FormatInt(i, 10) {
				t.Errorf("%s: after commit %d, commit %d left %q, %v", dir, n, i, field, err)
			}
		}
		elems, err := tx.List(name("list")).Range(0, -1)
		if err != nil || int64(len(elems)) != min(n, 20) || n > 0 && string(elems[len(elems)-1]) != strconv.FormatInt(n, 10) {
			t.Errorf("%s: after commit %d the list is %q, %v", dir, n, elems, err)
		}
		if text, err := tx.String(name("due")).Get(); err == nil && string(text) != strconv.FormatInt(n, 10) {
			t.Errorf("%s: after commit %d, %q has not expired", dir, n, text)
		}
		return nil
	}))
	return held
}
