package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestEndedTransaction: every method of a transaction that has ended fails with ErrTxDone, or does nothing, and its
// memory is not that of another one.
func TestEndedTransaction(t *testing.T) {
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, s.Put("k", []byte("v")))
	ended, err := s.Begin(true, "k")
	must(t, err)
	ended.End()
	for range 10 {
		tx, err := s.Begin(true, "k")
		must(t, err)
		if tx == ended {
			t.Error("the memory of a transaction that was not recycled is used again")
		}
		tx.End()
	}
	other, err := s.Begin(true, "other")
	must(t, err)
	defer other.End()
	v := reflect.ValueOf(ended)
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if name == "Recycle" || name == "FailOnDisk" { // whose error is what was set before
			continue
		}
		args := make([]reflect.Value, m.Type().NumIn())
		for j := range args {
			args[j] = reflect.Zero(m.Type().In(j))
			if args[j].Kind() == reflect.String {
				args[j] = reflect.ValueOf("k")
			}
		}
		call := m.Call
		if m.Type().IsVariadic() {
			call = m.CallSlice
		}
		out := call(args)
		if n := m.Type().NumOut(); n > 0 && m.Type().Out(n-1) == reflect.TypeFor[error]() {
			if err, _ := out[n-1].Interface().(error); !errors.Is(err, bitcask.ErrTxDone) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	must(t, other.PutString(0, "other", []byte("v")))
	_, err = other.Commit()
	must(t, err)
	other.End()
	ended.Recycle()
	ended.Recycle() // the pool has it once
	first, err := s.Begin(false, "a")
	must(t, err)
	second, err := s.Begin(false, "b")
	must(t, err)
	if first == second {
		t.Error("two transactions in one memory")
	}
	first.End()
	second.End()
}

