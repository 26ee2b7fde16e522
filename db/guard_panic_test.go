package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
	"github.com/stavedb/stave/structures"
)

// userCode has for each method that takes or returns a function how to have it call one. cb is called where the user's
// code would run; it panics, or ends the goroutine. One method may have several places.
var userCode = map[string][]func(t *testing.T, s *db.Store, cb func()){
	"Store.View":        {func(t *testing.T, s *db.Store, cb func()) { must(t, s.View(func(*db.Tx) error { cb(); return nil })) }},
	"Store.Update":      {func(t *testing.T, s *db.Store, cb func()) { must(t, s.Update(calling(t, cb))) }},
	"Store.ViewKeys":    {func(t *testing.T, s *db.Store, cb func()) { must(t, s.ViewKeys([]string{"hash"}, reading(t, cb))) }},
	"Store.UpdateKeys":  {func(t *testing.T, s *db.Store, cb func()) { must(t, s.UpdateKeys([]string{"string"}, calling(t, cb))) }},
	"Store.BackupTo":    {backupTo},
	"Store.Check":       {checkReports((*db.Store).Check)},
	"Store.CheckReplay": {checkReports((*db.Store).CheckReplay)},
	"Store.Merge":       {mergeProgress},
	"Store.Survey": {func(t *testing.T, s *db.Store, cb func()) {
		ok[db.Survey](t)(s.Survey(t.Context(), db.SurveyOptions{Progress: func(int) { cb() }}))
	}},
	"Store.Await":    {awaitAtOnce, awaitServed, awaitServedLater},
	"Store.OnEvents": onCommits(func(s *db.Store, cb func()) func() { return s.OnEvents(structures.AllClasses, func(db.Event) { cb() }) }),
	"Store.OnChangesAndReads": onCommits(func(s *db.Store, cb func()) func() {
		return serverside.DB.OnChangesAndReads(s, func([]serverside.Change, uint64) { cb() })
	}),
	"Store.OnChanges": onCommits(func(s *db.Store, cb func()) func() { return s.OnChanges(func([]db.Change, db.Ticket) { cb() }) }),
	"Tx.Try": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Update(func(tx *db.Tx) error { return tx.Try(waitFor("list", cb)) }))
		},
		func(t *testing.T, s *db.Store, cb func()) { // of Begin: code that panics there ends it
			tx := ok[*db.Tx](t)(s.Begin(true, "list"))
			err := errors.New("panicked")
			defer func() { _, _ = tx.End(err) }()
			err = tx.Try(waitFor("list", cb))
		},
	},
	"Tx.OnCommit": {hooked},
	"Tx.Enqueue":  {enqueued, woken, wokenByClose},

	"Hash.Visit": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").Visit(func(int) { cb() }, func(_, _ []byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").Visit(nil, func(_, _ []byte) bool { cb(); return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) { // in a transaction
			must(t, s.Update(func(tx *db.Tx) error {
				return tx.Hash("hash").Visit(nil, func(_, _ []byte) bool { cb(); return true })
			}))
		},
	},
	"Key.VisitSorted": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Key("set").VisitSorted(db.SortOptions{Alpha: true}, func(int) { cb() }, func([]byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Key("set").VisitSorted(db.SortOptions{Alpha: true, Get: []string{"none_*", "#"}}, nil, func([]byte) bool { cb(); return true }))
		},
	},
	"Store.InterruptibleKeyspace": {
		func(t *testing.T, s *db.Store, cb func()) {
			for i := range 1000 {
				must(t, s.String(fmt.Sprint("interruptible", i)).Put(nil))
			}
			_, err := serverside.DB.InterruptibleKeyspace(s, func() error { cb(); return nil }).Keys("none*")
			must(t, err)
		},
	},
	"Tx.SetInterrupt": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Update(func(tx *db.Tx) error {
				serverside.DB.SetInterrupt(tx, func() error { cb(); return nil })
				_, err := tx.Keyspace().Exists(slices.Repeat([]string{"set"}, 1000)...)
				return err
			}))
		},
	},
	"Store.KeepReplication": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, serverside.DB.KeepReplication(s, func() []byte { cb(); return nil }))
		},
	},
	"Store.TakeReplication": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, serverside.DB.KeepReplication(s, func() []byte { return []byte("x") }))
			ok[[]byte](t)(serverside.DB.TakeReplication(s, func() error { cb(); return nil }))
		},
	},
	"Store.SetReplicaAt": {
		func(t *testing.T, s *db.Store, cb func()) {
			defer func() { must(t, serverside.DB.SetReplicaOf(s, nil, false)) }() // a replica is not written to
			must(t, serverside.DB.SetReplicaAt(s, nil, func([]byte) (o serverside.Origin, ok bool) { cb(); return o, false }))
		},
	},
	"Tx.SetRoom": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.String("long").Put(make([]byte, 2<<20)))
			must(t, s.Update(func(tx *db.Tx) error {
				serverside.DB.SetRoom(tx, func(int) error { cb(); return nil })
				_, err := tx.String("long").Get()
				return err
			}))
		},
	},
	"Hash.VisitMany": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitMany([]string{"a", "none"}, func(int, []byte) bool { cb(); return true }))
		},
	},
	"Hash.VisitAndDelete": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitAndDelete([]string{"a", "none"}, func(int, []byte) bool { cb(); return true }))
		},
	},
	"Hash.VisitAndExpireAt": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitAndExpireAt(time.Now().Add(time.Hour), []string{"a", "none"}, func(int, []byte) bool { cb(); return true }))
		},
	},
	"Hash.VisitAndPersist": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitAndPersist([]string{"a", "none"}, func(int, []byte) bool { cb(); return true }))
		},
	},
	"Hash.VisitTimed": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitTimed(func(int, int64) { cb() }, func(_, _ []byte, _ int64) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitTimed(nil, func(_, _ []byte, _ int64) bool { cb(); return true }))
		},
	},
	"Hash.VisitFields": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitFields(func(int) { cb() }, func([]byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitFields(nil, func([]byte) bool { cb(); return true }))
		},
	},
	"Hash.VisitRandom": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitRandom(2, func(int) { cb() }, func(_, _ []byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitRandom(2, nil, func(_, _ []byte) bool { cb(); return true }))
		},
	},
	"Hash.VisitRandomFields": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitRandomFields(2, func(int) { cb() }, func([]byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Hash("hash").VisitRandomFields(2, nil, func([]byte) bool { cb(); return true }))
		},
	},
	"List.Visit": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.List("list").Visit(0, -1, func(int) { cb() }, func([]byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.List("list").Visit(0, -1, nil, func([]byte) bool { cb(); return true }))
		},
	},
	"Stream.Visit": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Stream("stream").Visit(db.StreamID{}, db.MaxStreamID, func(db.StreamID, [][]byte) bool { cb(); return true }))
	}},
	"Stream.VisitRange": {func(t *testing.T, s *db.Store, cb func()) {
		r := structures.StreamRange{To: db.MaxStreamID, Reverse: true}
		must(t, s.Stream("stream").VisitRange(r, func(db.StreamID, [][]byte) bool { cb(); return true }))
	}},
	"StreamGroup.VisitRead": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Stream("stream").Group("g").Set(db.StreamGroupStart{}))
		must(t, s.Stream("stream").Group("g").VisitRead(structures.StreamGroupRead{}, func(db.StreamID, [][]byte) bool { cb(); return true }))
	}},
	"StreamGroup.VisitHistory": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Stream("stream").Group("g").VisitHistory(structures.StreamGroupRead{Consumer: "a"}, db.StreamID{},
			func(db.StreamID, [][]byte) bool { cb(); return true }))
	}},
	"StreamGroup.VisitClaim": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Stream("stream").Group("g").VisitClaim(db.StreamClaim{Force: true}, []db.StreamID{{Ms: 5}},
			func(db.StreamID, [][]byte) bool { cb(); return true }))
	}},
	"StreamGroup.VisitAutoClaim": {func(t *testing.T, s *db.Store, cb func()) {
		_, _, err := s.Stream("stream").Group("g").VisitAutoClaim(db.StreamAutoClaim{Count: 1}, func(db.StreamID, [][]byte) bool { cb(); return true })
		must(t, err)
	}},
	"StreamGroup.VisitClaimIdle": {func(t *testing.T, s *db.Store, cb func()) {
		g := s.Stream("stream").Group("g")
		must(t, g.Set(db.StreamGroupStart{}))
		must(t, first(g.Read("a", 1)))
		must(t, g.VisitClaimIdle(structures.StreamIdleClaim{}, func(db.StreamID, [][]byte, int64, int64) bool { cb(); return true }))
	}},
	"StreamGroup.WaitIdle": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Stream("stream").Group("g").Set(db.StreamGroupStart{}))
		must(t, s.Await(context.Background(), s.Stream("stream").Group("g").WaitIdle([]string{"stream"}, 9, func(*db.Tx, string) error { cb(); return nil })))
	}},
	"StreamGroup.Wait": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Stream("stream").Group("g").Set(db.StreamGroupStart{}))
		must(t, s.Await(context.Background(), s.Stream("stream").Group("g").Wait([]string{"stream"}, func(*db.Tx, string) error { cb(); return nil })))
	}},
	"Stream.All": {func(t *testing.T, s *db.Store, cb func()) {
		for range s.Stream("stream").All(db.StreamID{}) {
			cb()
		}
	}},
	"Set.Visit": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Set("set").Visit(func(int) { cb() }, func([]byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Set("set").Visit(nil, func([]byte) bool { cb(); return true }))
		},
	},
	"Set.VisitRandom": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Set("set").VisitRandom(2, func(int) { cb() }, func([]byte) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Set("set").VisitRandom(2, nil, func([]byte) bool { cb(); return true }))
		},
	},
	"Set.VisitCombined": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Set("set").VisitCombined(db.UnionOf, []string{"other"}, func([]byte) bool { cb(); return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.Set("set").VisitCombined(db.DiffOf, []string{"other"}, func([]byte) bool { cb(); return true }))
		},
	},
	"SortedSet.Visit": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.SortedSet("zset").Visit(db.RankRange{Stop: -1}, func(int) { cb() }, func([]byte, float64) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.SortedSet("zset").Visit(db.RankRange{Stop: -1}, nil, func([]byte, float64) bool { cb(); return true }))
		},
	},
	"SortedSet.VisitRandom": {
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.SortedSet("zset").VisitRandom(2, func(int) { cb() }, func([]byte, float64) bool { return true }))
		},
		func(t *testing.T, s *db.Store, cb func()) {
			must(t, s.SortedSet("zset").VisitRandom(2, nil, func([]byte, float64) bool { cb(); return true }))
		},
	},
	"Keyspace.Visit": {func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Keyspace().Visit([]string{"string", "none"}, func(int, []byte) bool { cb(); return true }))
	}},

	// Loops: nothing is locked while their bodies run, but in a transaction.
	"Hash.All": {func(t *testing.T, s *db.Store, cb func()) {
		for _, err := range s.Hash("hash").All() {
			must(t, err)
			cb()
		}
	}, func(t *testing.T, s *db.Store, cb func()) {
		must(t, s.Update(func(tx *db.Tx) error {
			for range tx.Hash("hash").All() {
				cb()
			}
			return nil
		}))
	}},
	"List.All": {func(t *testing.T, s *db.Store, cb func()) {
		for range s.List("list").All() {
			cb()
		}
	}},
	"Set.All": {func(t *testing.T, s *db.Store, cb func()) {
		for range s.Set("set").All() {
			cb()
		}
	}},
	"SortedSet.All": {func(t *testing.T, s *db.Store, cb func()) {
		for range s.SortedSet("zset").All(db.RankRange{Stop: -1}) {
			cb()
		}
	}, func(t *testing.T, s *db.Store, cb func()) {
		for range s.SortedSet("zset").All(db.ScoreRange{Max: 10}) {
			cb()
		}
	}, func(t *testing.T, s *db.Store, cb func()) {
		for range s.SortedSet("zset").All(db.LexRange{Min: db.LexMin, Max: db.LexMax}) {
			cb()
		}
	}},
	"Keyspace.All": {func(t *testing.T, s *db.Store, cb func()) {
		for range s.Keyspace().All() {
			cb()
		}
	}},
	"Keyspace.Range": {func(t *testing.T, s *db.Store, cb func()) {
		for range s.Keyspace().Range(db.KeyRange{}) {
			cb()
		}
	}},
	"Events.All": {func(t *testing.T, s *db.Store, cb func()) {
		e := ok[*db.Events](t)(s.Events(db.EventOptions{}))
		defer e.Close()
		must(t, s.String("heard").Put(nil))
		for range e.All(context.Background()) {
			cb()
		}
	}},
}

