package db_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

func openMemory(t *testing.T) *db.Store {
	t.Helper()
	s, err := db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// popper waits for one element and puts the result, or the error, into a channel.
func popper(ctx context.Context, l db.List) <-chan string {
	got := make(chan string, 1)
	go func() {
		value, err := l.PopFrontWait(ctx)
		if err != nil {
			value = []byte(err.Error())
		}
		got <- string(value)
	}()
	synctest.Wait()
	return got
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		l := s.List("jobs")
		first, second, third := popper(t.Context(), l), popper(t.Context(), l), popper(t.Context(), l)
		_, err := l.PushBack([]byte("a"), []byte("b"))
		must(t, err)
		synctest.Wait()
		if a, b := <-first, <-second; a != "a" || b != "b" {
			t.Errorf("the first got %q, the second %q", a, b)
		}
		// The element was never visible to others.
		if n, err := l.Len(); err != nil || n != 0 {
			t.Errorf("left: %d, %v", n, err)
		}
		_, err = l.PushBack([]byte("c"), []byte("d"))
		must(t, err)
		if c := <-third; c != "c" {
			t.Errorf("the third got %q", c)
		}
		if rest, err := l.Range(0, -1); err != nil || fmt.Sprintf("%s", rest) != "[d]" {
			t.Errorf("left: %s, %v", rest, err)
		}
		if d, err := l.PopFrontWait(t.Context()); err != nil || string(d) != "d" {
			t.Errorf("without waiting: %q, %v", d, err)
		}
	})
}

func TestWaitersSeeWholeTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		got := popper(t.Context(), s.List("jobs"))
		must(t, s.Update(func(tx *db.Tx) error {
			if _, err := tx.List("jobs").PushBack([]byte("passes by")); err != nil {
				return err
			}
			if _, err := tx.List("jobs").PopBack(); err != nil {
				return err
			}
			return tx.String("jobs").Put([]byte("not a list"))
		}))
		synctest.Wait()
		select {
		case value := <-got:
			t.Fatalf("served with %q", value)
		default:
		}
		boom := errors.New("boom")
		if err := s.Update(func(tx *db.Tx) error {
			if _, err := tx.Key("jobs").Delete(); err != nil {
				return err
			}
			if _, err := tx.List("jobs").PushBack([]byte("taken back")); err != nil {
				return err
			}
			return boom
		}); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if _, err := s.List("other").PushBack([]byte("renamed")); err != nil {
			t.Fatal(err)
		}
		must(t, s.Key("other").Rename("jobs"))
		if value := <-got; value != "renamed" {
			t.Errorf("served with %q", value)
		}
	})
}

// TestWaitersTakeWhatCameFirst: of several keys that one transaction has filled, a waiter gets the one that was first
// filled with its type, as in Redis. The key's earlier type does not count.
func TestWaitersTakeWhatCameFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		got := make(chan string)
		go func() {
			key, _, err := s.Keyspace().PopFirstWait(t.Context(), db.Back, 1, "k", "m")
			if err != nil {
				t.Error(err)
			}
			got <- key
		}()
		synctest.Wait()
		must(t, s.Update(func(tx *db.Tx) error {
			ok[int](t)(tx.SortedSet("k").Add(db.Scored{Member: "a", Score: 1}))
			ok[int](t)(tx.List("m").PushBack([]byte("first")))
			must(t, tx.Key("m").CopyTo(0, "k"))
			return nil
		}))
		if key := <-got; key != "m" {
			t.Errorf("served with %q", key)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.List("jobs").PopBackWait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the time: %v", err)
		}
		must(t, s.String("text").Put(nil))
		if _, err := s.List("text").PopBackWait(t.Context()); !errors.Is(err, db.ErrWrongType) {
			t.Errorf("a string: %v", err)
		}
		must(t, s.Update(func(tx *db.Tx) error {
			if _, err := tx.List("jobs").PopFrontWait(t.Context()); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("in a transaction: %v", err)
			}
			return nil
		}))
		// No waiter is left in the queue to take this.
		n, err := s.List("jobs").PushBack([]byte("a"))
		must(t, err)
		if left, err := s.List("jobs").Len(); n != 1 || left != 1 || err != nil {
			t.Errorf("pushed %d, left %d, %v", n, left, err)
		}
	})
}

func TestCloseEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		got := popper(t.Context(), s.List("jobs"))
		must(t, s.Close())
		if text := <-got; text != db.ErrClosed.Error() {
			t.Errorf("got %q", text)
		}
	})
}

