package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

func idsOf(entries []db.StreamEntry) string {
	var text []string
	for _, e := range entries {
		text = append(text, e.ID.String())
	}
	return strings.Join(text, " ")
}

func TestStreamGroup(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		s, g := k.Stream("s"), k.Stream("s").Group("g")
		if err := g.Create(db.StreamGroupStart{}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a group without a stream: %v", err)
		}
		must(t, g.Create(db.StreamGroupStart{Make: true}))
		if err := g.Create(db.StreamGroupStart{}); !errors.Is(err, db.ErrExists) {
			t.Errorf("a group once more: %v", err)
		}
		for ms := range uint64(4) {
			add(t, s, ms+1)
		}
		if got := idsOf(ok[[]db.StreamEntry](t)(g.Read("a", 2))); got != "1-0 2-0" {
			t.Errorf("a read %s", got)
		}
		if got := idsOf(ok[[]db.StreamEntry](t)(g.Read("b", 0))); got != "3-0 4-0" {
			t.Errorf("b read %s", got)
		}
		if got := idsOf(ok[[]db.StreamEntry](t)(g.History("a", db.StreamID{Ms: 1}, 0))); got != "2-0" {
			t.Errorf("pending for a after 1-0: %s", got)
		}
		if n := ok[int](t)(g.Ack(db.StreamID{Ms: 1}, db.StreamID{Ms: 1})); n != 1 {
			t.Errorf("%d acknowledged", n)
		}
		if got := idsOf(ok[[]db.StreamEntry](t)(g.Claim(db.StreamClaim{Consumer: "c", JustID: true}, db.StreamID{Ms: 3}, db.StreamID{Ms: 1}))); got != "3-0" {
			t.Errorf("claimed %s", got)
		}
		ok[int](t)(s.Delete(db.StreamID{Ms: 2}))
		entries, next, gone, err := g.AutoClaim(db.StreamAutoClaim{Consumer: "c", Count: 2})
		if idsOf(entries) != "3-0" || next != (db.StreamID{Ms: 4}) || fmt.Sprint(gone) != "[2-0]" || err != nil {
			t.Errorf("claimed %s, gone %v, then %v, %v", idsOf(entries), gone, next, err)
		}
		sum := ok[db.StreamPendingSummary](t)(g.PendingSummary())
		if fmt.Sprint(sum) != "{2 3-0 4-0 [{b 1} {c 1}]}" {
			t.Errorf("pending %v", sum)
		}
		if n := ok[int](t)(g.DeleteConsumer("b")); n != 1 {
			t.Errorf("%d were pending for b", n)
		}
		if !ok[bool](t)(g.Destroy()) || ok[bool](t)(g.Destroy()) {
			t.Error("a group is destroyed once")
		}
		if _, err := g.Read("a", 0); !errors.Is(err, structures.ErrNoGroup) {
			t.Errorf("reading from no group: %v", err)
		}
	})
}

// A group that is made anew, with the number of one that was destroyed, has nothing of it, whatever is merged and
// however the store is opened.
func TestStreamGroupMadeAnew(t *testing.T) {
	s := openMemory(t)
	for i := range 20 {
		add(t, s.Stream("s"), uint64(i+1))
	}
	g := s.Stream("s").Group("g")
	for range 3 {
		must(t, g.Create(db.StreamGroupStart{}))
		ok[[]db.StreamEntry](t)(g.Read("a", 15))
		ok[bool](t)(g.Destroy())
		must(t, g.Create(db.StreamGroupStart{}))
		must(t, mergeEverything(s))
		if state := ok[db.StreamGroupState](t)(g.State()); len(state.Consumers) != 0 || len(state.Pending) != 0 {
			t.Errorf("%+v", state)
		}
		ok[[]db.StreamEntry](t)(g.Read("b", 7))
		ok[int](t)(g.DeleteConsumer("b"))
		ok[[]db.StreamEntry](t)(g.Read("c", 5))
		must(t, mergeEverything(s))
		if sum := ok[db.StreamPendingSummary](t)(g.PendingSummary()); fmt.Sprint(sum) != "{5 8-0 12-0 [{c 5}]}" {
			t.Errorf("pending %v", sum)
		}
		ok[bool](t)(g.Destroy())
	}
}