func calling(t *testing.T, cb func()) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		must(t, tx.String("string").Put([]byte("must be rolled back")))
		cb()
		return nil
	}
}

func reading(t *testing.T, cb func()) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		ok[int](t)(tx.Hash("hash").Len())
		cb()
		return nil
	}
}

func waitFor(key string, cb func()) db.Wait {
	return db.Wait{Keys: []string{key}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
		if _, err := tx.List(key).PopFront(); err != nil {
			return err
		}
		cb()
		return nil
	}}
}

func awaitAtOnce(t *testing.T, s *db.Store, cb func()) {
	must(t, s.Await(context.Background(), waitFor("list", cb)))
}

// awaitServed has another goroutine wait: the panic is the pusher's, whose push is rolled back, and the wait ends with
// an error.
func awaitServed(t *testing.T, s *db.Store, cb func()) {
	awaited := make(chan error, 1)
	go func() { awaited <- s.Await(context.Background(), waitFor("awaited", cb)) }()
	waitForWaiter(s)
	defer func() {
		if err := <-awaited; err == nil {
			t.Error("the wait that panicked ended well")
		}
		equal(t, "what was pushed", ok[int](t)(s.List("awaited").Len()), 0)
	}()
	ok[int](t)(s.List("awaited").PushBack([]byte("x"), []byte("y")))
}

