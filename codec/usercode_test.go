package codec_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stavedb/stave/codec"
	"github.com/stavedb/stave/db"
)

// failing is a codec that fails in its own way.
type failing struct{ fail func() }

func (f failing) Marshal(any) ([]byte, error) { f.fail(); return nil, nil }
func (f failing) Unmarshal([]byte, any) error { f.fail(); return nil }

// TestCodecPanics: a codec that panics, or ends its goroutine, in whatever method, leaves nothing locked and takes
// nothing away that is not said to go.
func TestCodecPanics(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() { panic("mine") }, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			called := 0
			c := failing{func() { called++; fail() }}
			everywhere := func(k keys) {
				for _, h := range []any{
					codec.String[int]{String: k.String("s"), Codec: c}, codec.Hash[int]{Hash: k.Hash("h"), Codec: c}, codec.List[int]{List: k.List("l"), Codec: c},
					codec.Stream[int]{Stream: k.Stream("x"), Codec: c}, codec.StreamGroup[int]{StreamGroup: k.Stream("x").Group("g"), Codec: c},
				} {
					before := called
					for i := range reflect.TypeOf(h).NumMethod() {
						fill(t, k)
						alone(t, func() { callMethod(h, i) })
					}
					if called == before {
						t.Errorf("the codec of %T was not called", h)
					}
				}
			}
			everywhere(s)
			tx, err := s.Begin(true)
			must(t, err)
			everywhere(tx)
			_, err = tx.End(nil)
			must(t, err)
			alone(t, func() { must(t, s.Update(func(tx *db.Tx) error { return tx.String("after").Put(nil) })) })
			res, err := s.Check(t.Context(), func(f db.Finding) { t.Error(f) })
			equal(t, "findings", res.Findings, err, 0)
		})
	}
}

// fill makes keys for all kinds of handles, with the names that zero arguments stand for.
func fill(t *testing.T, k keys) {
	t.Helper()
	must(t, k.String("s").Put([]byte("1")))
	_, err := k.Hash("h").Put("", []byte("1"))
	must(t, err)
	_, err = k.List("l").PushBack([]byte("1"), []byte("2"))
	must(t, err)
	_, err = k.Stream("x").Add(db.Field{Name: codec.ValueField, Value: []byte("1")})
	must(t, err)
	if err := k.Stream("x").Group("g").Create(db.StreamGroupStart{}); err != nil && !errors.Is(err, db.ErrExists) {
		t.Fatal(err)
	}
}

// callMethod calls a method with one zero value for each parameter, and ranges over the iterator that it may return.
func callMethod(handle any, i int) {
	m := reflect.ValueOf(handle).Method(i)
	var args []reflect.Value
	for j := range m.Type().NumIn() {
		in := m.Type().In(j)
		if m.Type().IsVariadic() && j == m.Type().NumIn()-1 {
			in = in.Elem()
		}
		switch {
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(context.Background()))
		case in.Kind() == reflect.Map:
			args = append(args, reflect.ValueOf(map[string]int{"": 1}))
		case in.Kind() == reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value {
				out := make([]reflect.Value, in.NumOut())
				for k := range out {
					out[k] = reflect.Zero(in.Out(k))
				}
				return out
			}))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	for _, out := range m.Call(args) {
		if out.Kind() == reflect.Func {
			for range out.Seq2() {
			}
		}
	}
}

// alone runs fn on a goroutine that it may end, or panic on, in a time that does not leave it hanging.
func alone(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		fn()
	}()
	stuck := time.AfterFunc(time.Minute, func() { panic("a lock is held") }) // not t.Fatal: what the test cleans up would wait for it
	defer stuck.Stop()
	<-done
}