// Thousands of pending entries of several consumers are walked in order of id, in parts.
func TestStreamGroupOfMany(t *testing.T) {
	s := openMemory(t)
	g := s.Stream("s").Group("g")
	must(t, g.Create(db.StreamGroupStart{Make: true}))
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range 3000 {
			add(t, tx.Stream("s"), uint64(i+1))
			if _, err := tx.Stream("s").Group("g").Read(fmt.Sprint("consumer ", i*i%7), 0); err != nil {
				return err
			}
		}
		return nil
	}))
	last, n := uint64(0), 0
	for _, p := range ok[[]db.StreamPending](t)(g.Pending(db.StreamPendingRange{To: db.MaxStreamID})) {
		if i := int(p.ID.Ms - 1); p.ID.Ms != last+1 || p.Consumer != fmt.Sprint("consumer ", i*i%7) {
			t.Fatalf("%v after %d", p, last)
		}
		last = p.ID.Ms
		n++
	}
	if n != 3000 {
		t.Errorf("%d entries", n)
	}
	next, claimed := db.StreamID{}, 0
	for first := true; first || next != (db.StreamID{}); first = false {
		entries, then, _, err := g.AutoClaim(db.StreamAutoClaim{Consumer: "thief", From: next, Count: 100, JustID: true})
		must(t, err)
		next, claimed = then, claimed+len(entries)
	}
	if claimed != 3000 {
		t.Errorf("%d entries claimed", claimed)
	}
}

// groupReader waits for entries of the group g of a stream.
func groupReader(ctx context.Context, s *db.Store, consumer string, count int) <-chan string {
	got := make(chan string, 1)
	go func() {
		entries, err := s.Stream("s").Group("g").ReadWait(ctx, consumer, count)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- idsOf(entries)
	}()
	synctest.Wait()
	return got
}

func TestStreamGroupReadersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		must(t, s.Stream("s").Group("g").Create(db.StreamGroupStart{Make: true}))
		first, second, third := groupReader(t.Context(), s, "a", 1), groupReader(t.Context(), s, "b", 2), groupReader(t.Context(), s, "a", 0)
		must(t, s.Update(func(tx *db.Tx) error {
			for ms := range uint64(3) {
				add(t, tx.Stream("s"), ms+1)
			}
			return nil
		}))
		if a, b := <-first, <-second; a != "1-0" || b != "2-0 3-0" {
			t.Errorf("the first got %q, the second %q", a, b)
		}
		add(t, s.Stream("s"), 4)
		if c := <-third; c != "4-0" {
			t.Errorf("the third got %q", c)
		}
	})
}

// Who waits for a group learns that it is gone, however that happened.
func TestStreamGroupReadersLearnThatItIsGone(t *testing.T) {
	const gone, other = string(structures.ErrNoGroup), string(structures.ErrWrongType)
	ends := map[string]struct {
		end  func(s *db.Store) error
		want string
	}{
		"destroyed":  {func(s *db.Store) error { return first(s.Stream("s").Group("g").Destroy()) }, gone},
		"deleted":    {func(s *db.Store) error { return first(s.Key("s").Delete()) }, gone},
		"renamed":    {func(s *db.Store) error { return s.Key("s").Rename("t") }, gone},
		"replaced":   {func(s *db.Store) error { return s.Key("t").Rename("s") }, other},
		"a string":   {func(s *db.Store) error { return s.String("s").Put([]byte("x")) }, other},
		"long":       {func(s *db.Store) error { return s.String("s").Put(make([]byte, 1<<20)) }, other},
		"flushed":    {func(s *db.Store) error { return s.Flush() }, gone},
		"all":        {func(s *db.Store) error { return s.FlushAll() }, gone},
		"swapped":    {func(s *db.Store) error { return s.Swap(0, 1) }, gone},
		"within":     {func(s *db.Store) error { return s.Update(func(tx *db.Tx) error { return tx.Flush() }) }, gone},
		"made again": {func(s *db.Store) error { return s.Update(func(tx *db.Tx) error { return remade(tx) }) }, gone},
		"expired": {func(s *db.Store) error {
			err := first(s.Key("s").Expire(time.Second))
			time.Sleep(2 * time.Second)
			return err
		}, gone},
	}
	for name, row := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openMemory(t)
				must(t, s.String("t").Put([]byte("x")))
				must(t, s.Stream("s").Group("g").Create(db.StreamGroupStart{Make: true}))
				waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				reader := groupReader(waiting, s, "a", 1)
				stays := streamReader(t.Context(), s.Stream("s"), 0) // of no group
				if name == "renamed" {
					ok[bool](t)(s.Key("t").Delete())
				}
				must(t, row.end(s))
				if got := <-reader; got != row.want {
					t.Errorf("got %q", got)
				}
				synctest.Wait()
				select {
				case got := <-stays:
					if name != "made again" {
						t.Errorf("a reader of no group got %q", got)
					}
				default:
				}
				ok[bool](t)(s.Key("s").Delete())
				if name != "made again" {
					add(t, s.Stream("s"), 9)
					if got := <-stays; got != "9-0 " {
						t.Errorf("in the end the reader of no group got %q", got)
					}
				}
			})
		})
	}
}