// awaitServedLater is served after the push, for Do touches another key: the push stands.
func awaitServedLater(t *testing.T, s *db.Store, cb func()) {
	w := waitFor("awaited", cb)
	w.Others = []string{"another"}
	awaited, second := make(chan error, 1), make(chan error, 1)
	go func() { awaited <- s.Await(context.Background(), w) }()
	waitForWaiter(s)
	w.Do = func(tx *db.Tx, key string) error { _, err := tx.List(key).PopFront(); return err }
	go func() { second <- s.Await(context.Background(), w) }()
	time.Sleep(20 * time.Millisecond) // to be second; it may as well be late
	defer func() {
		if err := <-awaited; err == nil {
			t.Error("the wait that panicked ended well")
		}
		must(t, <-second)
		equal(t, "what was pushed", ok[int](t)(s.List("awaited").Len()), 1)
	}()
	ok[int](t)(s.List("awaited").PushBack([]byte("x"), []byte("y")))
}

// waitForWaiter waits until there is a waiter for the list "awaited".
func waitForWaiter(s *db.Store) {
	for s.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
}

func enqueued(t *testing.T, s *db.Store, cb func()) {
	tx := ok[*db.Tx](t)(s.Begin(true, "queue"))
	waiter := tx.Enqueue(waitFor("queue", cb), nil)
	ok[db.Ticket](t)(tx.End(nil))
	defer func() {
		<-waiter.Done()
		if _, err := waiter.Result(); err == nil {
			t.Error("the waiter whose Do panicked was served")
		}
	}()
	must(t, s.Update(func(tx *db.Tx) error { _, err := tx.List("queue").PushBack([]byte("x")); return err }))
}