// userCode has for each method that takes or returns a function how to have it call one.
var userCode = map[string]func(t *testing.T, s *bitcask.Store, cb func()){
	"Tx.FlushWith": func(t *testing.T, s *bitcask.Store, cb func()) {
		remapped(t, s, func(tx *bitcask.Tx, put func() error) error { _, _, err := tx.FlushWith(put, 0); return err }, cb)
	},
	"Tx.SwapWith": func(t *testing.T, s *bitcask.Store, cb func()) {
		remapped(t, s, func(tx *bitcask.Tx, put func() error) error { _, err := tx.SwapWith(put, 0, 1); return err }, cb)
	},
	"Tx.Install": func(t *testing.T, s *bitcask.Store, cb func()) {
		remapped(t, s, func(tx *bitcask.Tx, put func() error) error { _, _, err := tx.Install(put, 8, 2); return err }, cb)
	},
	"Store.Snapshot": func(t *testing.T, s *bitcask.Store, cb func()) {
		_, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{Cut: cb})
		must(t, err)
	},
	"Store.All": func(t *testing.T, s *bitcask.Store, cb func()) {
		for range s.All() {
			cb()
		}
	},
	"Store.RandomKey": func(t *testing.T, s *bitcask.Store, cb func()) {
		calls := 0
		_, _, err := s.RandomKey(0, func() uint64 {
			if calls++; calls > 1 { // with a stripe locked
				cb()
			}
			return 7
		})
		must(t, err)
	},
	"Store.Sweep": func(t *testing.T, s *bitcask.Store, cb func()) {
		for from, more := uint64(0), true; more; more = from != 0 {
			next, err := s.Sweep(0, from, true, func([]byte) bool { cb(); return true })
			must(t, err)
			from = next
		}
	},
	"Tx.RandomKey": func(t *testing.T, s *bitcask.Store, cb func()) {
		tx, err := s.BeginAll(false)
		must(t, err)
		defer tx.End()
		_, _, err = tx.RandomKey(0, func() uint64 { cb(); return 7 })
		must(t, err)
	},
	"Store.EachFieldDeadline": func(t *testing.T, s *bitcask.Store, cb func()) {
		s.EachFieldDeadline(func(uint32, string, int64) { cb() })
	},
	"Tx.EachKey": func(t *testing.T, s *bitcask.Store, cb func()) {
		for stripe := range keydir.Stripes {
			func() {
				tx, err := s.BeginStripe(false, stripe)
				must(t, err)
				defer tx.End()
				must(t, tx.EachKey(0, stripe, 0, func(uint64, []byte, keydir.Type) bool { cb(); return true }))
			}()
		}
	},
	"Tx.Gather": func(t *testing.T, s *bitcask.Store, cb func()) {
		for walk, stripe := new(bitcask.Walk), 0; stripe < keydir.Stripes; stripe++ {
			func() {
				tx, err := s.BeginStripe(false, stripe)
				must(t, err)
				defer tx.End()
				must(t, tx.Gather(walk, 0, func([]byte, keydir.Type) bool { cb(); return true }))
			}()
		}
	},
	"Tx.Page": func(t *testing.T, s *bitcask.Store, cb func()) {
		tx, err := s.BeginAll(false)
		must(t, err)
		defer tx.End()
		var walk bitcask.Walk
		for {
			stripe, gather := walk.Stripe()
			if gather {
				must(t, tx.Gather(&walk, 0, func([]byte, keydir.Type) bool { return true }))
			} else if stripe < keydir.Stripes {
				_, err := tx.Page(&walk, 0, func([]byte, []byte) { cb() })
				must(t, err)
			} else {
				return
			}
		}
	},
	"Tx.EachName": func(t *testing.T, s *bitcask.Store, cb func()) {
		tx, err := s.BeginAll(false)
		must(t, err)
		defer tx.End()
		must(t, tx.EachName(0, func([]byte, keydir.Type) bool { cb(); return true }))
	},
	"Tx.Apart": func(t *testing.T, s *bitcask.Store, cb func()) {
		tx, err := s.Begin(true, "k")
		must(t, err)
		defer tx.End()
		tx.Apart(cb)
	},
	"Store.Check":       func(t *testing.T, _ *bitcask.Store, cb func()) { damageReported(t, (*bitcask.Store).Check, cb) },
	"Store.CheckReplay": func(t *testing.T, _ *bitcask.Store, cb func()) { damageReported(t, (*bitcask.Store).CheckReplay, cb) },
	// What a store that follows calls, it calls on a goroutine of its own: a panic there ends the process. Others call
	// nothing.
	"Store.Follow": func(t *testing.T, s *bitcask.Store, cb func()) {
		if err := s.Follow(bitcask.Following{Applied: func(*bitcask.Followed) func() { return cb }}); !errors.Is(err, bitcask.ErrNotFollowing) {
			t.Errorf("following by a writer gives %v", err)
		}
		cb()
	},
	"Tx.UsageByPlace": func(t *testing.T, s *bitcask.Store, cb func()) {
		tx, err := s.Begin(false, "key7")
		must(t, err)
		defer tx.End()
		_, there, err := tx.UsageByPlace(0, "key7", func(uint32, int64) { cb() })
		must(t, err)
		if !there {
			t.Error("key7 is not there")
		}
	},
	"Store.Rewrite": func(t *testing.T, s *bitcask.Store, cb func()) {
		rewrite(t, s, bitcask.RewriteOptions{Progress: func(int64) { cb() }})
	},
}

func damageReported(t *testing.T, check func(*bitcask.Store, context.Context, func(bitcask.Finding)) (bitcask.CheckResult, error), cb func()) {
	mem := vfs.NewMem()
	s, err := bitcask.Open("checked", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, s.Put("k", []byte("v")))
	flip(t, mem, "checked/000000001.data", 70)
	_, err = check(s, context.Background(), func(bitcask.Finding) { cb() })
	must(t, err)
}

func rewrite(t *testing.T, s *bitcask.Store, o bitcask.RewriteOptions) {
	must(t, s.Rotate())
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	_, err := s.Rewrite(context.Background(), ids, o)
	must(t, err)
}

// remapped changes the map of namespaces in a transaction, with a function that puts more.
func remapped(t *testing.T, s *bitcask.Store, call func(tx *bitcask.Tx, put func() error) error, cb func()) {
	tx, err := s.BeginAll(true)
	must(t, err)
	defer tx.End()
	must(t, call(tx, func() error { cb(); return nil }))
}

