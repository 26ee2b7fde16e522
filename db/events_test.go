package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

// heard returns the events that a subscription has now, on one line.
func heard(t *testing.T, s *db.Store, events *db.Events) string {
	t.Helper()
	// A known last event: everything before it was there.
	must(t, s.String("\x00end").Put(nil))
	var told []string
	for event := range events.All(t.Context()) {
		if event.Key == "\x00end" {
			break
		}
		told = append(told, event.Kind.String()+" "+event.Key)
	}
	return strings.Join(told, ", ")
}

func subscribe(t *testing.T, s *db.Store, o db.EventOptions) *db.Events {
	t.Helper()
	events, err := s.Events(o)
	must(t, err)
	t.Cleanup(events.Close)
	return events
}

// fill makes a key of every type: str, hash, list (a b c), set (a b), zset (a b c).
func fill(t *testing.T, s *db.Store) {
	t.Helper()
	must(t, s.Update(func(tx *db.Tx) error {
		_ = tx.String("str").Put([]byte("1"))
		_, _ = tx.Hash("hash").Put("f", []byte("1"))
		_, _ = tx.List("list").PushBack([]byte("a"), []byte("b"), []byte("c"))
		_, _ = tx.Set("set").Add("a", "b")
		_, err := tx.SortedSet("zset").Add(db.Scored{Member: "a", Score: 1}, db.Scored{Member: "b", Score: 2}, db.Scored{Member: "c", Score: 3})
		return err
	}))
}

func TestEventNames(t *testing.T) {
	long := make([]byte, 1<<20) // a string that is kept in chunks
	for _, tt := range []struct {
		do   func(s *db.Store)
		want string
	}{
		{func(s *db.Store) { s.String("new").Put(nil) }, "new new, set new"},
		{func(s *db.Store) { s.String("str").Put(nil) }, "set str"},
		{func(s *db.Store) { s.String("str").Put(nil, db.TTL(time.Hour)) }, "set str, expire str"},
		{func(s *db.Store) { s.String("str").Put(nil, db.IfAbsent) }, ""},
		{func(s *db.Store) { s.String("str").Get() }, ""},
		{func(s *db.Store) { s.String("list").Append(nil) }, ""},
		{func(s *db.Store) { s.String("str").Append(nil) }, "append str"},
		{func(s *db.Store) { s.String("str").Incr(1) }, "incrby str"},
		{func(s *db.Store) { s.Keyspace().Put(db.Pair{Key: "str"}, db.Pair{Key: "p"}) }, "set str, new p, set p"},
		{func(s *db.Store) { s.Bitmap("bits").Set(3, true) }, "new bits, setbit bits"},
		{func(s *db.Store) { s.HyperLogLog("hll").Add([]byte("x")) }, "new hll, pfadd hll"},
		{func(s *db.Store) { s.Key("str").Delete() }, "del str"},
		{func(s *db.Store) { s.Key("none").Delete() }, ""},
		{func(s *db.Store) { s.Key("str").Expire(time.Hour) }, "expire str"},
		{func(s *db.Store) { s.Key("str").Expire(-1) }, "del str"},
		{func(s *db.Store) { s.Key("str").Persist() }, ""},
		{func(s *db.Store) { s.Key("str").Expire(time.Hour); s.Key("str").Persist() }, "expire str, persist str"},
		{func(s *db.Store) { s.Key("str").Rename("other") }, "new other, rename_from str, rename_to other"},
		{func(s *db.Store) { s.Key("str").Rename("list") }, "new list, rename_from str, rename_to list"},
		{func(s *db.Store) { s.Key("str").CopyTo(0, "list") }, "new list, copy_to list"},
		{func(s *db.Store) { s.Key("str").MoveTo(1) }, "new str, move_from str, move_to str"},
		{func(s *db.Store) { restore(s, "set", "copy") }, "new copy, restore copy"},
		{func(s *db.Store) { restore(s, "set", "list") }, "new list, restore list"},
		{func(s *db.Store) { s.Hash("hash").Put("f", nil) }, "hset hash"},
		{func(s *db.Store) { s.Hash("hash").PutAll(db.Field{Name: "x"}, db.Field{Name: "y"}) }, "hset hash"},
		{func(s *db.Store) { s.Hash("hash").Incr("f", 1) }, "hincrby hash"},
		{func(s *db.Store) { s.Hash("hash").Delete("none") }, ""},
		{func(s *db.Store) { s.Hash("hash").Delete("f") }, "hdel hash, del hash"},
		{func(s *db.Store) { s.List("list").PushFront(nil) }, "lpush list"},
		{func(s *db.Store) { s.List("list").PopFront() }, "lpop list"},
		{func(s *db.Store) { s.List("list").PopBackN(9) }, "rpop list, del list"},
		{func(s *db.Store) { s.List("list").Set(0, nil) }, "lset list"},
		{func(s *db.Store) { s.List("list").Trim(0, 0) }, "ltrim list"},
		{func(s *db.Store) { s.List("list").Trim(9, 9) }, "ltrim list, del list"},
		{func(s *db.Store) { s.List("list").Remove(0, []byte("b")) }, "lrem list"},
		{func(s *db.Store) { s.List("list").Move("l2", db.Front, db.Back) }, "new l2, rpush l2, lpop list"},
		{func(s *db.Store) { s.List("list").Trim(0, 0); s.List("list").Move("list", db.Back, db.Front) }, "ltrim list, lpush list, rpop list"},
		{func(s *db.Store) { s.Set("set").Add("a") }, ""},
		{func(s *db.Store) { s.Set("set").Add("a", "x") }, "sadd set"},
		{func(s *db.Store) { s.Set("set").Move("s2", "a") }, "srem set, new s2, sadd s2"},
		{func(s *db.Store) { s.Set("set").Pop(5) }, "spop set, del set"},
		{func(s *db.Store) { s.Set("list").PutCombined(structures.Union, "set", "none") }, "sunionstore list"},
		{func(s *db.Store) { s.Set("list").PutCombined(structures.Inter, "set", "none") }, "del list"},
		{func(s *db.Store) { s.SortedSet("zset").Add(db.Scored{Member: "a", Score: 1}) }, ""},
		{func(s *db.Store) { s.SortedSet("zset").Add(db.Scored{Member: "a", Score: 5}) }, "zadd zset"},
		{func(s *db.Store) { s.SortedSet("zset").Incr("a", 1) }, "zincr zset"},
		{func(s *db.Store) { s.SortedSet("zset").Remove("a") }, "zrem zset"},
		{func(s *db.Store) { s.SortedSet("zset").PopMax(1) }, "zpopmax zset"},
		{func(s *db.Store) { s.SortedSet("zset").RemoveRange(db.RankRange{Stop: 0}) }, "zremrangebyrank zset"},
		{func(s *db.Store) { s.SortedSet("zset").RemoveRange(db.ScoreRange{Max: math.Inf(1)}) }, "zremrangebyscore zset, del zset"},
		{func(s *db.Store) { s.String("k").Put(long) }, "new k, set k"},
		{func(s *db.Store) { s.String("list").Put(long) }, "set list"},
		{func(s *db.Store) { s.String("str").Append(long) }, "append str"},
		{func(s *db.Store) { s.String("k").SetRange(1<<20, []byte("x")) }, "new k, setrange k"},
		{func(s *db.Store) { s.String("str").Put(long); s.Bitmap("str").Set(1<<23, true) }, "set str, setbit str"},
		{func(s *db.Store) { s.String("str").Put(long); s.Key("str").Rename("x") }, "set str, new x, rename_from str, rename_to x"},
		{func(s *db.Store) { s.String("str").Put(long); s.String("str").Put(nil) }, "set str, set str"},
		{func(s *db.Store) { s.Flush() }, "flushed "},
		{func(s *db.Store) { s.Swap(0, 1); s.Swap(1, 0) }, "swapped , swapped , swapped , swapped "},
	} {
		s := open(t)
		fill(t, s)
		events := subscribe(t, s, db.EventOptions{Everywhere: true, Classes: structures.AllClasses | structures.ClassNew})
		tt.do(s)
		if got := heard(t, s, events); got != tt.want {
			t.Errorf("heard %q, want %q", got, tt.want)
		}
	}
}

