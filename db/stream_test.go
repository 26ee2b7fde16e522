package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

func TestStream(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		s := k.Stream("s")
		add(t, s, 1, db.Field{Name: "f", Value: []byte("1")}, db.Field{Name: "f", Value: []byte("2")}, db.Field{Name: ""})
		add(t, s, 5)
		add(t, s, 9)
		if e, err := s.Get(db.StreamID{Ms: 1}); err != nil || fieldsText(e.Fields) != `"f":"1" "f":"2" "":"" ` {
			t.Errorf("%v, %v", e, err)
		}
		if _, err := s.Get(db.StreamID{Ms: 2}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("an entry that is not there: %v", err)
		}
		if _, err := s.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 9}}, db.Field{}); !errors.Is(err, structures.ErrStreamIDSmall) {
			t.Errorf("the last id once more: %v", err)
		}
		if _, err := s.Add(); !errors.Is(err, structures.ErrSyntax) {
			t.Errorf("no fields: %v", err)
		}
		if n := ok[int](t)(s.Trim(db.StreamTrim{ByID: true, MinID: db.StreamID{Ms: 5}})); n != 1 {
			t.Errorf("%d trimmed", n)
		}
		if n := ok[int](t)(s.Delete(db.StreamID{Ms: 9}, db.StreamID{Ms: 10})); n != 1 {
			t.Errorf("%d deleted", n)
		}
		info := ok[db.StreamInfo](t)(s.Info())
		if info.Len != 1 || info.Added != 3 || info.Last.Ms != 9 || info.Deleted.Ms != 9 {
			t.Errorf("%+v", info)
		}
		var ids []uint64
		for e, err := range s.All(db.StreamID{}) {
			must(t, err)
			if ids = append(ids, e.ID.Ms); e.ID.Ms < 30 {
				add(t, s, e.ID.Ms+10) // the loop sees what comes meanwhile
			}
		}
		if fmt.Sprint(ids) != "[5 15 25 35]" {
			t.Errorf("ids %v", ids)
		}
		ok[bool](t)(k.Key("s").Delete())
		if _, err := s.Info(); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a deleted stream: %v", err)
		}
	})
}

// Ids by the clock never go back, also when the clock does.
func TestStreamIDsByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t).Stream("s")
		last := db.StreamID{}
		for i := range 100 {
			id := ok[db.StreamID](t)(s.Add(db.Field{}))
			if !last.Less(id) || id.Ms < uint64(time.Now().UnixMilli()) {
				t.Fatalf("%v after %v", id, last)
			}
			if last = id; i%3 == 0 {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
			}
		}
		ahead := db.StreamID{Ms: uint64(time.Now().Add(time.Hour).UnixMilli()), Seq: 1<<64 - 1}
		must(t, s.SetID(ahead, db.StreamSetID{}))
		if id := ok[db.StreamID](t)(s.Add(db.Field{})); id != ahead.Next() {
			t.Errorf("%v after %v", id, ahead)
		}
		must(t, s.SetID(db.MaxStreamID, db.StreamSetID{}))
		if _, err := s.Add(db.Field{}); !errors.Is(err, structures.ErrStreamExhausted) {
			t.Errorf("after the greatest id: %v", err)
		}
	})
}

// Entries with ids before those that have been trimmed stay, once the last id has been set back.
func TestStreamSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openMemory(t)
		s := store.Stream("s")
		add(t, s, 100)
		ok[int](t)(s.Trim(db.StreamTrim{}))
		ok[bool](t)(store.Key("s").Expire(time.Hour))
		must(t, s.Group("g").Create(db.StreamGroupStart{}))
		ok[bool](t)(s.Group("g").CreateConsumer("c"))
		must(t, s.SetID(db.StreamID{Ms: 1}, db.StreamSetID{}))
		if info := ok[db.StreamGroupInfo](t)(s.Group("g").Info()); info.Consumers != 1 {
			t.Errorf("the group is %+v", info)
		}
		add(t, s, 2)
		add(t, s, 3)
		ok[int](t)(s.Delete(db.StreamID{Ms: 3}))
		must(t, mergeEverything(store))
		if _, err := s.Get(db.StreamID{Ms: 2}); err != nil {
			t.Error(err)
		}
		if info := ok[db.StreamInfo](t)(s.Info()); info.Added != 3 || info.Last.Ms != 3 || info.Len != 1 {
			t.Errorf("%+v", info)
		}
		if left := ok[time.Duration](t)(store.Key("s").TTL()); left != time.Hour {
			t.Errorf("%v to live", left)
		}
	})
}

// streamReader waits for entries after an id.
func streamReader(ctx context.Context, s db.Stream, after uint64) <-chan string {
	got := make(chan string, 1)
	go func() {
		entries, err := s.ReadWait(ctx, db.StreamID{Ms: after}, 0)
		if err != nil {
			got <- err.Error()
			return
		}
		text := ""
		for _, e := range entries {
			text += e.ID.String() + " "
		}
		got <- text
	}()
	synctest.Wait()
	return got
}

func TestStreamReadersAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openMemory(t)
		s := store.Stream("s")
		ctx, cancel := context.WithCancel(t.Context())
		late, first, second, leaves := streamReader(t.Context(), s, 5), streamReader(t.Context(), s, 0), streamReader(t.Context(), s, 0), streamReader(ctx, s, 0)
		cancel()
		if err := <-leaves; err != context.Canceled.Error() {
			t.Errorf("a reader whose context has ended: %s", err)
		}
		must(t, store.Update(func(tx *db.Tx) error {
			add(t, tx.Stream("s"), 1)
			add(t, tx.Stream("s"), 2)
			return nil
		}))
		synctest.Wait()
		if a, b := <-first, <-second; a != "1-0 2-0 " || b != a {
			t.Errorf("the first got %q, the second %q", a, b)
		}
		synctest.Wait()
		select {
		case text := <-late:
			t.Fatalf("a reader beyond the entries got %q", text)
		default:
		}
		add(t, s, 6)
		if text := <-late; text != "6-0 " {
			t.Errorf("the late reader got %q", text)
		}
		if entries, err := s.ReadWait(t.Context(), db.StreamID{Ms: 2}, 1); err != nil || len(entries) != 1 || entries[0].ID.Ms != 6 {
			t.Errorf("without waiting: %v, %v", entries, err)
		}
	})
}
