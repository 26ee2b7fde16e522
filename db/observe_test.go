package db_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// observed collects the operations that a store's observer gets.
type observed struct {
	mu  sync.Mutex
	ops []db.Operation
}

func (o *observed) add(op db.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ops = append(o.ops, op)
}

func (o *observed) take() (ops []db.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ops, o.ops = o.ops, nil
	return ops
}

func TestObserve(t *testing.T) {
	var seen observed
	s := inMemory(t, &db.Options{Observe: seen.add, ExpireEvery: -1})
	other := ok[*db.Store](t)(s.Use(3))
	fault := errors.New("no")
	for name, step := range map[string]struct {
		do    func() error
		names []string
		err   error
	}{
		"put":             {func() error { return s.String("k").Put([]byte("v")) }, []string{"String.Put"}, nil},
		"get":             {func() error { _, err := s.String("k").Get(); return err }, []string{"String.Get"}, nil},
		"exists":          {func() error { _, err := s.Key("k").Exists(); return err }, []string{"Key.Exists"}, nil},
		"hash":            {func() error { return first(other.Hash("h").Put("f", nil)) }, []string{"Hash.Put"}, nil},
		"wrong type":      {func() error { return first(s.List("k").PushBack(nil)) }, []string{"List.PushBack"}, structures.ErrWrongType},
		"several keys":    {func() error { return s.Keyspace().Put(db.Pair{Key: "a"}, db.Pair{Key: "b"}) }, []string{"Keyspace.Put"}, nil},
		"view":            {func() error { return s.View(func(tx *db.Tx) error { return first(tx.String("k").Get()) }) }, []string{"Store.View"}, nil},
		"update":          {func() error { return s.Update(func(tx *db.Tx) error { return tx.String("k").Put(nil) }) }, []string{"Store.Update"}, nil},
		"refused update":  {func() error { return s.UpdateKeys([]string{"k"}, func(*db.Tx) error { return fault }) }, []string{"Store.UpdateKeys"}, fault},
		"flush":           {func() error { return other.Flush() }, []string{"Store.Flush"}, nil},
		"swap":            {func() error { return s.Swap(1, 2) }, []string{"Store.Swap"}, nil},
		"within a method": {func() error { return first(s.SortedSet("z").Incr("m", 1)) }, []string{"SortedSet.Incr"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.String("k").Put([]byte("v")))
			seen.take()
			for range 2 { // the name is remembered
				if err := step.do(); !errors.Is(err, step.err) {
					t.Fatalf("error %v, want %v", err, step.err)
				}
				var names []string
				for _, op := range seen.take() {
					names = append(names, op.Name)
					if !errors.Is(op.Err, step.err) || op.Duration <= 0 || op.Duration > time.Minute {
						t.Errorf("told of %+v", op)
					}
					if want := map[bool]int{true: 3}[name == "hash" || name == "flush"]; op.Namespace != want {
						t.Errorf("namespace %d, want %d", op.Namespace, want)
					}
				}
				if !slices.Equal(names, step.names) {
					t.Errorf("told of %q, want %q", names, step.names)
				}
			}
		})
	}
}

func TestObserveBackground(t *testing.T) {
	var seen observed
	s := inMemory(t, &db.Options{Observe: seen.add, ExpireEvery: time.Millisecond})
	must(t, s.String("k").Put(nil, db.TTL(time.Millisecond)))
	for deadline := time.Now().Add(time.Minute); s.Len() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if slices.ContainsFunc(seen.take(), func(op db.Operation) bool { return op.Name == "Store.Expire" }) {
			return
		}
	}
	t.Error("nobody was told of the key that was reaped")
}