// woken panics when nothing is locked any more: the commit stands, and the others get their
// notification.
func woken(t *testing.T, s *db.Store, cb func()) {
	tx := ok[*db.Tx](t)(s.Begin(true, "queue"))
	first := tx.Enqueue(waitFor("queue", func() {}), cb)
	second := tx.Enqueue(waitFor("queue", func() {}), nil)
	ok[db.Ticket](t)(tx.End(nil))
	defer func() {
		for _, w := range []*db.Waiter{first, second} {
			<-w.Done()
			_, err := w.Result()
			must(t, err)
		}
		equal(t, "what was pushed", ok[int](t)(s.List("queue").Len()), 1)
	}()
	ok[int](t)(s.List("queue").PushBack([]byte("x"), []byte("y"), []byte("z")))
}

// wokenByClose panics in Close, which closes the store all the same.
func wokenByClose(t *testing.T, _ *db.Store, cb func()) {
	mem := vfs.NewMem()
	s := ok[*db.Store](t)(db.Open("other", seam.With(&db.Options{}, seam.Options{FS: mem})))
	tx := ok[*db.Tx](t)(s.Begin(true, "queue"))
	tx.Enqueue(waitFor("queue", func() {}), cb)
	second := tx.Enqueue(waitFor("queue", func() {}), nil)
	ok[db.Ticket](t)(tx.End(nil))
	defer func() {
		<-second.Done()
		again := ok[*db.Store](t)(db.Open("other", seam.With(&db.Options{}, seam.Options{FS: mem}))) // its lock is free
		must(t, again.Close())
	}()
	must(t, s.Close())
}