// remade deletes the stream and makes it again, without the group.
func remade(tx *db.Tx) error {
	if _, err := tx.Key("s").Delete(); err != nil {
		return err
	}
	_, err := tx.Stream("s").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 1}}, db.Field{Name: "f"})
	return err
}

// Groups are no part of what a Watch sees, but for the stream that is made for one.
func TestStreamGroupsAndWatch(t *testing.T) {
	s := openMemory(t)
	changed := func(change func() error) bool {
		w := ok[*db.Watch](t)(s.Watch("s"))
		defer w.Close()
		must(t, change())
		tx := ok[*db.Tx](t)(s.Begin(false, "s"))
		defer func() { _, _ = tx.End(nil) }()
		return ok[bool](t)(w.Changed(tx))
	}
	g := s.Stream("s").Group("g")
	if !changed(func() error { return g.Create(db.StreamGroupStart{Make: true}) }) {
		t.Error("a stream that was made for a group is no change")
	}
	add(t, s.Stream("s"), 1)
	for i, change := range []func() error{
		func() error { return first(g.Read("a", 0)) }, func() error { return first(g.Ack(db.StreamID{Ms: 1})) },
		func() error { return g.Set(db.StreamGroupStart{}) }, func() error { return first(g.CreateConsumer("b")) },
		func() error { return first(g.DeleteConsumer("b")) }, func() error { return first(g.Destroy()) },
	} {
		if changed(change) {
			t.Errorf("change %d of a group is one of the stream", i)
		}
	}
}

// TestGroupPollWritesNothing: a consumer that finds nothing costs no record, but every ten seconds one for when it was
// seen; one that is given something after a while has the exact time.
func TestGroupPollWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, &db.Options{ExpireEvery: -1})
		g := s.Stream("s").Group("g")
		must(t, g.Create(db.StreamGroupStart{Make: true}))
		ok[[]db.StreamEntry](t)(g.Read("a", 1))
		began := time.Now().UnixMilli()
		written, seen := s.Log().Sequence(), func() db.StreamConsumer { return ok[[]db.StreamConsumer](t)(g.Consumers())[0] }
		for range 99 {
			time.Sleep(100 * time.Millisecond)
			ok[[]db.StreamEntry](t)(g.Read("a", 1))
			ok[[]db.StreamEntry](t)(g.History("a", db.StreamID{}, 1))
			_, _, _, err := g.AutoClaim(db.StreamAutoClaim{Consumer: "a", Count: 1})
			must(t, err)
		}
		if got := s.Log().Sequence(); got != written || seen().Seen != began {
			t.Errorf("polls wrote %d records; the consumer was seen %d ms after the first", got-written, seen().Seen-began)
		}
		time.Sleep(200 * time.Millisecond)
		ok[[]db.StreamEntry](t)(g.Read("a", 1))
		if got := s.Log().Sequence(); got != written+1 || seen().Seen != began+10_100 {
			t.Errorf("after ten seconds a poll wrote %d records; the consumer was seen %d ms after the first", got-written, seen().Seen-began)
		}
		time.Sleep(50 * time.Millisecond)
		add(t, s.Stream("s"), 1)
		ok[[]db.StreamEntry](t)(g.Read("a", 1))
		if c := seen(); c.Seen != began+10_150 || c.Active != c.Seen {
			t.Errorf("given an entry: %+v", c)
		}
	})
}