// TestObserverUsesTheStore: it gets ErrNested instead of an endless recursion.
func TestObserverUsesTheStore(t *testing.T) {
	var s *db.Store
	var errs []error
	s = inMemory(t, &db.Options{ExpireEvery: -1, Observe: func(db.Operation) {
		errs = append(errs, s.String("k").Put(nil), first(s.String("k").Get()), s.View(func(*db.Tx) error { return nil }))
	}})
	must(t, s.String("k").Put([]byte("v")))
	for _, err := range errs {
		if !errors.Is(err, db.ErrNested) {
			t.Errorf("error is %v", err)
		}
	}
	equal(t, "uses", len(errs), 3)
}

// TestObserverPanics, or ends its goroutine: the call has been made, nothing stays locked, and other calls go on.
func TestObserverPanics(t *testing.T) {
	for how, end := range map[string]func(){"panic": func() { panic("observer") }, "Goexit": runtime.Goexit} {
		armed := false
		s := inMemory(t, &db.Options{ExpireEvery: -1, Observe: func(db.Operation) {
			if armed {
				armed = false
				end()
			}
		}})
		for what, use := range map[string]func() error{
			"put":    func() error { return s.String("put").Put([]byte("v")) },
			"get":    func() error { return first(s.String("put").Get()) },
			"update": func() error { return s.Update(func(tx *db.Tx) error { return tx.String("update").Put([]byte("v")) }) },
			"flush":  func() error { return ok[*db.Store](t)(s.Use(1)).Flush() },
			"panic": func() error {
				return s.Update(func(tx *db.Tx) error { must(t, tx.String("lost").Put(nil)); panic("closure") })
			},
		} {
			armed = true
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = use()
				t.Errorf("%s in the observer of %s did not come through", how, what)
			}()
			<-done
			equal(t, "armed", armed, false)
			must(t, s.Update(func(*db.Tx) error { return nil })) // takes every lock
		}
		for key, want := range map[string]bool{"put": true, "update": true, "lost": false} {
			equal(t, key+" is there", ok[bool](t)(s.Key(key).Exists()), want)
		}
	}
}

// TestObserveWhereAListenerPanics: the commit stands, and the observer gets it.
func TestObserveWhereAListenerPanics(t *testing.T) {
	for name, use := range map[string]func(*db.Store) error{
		"String.Put":     func(s *db.Store) error { return s.String("put").Put(nil) },
		"Store.Flush":    func(s *db.Store) error { return s.Flush() },
		"Store.FlushAll": func(s *db.Store) error { return s.FlushAll() },
		"Store.Swap":     func(s *db.Store) error { return s.Swap(0, 1) },
	} {
		var seen observed
		s := inMemory(t, &db.Options{ExpireEvery: -1, Observe: seen.add})
		must(t, s.String("k").Put(nil))
		stop := s.OnEvents(^db.EventClass(0), func(db.Event) { panic("listener") })
		seen.take()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic did not come through", name)
				}
			}()
			_ = use(s)
		}()
		stop()
		if ops := seen.take(); len(ops) != 1 || ops[0].Name != name || ops[0].Err != nil {
			t.Errorf("%s: told of %+v", name, ops)
		}
	}
}

func TestStatsCountCommits(t *testing.T) {
	s := inMemory(t, &db.Options{ExpireEvery: -1})
	before := s.Stats()
	for range 5 {
		must(t, s.String("k").Put([]byte("v")))
	}
	must(t, s.Update(func(tx *db.Tx) error { return errors.Join(tx.String("a").Put(nil), tx.String("b").Put(nil)) }))
	must(t, s.View(func(*db.Tx) error { return nil }))
	after := s.Stats()
	equal(t, "commits", after.Commits-before.Commits, 6)
	if after.Written <= before.Written {
		t.Errorf("bytes written: %d, before %d", after.Written, before.Written)
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, observe := range map[string]func(db.Operation){"nobody": nil, "somebody": func(db.Operation) {}} {
		s, err := db.OpenMemory(&db.Options{Observe: observe, ExpireEvery: -1})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		if err := s.String("key").Put(make([]byte, 100)); err != nil {
			b.Fatal(err)
		}
		b.Run("incr/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Hash("h").Incr("f", 1); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("get/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.String("key").Get(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