// onCommits are a panic of a listener after each kind of commit: it stands, and the next listener gets all of it.
func onCommits(listen func(s *db.Store, cb func()) (stop func())) (rows []func(t *testing.T, s *db.Store, cb func())) {
	commits := map[string]struct {
		do     func(s *db.Store) error
		events int
	}{
		"put":    {func(s *db.Store) error { return s.String("heard").Put([]byte("v")) }, 1},
		"delete": {func(s *db.Store) error { _, err := s.Key("string").Delete(); return err }, 1},
		"update": {func(s *db.Store) error {
			return s.Update(func(tx *db.Tx) error { return tx.Keyspace().Put(db.Pair{Key: "heard"}, db.Pair{Key: "too"}) })
		}, 2},
		"begin": {func(s *db.Store) error {
			tx, err := s.Begin(true, "heard")
			if err == nil {
				_, err = tx.End(tx.String("heard").Put([]byte("v")))
			}
			return err
		}, 1},
		"flush":    {func(s *db.Store) error { return s.Flush() }, 1},
		"flushAll": {func(s *db.Store) error { return s.FlushAll() }, 1},
		"swap":     {func(s *db.Store) error { return s.Swap(0, 1) }, 2},
		"expire":   {func(s *db.Store) error { _, err := s.Key("string").Expire(-time.Second); return err }, 1},
	}
	for name, commit := range commits {
		rows = append(rows, func(t *testing.T, s *db.Store, cb func()) {
			heard, sequence := 0, s.Log().Sequence()
			stop := listen(s, cb)
			stopOther := s.OnEvents(structures.AllClasses, func(db.Event) { heard++ })
			defer func() {
				stop()
				stopOther()
				if heard != commit.events {
					t.Errorf("%s: the other listener has heard of %d events, want %d", name, heard, commit.events)
				}
				if s.Log().Sequence() == sequence {
					t.Errorf("%s: there is no commit", name)
				}
			}()
			must(t, commit.do(s))
		})
	}
	return rows
}

// hooked is a panic of one of several hooks: the commit stands, and the others and the listeners get it.
func hooked(t *testing.T, s *db.Store, cb func()) {
	var heard []string
	stop := s.OnEvents(structures.AllClasses, func(e db.Event) { heard = append(heard, e.Key) })
	sequence := s.Log().Sequence()
	defer func() {
		stop()
		if want := []string{"first", "heard", "then", "too", "last"}; !slices.Equal(heard, want) {
			t.Errorf("hooks and listeners have got %q, want %q", heard, want)
		}
		if s.Log().Sequence() == sequence {
			t.Error("there is no commit")
		}
	}()
	must(t, s.Update(func(tx *db.Tx) error {
		hear := func(name string) error { return tx.OnCommit(func(db.Ticket) { heard = append(heard, name) }) }
		return errors.Join(hear("first"), tx.String("heard").Put(nil), tx.OnCommit(func(db.Ticket) { cb() }), hear("then"), tx.String("too").Put(nil), hear("last"))
	}))
}