func restore(s *db.Store, from, to string) {
	payload, _ := s.Key(from).Dump()
	_ = s.Key(to).Restore(payload)
}

func TestEventsOfWhatWasTakenBack(t *testing.T) {
	s := open(t)
	events := subscribe(t, s, db.EventOptions{})
	_ = s.Update(func(tx *db.Tx) error { _ = tx.String("a").Put(nil); return errors.New("no") })
	func() {
		defer func() { _ = recover() }()
		_ = s.Update(func(tx *db.Tx) error { _ = tx.String("b").Put(nil); panic("no") })
	}()
	must(t, s.Update(func(tx *db.Tx) error {
		_ = tx.String("c").Put(nil)
		mark := tx.Savepoint()
		_ = tx.String("d").Put(nil)
		tx.RollbackTo(mark)
		return tx.String("e").Put(nil)
	}))
	equal(t, "heard", heard(t, s, events), "set c, set e")
}

func TestEventsOfExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := db.Open("store", seam.With(&db.Options{ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()}))
		must(t, err)
		defer func() { must(t, s.Close()) }()
		events := subscribe(t, s, db.EventOptions{Classes: structures.ClassExpired | structures.ClassString})
		for _, key := range []string{"cycle", "write"} {
			must(t, s.String(key).Put(nil, db.TTL(time.Second)))
		}
		time.Sleep(2 * time.Second)
		must(t, s.String("write").Put(nil))
		n, err := s.Expire(time.Second, 100)
		must(t, err)
		equal(t, "heard", heard(t, s, events), "set cycle, set write, expired write, set write, expired cycle")
		equal(t, "reaped by the cycle", n, 1)
		equal(t, "expired", s.Stats().Expired, uint64(2))
	})
}

