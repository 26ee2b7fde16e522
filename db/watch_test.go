package db_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name    string
		before  func(s *db.Store) error
		change  func(s *db.Store) error
		changed bool
	}{
		{"nothing", nil, func(*db.Store) error { return nil }, false},
		{"another key", nil, func(s *db.Store) error { return s.String("other").Put(nil) }, false},
		{"another namespace", nil, func(s *db.Store) error {
			other, err := s.Use(1)
			if err != nil {
				return err
			}
			return other.String("k").Put(nil)
		}, false},
		{"made", nil, func(s *db.Store) error { return s.String("k").Put(nil) }, true},
		{"made and deleted", nil, func(s *db.Store) error {
			if err := s.String("k").Put(nil); err != nil {
				return err
			}
			_, err := s.Key("k").Delete()
			return err
		}, true},
		{"overwritten with the same", put, put, true},
		{"read", put, func(s *db.Store) error { _, err := s.String("k").Get(); return err }, false},
		{"deleted", put, func(s *db.Store) error { _, err := s.Key("k").Delete(); return err }, true},
		{"renamed", put, func(s *db.Store) error { return s.Key("k").Rename("l") }, true},
		{"given a deadline", put, func(s *db.Store) error { _, err := s.Key("k").Expire(time.Hour); return err }, true},
		{"expired", putMortal, func(*db.Store) error { time.Sleep(2 * time.Second); return nil }, true},
		{"expired before", putGone, func(s *db.Store) error { _, err := s.Expire(time.Second, 100); return err }, false},
		{"flushed", put, func(s *db.Store) error { return s.Flush() }, true},
		{"flushed while empty", nil, func(s *db.Store) error { return s.FlushAll() }, false},
		{"swapped", put, func(s *db.Store) error { return s.Swap(0, 1) }, true},
		{"swapped there and back", put, func(s *db.Store) error {
			if err := s.Swap(1, 0); err != nil {
				return err
			}
			return s.Swap(0, 1)
		}, true},
		{"swapped while empty", nil, func(s *db.Store) error { return s.Swap(0, 1) }, false},
		{"a member that is there", addMember, addMember, false},
		{"another member", addMember, func(s *db.Store) error { _, err := s.Set("k").Add("n"); return err }, true},
		{"no such member removed", addMember, func(s *db.Store) error { _, err := s.Set("k").Remove("n"); return err }, false},
		{"a list trimmed to what it is", func(s *db.Store) error { _, err := s.List("k").PushBack(nil); return err }, func(s *db.Store) error { return s.List("k").Trim(0, -1) }, true},
		{"a stream given another last id", addEntry, setLastID(5, 0), false},
		{"an empty stream given a lower last id, which makes it anew", func(s *db.Store) error {
			if err := addEntry(s); err != nil {
				return err
			}
			_, err := s.Stream("k").Trim(db.StreamTrim{})
			return err
		}, setLastID(1, 0), false},
		{"a stream made with a group", nil, func(s *db.Store) error {
			return s.Stream("k").Group("g").Create(db.StreamGroupStart{Make: true})
		}, true},
		{"taken back", put, func(s *db.Store) error {
			_ = s.Update(func(tx *db.Tx) error { _ = tx.String("k").Put(nil); return fmt.Errorf("no") })
			return nil
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openMemory(t)
				if tt.before != nil {
					must(t, tt.before(s))
				}
				w, err := s.Watch("k", "k")
				must(t, err)
				defer w.Close()
				must(t, tt.change(s))
				must(t, s.ViewKeys(w.Keys(), func(tx *db.Tx) error {
					changed, err := w.Changed(tx)
					if changed != tt.changed {
						t.Errorf("changed: %v", changed)
					}
					return err
				}))
			})
		})
	}
}

func put(s *db.Store) error { return s.String("k").Put([]byte("v")) }

func addMember(s *db.Store) error {
	_, err := s.Set("k").Add("m")
	return err
}

func addEntry(s *db.Store) error {
	_, err := s.Stream("k").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 3}}, db.Field{Name: "f"})
	return err
}

func setLastID(ms, seq uint64) func(s *db.Store) error {
	return func(s *db.Store) error { return s.Stream("k").SetID(db.StreamID{Ms: ms, Seq: seq}, db.StreamSetID{}) }
}

func putMortal(s *db.Store) error { return s.String("k").Put([]byte("v"), db.TTL(time.Second)) }

// putGone leaves an expired key that has not been reaped.
func putGone(s *db.Store) error {
	if err := s.String("k").Put([]byte("v"), db.TTL(time.Millisecond)); err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	return nil
}

// Counting by compare and retry loses nothing.
func TestWatchRace(t *testing.T) {
	s := openMemory(t)
	const workers, each = 4, 100
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for done := 0; done < each; {
				w, err := s.Watch("n")
				if err != nil {
					t.Error(err)
					return
				}
				value, err := s.Keyspace().Get("n")
				if err != nil {
					t.Error(err)
				}
				n := 0
				_, _ = fmt.Sscan(string(value[0]), &n)
				err = s.UpdateKeys(w.Keys(), func(tx *db.Tx) error {
					changed, err := w.Changed(tx)
					if err != nil || changed {
						return err
					}
					done++
					return tx.String("n").Put(fmt.Appendf(nil, "%d", n+1))
				})
				if err != nil {
					t.Error(err)
				}
				w.Close()
			}
		})
	}
	work.Wait()
	if value, err := s.String("n").Get(); err != nil || string(value) != fmt.Sprint(workers*each) {
		t.Errorf("counted %s, %v", value, err)
	}
}