// callingWriter is a writer that is a user's.
type callingWriter func()

func (w callingWriter) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

func backupTo(t *testing.T, s *db.Store, cb func()) {
	_, err := s.BackupTo(context.Background(), callingWriter(cb))
	must(t, err)
}

// checkReports has a store with damage checked.
func checkReports(check func(*db.Store, context.Context, func(db.Finding)) (db.CheckResult, error)) func(*testing.T, *db.Store, func()) {
	return func(t *testing.T, _ *db.Store, cb func()) { damageReported(t, check, cb) }
}

func damageReported(t *testing.T, check func(*db.Store, context.Context, func(db.Finding)) (db.CheckResult, error), cb func()) {
	dir := t.TempDir()
	s := ok[*db.Store](t)(db.Open(dir, &db.Options{NoMerge: true}))
	t.Cleanup(func() {
		if !t.Failed() {
			must(t, s.Close())
		}
	})
	must(t, s.String("k").Put([]byte("flip me")))
	flip := func() {
		name := filepath.Join(dir, "000000001.data")
		b := ok[[]byte](t)(os.ReadFile(name))
		f := ok[*os.File](t)(os.OpenFile(name, os.O_WRONLY, 0))
		at := bytes.LastIndex(b, []byte("lip me"))
		ok[int](t)(f.WriteAt([]byte{b[at-1] ^ 1}, int64(at-1)))
		must(t, f.Close())
	}
	flip()
	defer func() {
		flip()
		usable(t, "a report that panicked", s)
	}()
	_, err := check(s, context.Background(), func(db.Finding) { cb() })
	must(t, err)
}

func mergeProgress(t *testing.T, s *db.Store, cb func()) {
	must(t, s.String("string").Put([]byte("something that is dead in a moment")))
	must(t, s.String("string").Put([]byte("value")))
	_, err := s.Merge(context.Background(), db.MergeOptions{All: true, Progress: func(int64, int64) { cb() }})
	must(t, err)
}

// TestUserCodePanics: whatever of a user's panics, or ends its goroutine, wherever it is called, leaves no lock held,
// nothing half done, and nothing that a later call could stumble over. A method with a callback, or with a loop, has a
// row.
func TestUserCodePanics(t *testing.T) {
	names := methodsWithCallbacks()
	for _, name := range names {
		if userCode[name] == nil {
			t.Errorf("%s takes or returns a function and has no row", name)
		}
	}
	for name, rows := range userCode {
		if !slices.Contains(names, name) {
			t.Errorf("there is no %s", name)
		}
		for i, row := range rows {
			for _, goexit := range []bool{false, true} {
				if hung {
					return
				}
				t.Run(fmt.Sprintf("%s/%d/goexit=%t", name, i, goexit), func(t *testing.T) {
					s := openToHang(t)
					for range 2 { // the second meets what the first has left
						userCodePanics(t, s, name, goexit, row)
					}
				})
			}
		}
	}
}

func userCodePanics(t *testing.T, s *db.Store, name string, goexit bool, row func(t *testing.T, s *db.Store, cb func())) {
	ok[int](t)(s.Keyspace().Delete("stream")) // whose ids only grow
	oneOfEach(t, s)
	ok[int](t)(s.Set("other").Add("x", "y"))
	ok[int](t)(s.Keyspace().Delete("queue", "awaited"))
	called := false
	panicked, ended := within(t, name, func() {
		row(t, s, func() {
			called = true
			if goexit {
				runtime.Goexit()
			}
			panic("mine")
		})
	})
	switch {
	case !called:
		t.Error("the callback was not called")
	case ended:
		t.Error("the panic was swallowed")
	case !goexit && panicked != "mine":
		t.Errorf("the panic has become %v", panicked)
	}
	usable(t, name, s)
	if value, err := s.String("string").Get(); err == nil && string(value) != "value" {
		t.Errorf("the string is %q", value)
	}
}