func TestEventsOfNamespaces(t *testing.T) {
	s := open(t)
	other, err := s.Use(1)
	must(t, err)
	here, matching := subscribe(t, s, db.EventOptions{}), subscribe(t, s, db.EventOptions{Everywhere: true, Match: "[x\x00]*"})
	must(t, s.String("x1").Put(nil))
	must(t, s.String("y").Put(nil))
	must(t, other.String("x2").Put(nil))
	equal(t, "heard here", heard(t, s, here), "set x1, set y")
	equal(t, "heard everywhere", heard(t, s, matching), "set x1, set x2")
}

func TestSlowListener(t *testing.T) {
	s := open(t)
	events := subscribe(t, s, db.EventOptions{Buffer: 3})
	for i := range 10 {
		must(t, s.String(strconv.Itoa(i)).Put(nil))
	}
	equal(t, "lost", events.Lost(), uint64(7))
	next := func() (event db.Event) {
		for event = range events.All(t.Context()) {
			break
		}
		return event
	}
	for i := range 3 {
		event := next()
		equal(t, "kept", event.Key, strconv.Itoa(i))
		equal(t, "lost before it", event.Lost, uint64(0))
	}
	must(t, s.String("later").Put(nil))
	event := next()
	equal(t, "after the gap", event.Key, "later")
	equal(t, "lost before it", event.Lost, uint64(7))
}

func TestEndOfEvents(t *testing.T) {
	s := open(t)
	closed, cancelled, left := subscribe(t, s, db.EventOptions{}), subscribe(t, s, db.EventOptions{}), subscribe(t, s, db.EventOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, s.String("a").Put(nil))
	for range cancelled.All(ctx) {
		t.Error("an event after the context has ended")
	}
	closed.Close()
	closed.Close()
	must(t, s.String("b").Put(nil))
	var keys string
	for event := range closed.All(t.Context()) {
		keys += event.Key
	}
	equal(t, "before Close", keys, "a")
	must(t, s.Update(func(*db.Tx) error {
		if _, err := s.Events(db.EventOptions{}); !errors.Is(err, db.ErrNested) {
			t.Errorf("a subscription within a transaction: %v", err)
		}
		return nil
	}))
	done := make(chan string)
	go func() {
		var keys string
		for event := range left.All(context.Background()) {
			keys += event.Key
		}
		done <- keys
	}()
	must(t, s.Close())
	equal(t, "before the store closed", <-done, "ab")
	if _, err := s.Events(db.EventOptions{}); !errors.Is(err, db.ErrClosed) {
		t.Errorf("a subscription to a closed store: %v", err)
	}
}

// TestEventsInOrder has writers push to a few lists and note the length in a hash, in one commit. Listeners must get
// all of it, and for each key in the order of the commits.
func TestEventsInOrder(t *testing.T) {
	const writers, keys, rounds = 4, 3, 300
	s := open(t)
	events := subscribe(t, s, db.EventOptions{Buffer: 2 * writers * rounds})
	var hooked sync.Map // last ticket by key
	defer s.OnEvents(structures.ClassList, func(e db.Event) { hooked.Store(e.Key, e.Ticket) })()
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for i := range rounds {
				list, hash := fmt.Sprint("l", i%keys), fmt.Sprint("h", i%keys)
				err := s.UpdateKeys([]string{list, hash}, func(tx *db.Tx) error {
					n, err := tx.List(list).PushBack(nil)
					if err != nil {
						return err
					}
					_, err = tx.Hash(hash).Put(strconv.Itoa(n), nil)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	tickets, all := map[string]db.Ticket{}, make([]db.Event, 0, 2*writers*rounds)
	for event := range events.All(t.Context()) {
		if event.Ticket <= tickets[event.Key] {
			t.Fatalf("%s: ticket %d behind %d", event.Key, event.Ticket, tickets[event.Key])
		}
		tickets[event.Key] = event.Ticket
		if all = append(all, event); len(all) == cap(all) {
			break
		}
	}
	of := map[db.Ticket]string{}
	for _, event := range all {
		of[event.Ticket] += event.Kind.String() + " " + event.Key[1:] + " "
	}
	for ticket, told := range of {
		if key := told[len("rpush ") : len("rpush ")+1]; told != "rpush "+key+" hset "+key+" " {
			t.Fatalf("commit %d did %q", ticket, told)
		}
	}
	for key, last := range tickets {
		if heard, _ := hooked.Load(key); key[0] == 'l' && heard != last {
			t.Errorf("%s: OnEvents heard %v last, Events %v", key, heard, last)
		}
	}
	equal(t, "lost", events.Lost(), uint64(0))
}