// A chain of moves runs from end to end, although no transaction on the first list has locked the last.
func TestChainOfMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		const links = 5
		got := make(chan string, links)
		for i := range links {
			go func() {
				value, err := s.List(fmt.Sprint(i)).MoveWait(t.Context(), fmt.Sprint(i+1), db.Front, db.Back)
				got <- fmt.Sprintf("%s %v", value, err)
			}()
			synctest.Wait()
		}
		_, err := s.List("0").PushBack([]byte("x"))
		must(t, err)
		for range links {
			if text := <-got; text != "x <nil>" {
				t.Errorf("moved %s", text)
			}
		}
		if value, err := s.List(fmt.Sprint(links)).PopFront(); err != nil || string(value) != "x" {
			t.Errorf("at the end of the chain: %q, %v", value, err)
		}
	})
}

// A move to a key of the wrong type fails for the one who waited, and leaves the element.
func TestMoveWaitToWrongType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		must(t, s.String("to").Put(nil))
		failed := make(chan error, 1)
		go func() {
			_, err := s.List("from").MoveWait(t.Context(), "to", db.Front, db.Back)
			failed <- err
		}()
		synctest.Wait()
		_, err := s.List("from").PushBack([]byte("x"))
		must(t, err)
		if err := <-failed; !errors.Is(err, db.ErrWrongType) {
			t.Errorf("moved: %v", err)
		}
		if value, err := s.List("from").PopFront(); err != nil || string(value) != "x" {
			t.Errorf("left: %q, %v", value, err)
		}
	})
}

// TestWaiterAfterOneWhoFailed: a waiter whose commit the disk refuses for a moment does not keep the next ones from
// what it could not have.
func TestWaiterAfterOneWhoFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfstest.NewFault(vfs.NewMem())
		s, err := db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: fault}))
		must(t, err)
		_, err = s.List("other").PushBack([]byte("x")) // from now on a commit is one write, or one copy
		must(t, err)
		moved := make(chan error, 1)
		go func() {
			_, err := s.List("k").MoveWait(t.Context(), "m", db.Front, db.Back)
			moved <- err
		}()
		synctest.Wait()
		popped := popper(t.Context(), s.List("k"))
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Skip: 1, Err: syscall.ENOSPC})
		_, err = s.List("k").PushBack([]byte("a"))
		must(t, err)
		if err := <-moved; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("moved: %v", err)
		}
		synctest.Wait()
		select {
		case value := <-popped:
			equal(t, "popped", value, "a")
		default:
			t.Error("the element is there, and who waits for it does not get it")
		}
		must(t, s.Close())
	})
}

func TestSortedSetsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openMemory(t)
		other, err := s.Use(3)
		must(t, err)
		got := make(chan string, 2)
		go func() {
			m, err := s.SortedSet("due").PopMinWait(t.Context())
			got <- fmt.Sprint(m, err)
		}()
		go func() {
			key, members, err := other.Keyspace().PopFirstScoredWait(t.Context(), true, 5, "none", "due")
			got <- fmt.Sprint(key, members, err)
		}()
		synctest.Wait()
		_, err = s.SortedSet("due").Add(db.Scored{Member: "b", Score: 2}, db.Scored{Member: "a", Score: 1})
		must(t, err)
		if text := <-got; text != "{a 1} <nil>" {
			t.Errorf("lowest: %s", text)
		}
		// To swap the namespaces brings the key to those who wait in the other.
		must(t, s.Swap(0, 3))
		if text := <-got; text != "due[{b 2}] <nil>" {
			t.Errorf("after the swap: %s", text)
		}
	})
}

// Every element that is pushed is popped once, whatever waiters, pushers and other consumers do in
// between.
func TestWaitersRace(t *testing.T) {
	s := openMemory(t)
	const workers, each = 8, 200
	keys := []string{"a", "b", "c"}
	var popped sync.Map
	var work, push sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range workers {
		work.Go(func() {
			for ctx.Err() == nil {
				short, stop := context.WithTimeout(ctx, time.Millisecond)
				_, values, err := s.Keyspace().PopFirstWait(short, db.Front, 2, keys...)
				stop()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				for _, value := range values {
					if _, twice := popped.LoadOrStore(string(value), true); twice {
						t.Errorf("%s popped twice", value)
					}
				}
			}
		})
	}
	for p := range 4 {
		push.Go(func() {
			for i := range each {
				value := []byte(fmt.Sprintf("%d-%d", p, i))
				if _, err := s.List(keys[i%len(keys)]).PushBack(value); err != nil {
					t.Error(err)
				}
			}
		})
	}
	push.Wait()
	for {
		n := 0
		for _, key := range keys {
			left, err := s.List(key).Len()
			must(t, err)
			n += left
		}
		if n == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	work.Wait()
	n := 0
	popped.Range(func(any, any) bool { n++; return true })
	if n != 4*each {
		t.Errorf("%d popped of %d", n, 4*each)
	}
}