// failing is a log handler that fails.
type failing struct {
	fail    func()
	enabled func() // nil: it is
}

func (f failing) Handle(context.Context, slog.Record) error { f.fail(); return nil }
func (f failing) Enabled(context.Context, slog.Level) bool {
	if f.enabled != nil {
		f.enabled()
	}
	return true
}
func (f failing) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f failing) WithGroup(string) slog.Handler      { return f }

// TestLogHandlerFails: records are logged with locks held. A handler that panics or uses the store does no
// harm.
func TestLogHandlerFails(t *testing.T) {
	var s *db.Store
	var failed error
	called := 0
	fails := map[string]func(){
		"panics":         func() { panic("mine") },
		"uses the store": func() { failed = s.String("logged").Put(nil) },
	}
	handlers := map[string]func(fail func()) failing{
		"Handle":  func(fail func()) failing { return failing{fail: fail} },
		"Enabled": func(fail func()) failing { return failing{fail: func() {}, enabled: fail} },
	}
	try := func(t *testing.T, handler failing) {
		called, failed = 0, db.ErrNested
		disk := vfstest.NewFault(vfs.NewMem())
		s = ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1, Sync: db.SyncNone, Logger: slog.New(handler)}, seam.Options{FS: disk})))
		must(t, s.String("k").Put([]byte("v")))
		disk.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "000000001.data", Err: errors.New("broken")})
		within(t, "a write after which the store refuses others", func() {
			if err := s.String("k").Put([]byte("w")); err == nil || errors.Is(err, db.ErrNested) {
				t.Error(err)
			}
			if err := s.Update(func(tx *db.Tx) error { return tx.String("k").Put([]byte("w")) }); err == nil {
				t.Error("the store goes on")
			}
			equal(t, "k", string(ok[[]byte](t)(s.String("k").Get())), "v")
			if err := s.Close(); err == nil {
				t.Error("Close of a broken store says nothing")
			}
		})
		if called == 0 {
			t.Error("nothing was logged")
		}
		if !errors.Is(failed, db.ErrNested) {
			t.Error(failed)
		}
	}
	for name, fail := range fails {
		for which, handler := range handlers {
			t.Run(which+" "+name, func(t *testing.T) { try(t, handler(func() { called++; fail() })) })
		}
	}
}

// TestLogHandlerUsesASnapshot: the handler of a store's records can use none of its snapshots either: what is logged
// may be of a snapshot that is being closed, or is busy.
func TestLogHandlerUsesASnapshot(t *testing.T) {
	disk := vfstest.NewFault(vfs.NewMem())
	var s, snap *db.Store
	var refused []error
	logger := slog.New(failing{fail: func() {
		if snap != nil {
			refused = append(refused, s.String("k").Put(nil), first(snap.String("k").Get()), first(snap.Check(t.Context(), func(db.Finding) {})), snap.Close())
		}
	}})
	s = ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1, Logger: logger}, seam.Options{FS: disk})))
	must(t, s.String("k").Put([]byte("v")))
	must(t, s.Log().Rotate())
	snap = ok[*db.Store](t)(s.Snapshot(t.Context()))
	must(t, s.String("k").Put([]byte("w")))
	ok[merge.Result](t)(s.Merge(t.Context(), merge.RunOptions{All: true}))
	disk.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRemove}, Path: "000000001.data", Err: errors.New("broken")})
	within(t, "Close of a snapshot, which cannot remove a file", func() { must(t, snap.Close()) })
	if len(refused) != 4 {
		t.Errorf("%d uses within the handler, want 4", len(refused))
	}
	for i, err := range refused {
		if !errors.Is(err, db.ErrNested) {
			t.Errorf("use %d: %v", i, err)
		}
	}
	must(t, s.Close())
}