// TestUserCodePanics: what a user has given and panics, or ends its goroutine, leaves no lock held.
func TestUserCodePanics(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[*bitcask.Store](), reflect.TypeFor[*bitcask.Tx]()} {
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			var all []reflect.Type
			for j := 1; j < m.Type.NumIn(); j++ {
				in := m.Type.In(j)
				all = append(all, in)
				for k := 0; in.Kind() == reflect.Struct && k < in.NumField(); k++ {
					all = append(all, in.Field(k).Type)
				}
			}
			for j := range m.Type.NumOut() {
				all = append(all, m.Type.Out(j))
			}
			name := typ.Elem().Name() + "." + m.Name
			if slices.ContainsFunc(all, func(p reflect.Type) bool { return p.Kind() == reflect.Func }) && userCode[name] == nil && name != "Store.OnWritten" { // which is not for users: it runs with the log locked
				t.Errorf("%s takes or returns a function and has no row", name)
			}
		}
	}
	for name, row := range userCode {
		for _, goexit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/goexit=%t", name, goexit), func(t *testing.T) {
				s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: vfs.NewMem()}))
				must(t, err)
				filled(t, s)
				called := false
				fails(t, goexit, &called, func(cb func()) { row(t, s, cb) })
				if !called {
					t.Error("the callback was not called")
				}
				bounded(t, func() {
					tx, err := s.BeginAll(true)
					must(t, err)
					tx.End()
					if _, err := s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) }); err != nil {
						t.Error(err)
					}
					must(t, s.Close())
				})
			})
		}
	}
}

// TestMergeCallbackFails in each of its calls: the rewrite ends as if it were cancelled, nothing is lost, and another
// one does it.
func TestMergeCallbackFails(t *testing.T) {
	for _, goexit := range []bool{false, true} {
		for after := range 40 {
			mem := vfs.NewMem()
			s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 100 << 10}, seam.Options{FS: mem}))
			must(t, err)
			want := filled(t, s)
			called, calls := false, 0
			fails(t, goexit, &called, func(cb func()) {
				step := func() {
					if calls++; calls > after {
						cb()
					}
				}
				rewrite(t, s, bitcask.RewriteOptions{Progress: func(int64) { step() }, Throttle: func(int) error { step(); return nil }})
			})
			bounded(t, func() {
				rewrite(t, s, bitcask.RewriteOptions{})
				for range 2 {
					for key, value := range want {
						if got, err := s.Get(key); err != nil || string(got) != value {
							t.Fatalf("after %d calls: %s: %v", after, key, err)
						}
					}
					must(t, s.Close())
					s, err = bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
					must(t, err)
				}
				must(t, s.Close())
			})
			if !called {
				if after < 4 {
					t.Errorf("%d calls", calls)
				}
				break
			}
		}
	}
}

// TestLoadingPanics: what Open has taken by then is free again.
func TestLoadingPanics(t *testing.T) {
	for _, goexit := range []bool{false, true} {
		mem, called := vfs.NewMem(), false
		o := seam.With(&bitcask.Options{}, seam.Options{FS: mem})
		s, err := bitcask.Open("d", o)
		must(t, err)
		must(t, s.Put("k", nil))
		must(t, s.Close())
		fails(t, goexit, &called, func(cb func()) {
			_, err := bitcask.Open("d", seam.With(&bitcask.Options{Loading: func([16]byte, uint64) (func(bitcask.DeadlineEvent), bool) { cb(); return nil, false }}, seam.Options{FS: mem}))
			must(t, err)
		})
		s, err = bitcask.Open("d", o)
		must(t, err)
		must(t, s.Close())
		if left := mem.Leaks(); len(left) > 0 {
			t.Error("open files:", left)
		}
	}
}

// filled puts strings, and a hash with a deadline of a field, and returns the strings.
func filled(t *testing.T, s *bitcask.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i := range 300 {
		key, value := fmt.Sprint("key", i), fmt.Sprintf("%01000d", i)
		must(t, s.Put(key, []byte("to be replaced")))
		must(t, s.Put(key, []byte(value)))
		all[key] = value
	}
	tx, err := s.Begin(true, "hash")
	must(t, err)
	defer tx.End()
	f, err := tx.Collection(0, "hash", keydir.Hash)
	must(t, err)
	must(t, tx.PutElem(0, "hash", f, "field", nil))
	must(t, tx.SetFieldDeadline(0, "hash", "field", 1<<41))
	_, err = tx.Commit()
	must(t, err)
	return all
}

// fails runs fn, whose callback panics or ends its goroutine, and wants the caller to get that.
func fails(t *testing.T, goexit bool, called *bool, fn func(cb func())) {
	t.Helper()
	var panicked any
	ended := false
	bounded(t, func() {
		defer func() { panicked = recover() }()
		fn(func() {
			*called = true
			if goexit {
				runtime.Goexit()
			}
			panic("mine")
		})
		ended = true
	})
	switch {
	case ended && *called:
		t.Error("the panic was swallowed")
	case !goexit && *called && panicked != "mine":
		t.Errorf("the panic has become %v", panicked)
	}
}

func bounded(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		stacks := make([]byte, 1<<20)
		t.Fatalf("it hangs\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}
