package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// failingPut makes a record of a transaction fail.
type failingPut struct {
	after  int // so many records; 0: none fails
	failed bool
}

var errPut = errors.New("failed by the test")

func (f *failingPut) refuse() error {
	if f.after == 0 {
		return nil
	}
	if f.after--; f.after > 0 {
		return nil
	}
	f.failed = true
	return errPut
}

// TestCallThatFailsMidwayChangesNothing: a call on a handle of a transaction that fails after some of its writes has
// done nothing, and the closure may go on and commit. Every method of every handle is called with arguments that are
// drawn, so that no new one is forgotten.
func TestCallThatFailsMidwayChangesNothing(t *testing.T) {
	f := &failingPut{}
	options := seam.With(&db.Options{NoMerge: true, OrderedKeys: true}, seam.Options{FS: vfs.NewMem(), Refuse: f.refuse, ChunkSize: 16})
	s := ok[*db.Store](t)(db.Open("d", options))
	d := &drawn{rng: chance.Rand(t), midway: map[string]bool{}}
	d.keys = []string{"chunks", "hash", "list", "set", "stream", "string", "zset"}
	want := []string{"StreamGroup.DeleteConsumer", "Hash.PutAll", "List.PushBack", "Key.Rename", "SortedSet.Add", "Tx.Flush", "Tx.Swap"}
	lacks := func(method string) bool { return !d.midway[method] }
	for round := 0; round < 4 || round < 40 && slices.ContainsFunc(want, lacks); round++ {
		for _, key := range d.keys {
			handles := func(m makers) []any { return append(handlesOf(m, key), m.Stream("stream").Group("g")) }
			for i, handle := range handles(s) {
				for m := range reflect.TypeOf(handle).NumMethod() {
					name := nameOf(reflect.TypeOf(handle)) + "." + reflect.TypeOf(handle).Method(m).Name
					d.failEach(t, s, f, name, func(tx *db.Tx) reflect.Value { return reflect.ValueOf(handles(tx)[i]).Method(m) })
				}
			}
		}
		d.failEach(t, s, f, "Tx.Flush", func(tx *db.Tx) reflect.Value { return reflect.ValueOf(tx.Flush) })
		d.failEach(t, s, f, "Tx.Swap", func(tx *db.Tx) reflect.Value {
			return reflect.ValueOf(func() error { return tx.Swap(0, 1) })
		})
	}
	for _, method := range want {
		if lacks(method) {
			t.Errorf("%s has never failed after its first write", method)
		}
	}
	if len(d.midway) < 40 {
		t.Errorf("%d methods have failed", len(d.midway))
	}
	before := dumped(t, s)
	must(t, s.Close())
	s = ok[*db.Store](t)(db.Open("d", options))
	equal(t, "opened again", fmt.Sprint(dumped(t, s)), fmt.Sprint(before))
	usable(t, "failed calls", s)
	must(t, s.Close())
}

// manyOfEach is oneOfEach with enough in each key for calls of several writes, and a deadline of each.
func manyOfEach(t *testing.T, s *db.Store) {
	t.Helper()
	must(t, s.Update(func(tx *db.Tx) error {
		oneOfEach(t, tx)
		must(t, tx.String("chunks").Put(make([]byte, 300)))
		for _, name := range drawnNames {
			ok[bool](t)(tx.Hash("hash").Put(name, []byte("1")))
			ok[int](t)(tx.Set("set").Add(name))
			ok[int](t)(tx.SortedSet("zset").Add(db.Scored{Member: name, Score: 2}))
			ok[int](t)(tx.List("list").PushBack([]byte(name)))
		}
		ok[[]db.FieldResult](t)(tx.Hash("hash").ExpireFields(time.Hour, drawnNames[:2]))
		for i := range uint64(6) {
			ok[db.StreamID](t)(tx.Stream("stream").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 8, Seq: i}}, db.Field{Name: "f"}))
		}
		ok[[]db.StreamEntry](t)(tx.Stream("stream").Group("g").Read("a", 3))
		ok[[]db.StreamEntry](t)(tx.Stream("stream").Group("g").Read("b", 1))
		for _, key := range []string{"string", "hash", "list", "set", "zset", "stream"} {
			ok[bool](t)(tx.Key(key).Expire(time.Hour))
		}
		other := ok[*db.Tx](t)(tx.Use(1))
		return other.String("of another namespace").Put(nil)
	}))
}

// dumped is all that a store holds, by key.
func dumped(t *testing.T, s *db.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for ns := range 2 {
		view := ok[*db.Store](t)(s.Use(ns))
		var ordered []string
		for key := range each(t, view.Keyspace().Range(db.KeyRange{})) {
			ordered = append(ordered, key.Key)
		}
		names := ok[[]string](t)(view.Keyspace().Keys("*"))
		slices.Sort(names)
		equal(t, "keys in order", fmt.Sprint(ordered), fmt.Sprint(names))
		for _, key := range names {
			all[key] += fmt.Sprintf("%d %x %v\n", ns, ok[[]byte](t)(view.Key(key).Dump()), ok[time.Time](t)(view.Key(key).Deadline()))
		}
	}
	return all
}

// drawn draws arguments.
type drawn struct {
	rng    *rand.Rand
	keys   []string
	filled string          // what a store holds that is full
	midway map[string]bool // methods that have failed after their first write
}

// failEach calls a method so often that each of its writes fails once.
func (d *drawn) failEach(t *testing.T, s *db.Store, f *failingPut, name string, method func(tx *db.Tx) reflect.Value) {
	t.Helper()
	before := fmt.Sprint(dumped(t, s))
	if before != d.filled {
		*f = failingPut{}
		must(t, s.FlushAll())
		manyOfEach(t, s)
		before = fmt.Sprint(dumped(t, s))
		d.filled = before
	}
	var args []reflect.Value
	for n := 1; ; n++ {
		*f = failingPut{}
		must(t, s.Update(func(tx *db.Tx) error {
			call := method(tx)
			if args == nil {
				args = make([]reflect.Value, 0, 8)
				for i := range call.Type().NumIn() {
					args = append(args, d.value(call.Type().In(i), 3))
				}
			}
			f.after = n
			if call.Type().IsVariadic() {
				call.CallSlice(args)
			} else {
				call.Call(args)
			}
			f.after = 0
			return nil // whatever has become of the call
		}))
		if !f.failed {
			return
		}
		d.midway[name] = d.midway[name] || n > 1
		if after := fmt.Sprint(dumped(t, s)); after != before {
			t.Errorf("%s, of which write %d failed, has changed\n%v\nto\n%v", name, n, before, after)
			return
		}
	}
}

var drawnNames = []string{"a", "b", "c", "m"}

// value draws an argument, so that calls often find what is there.
func (d *drawn) value(typ reflect.Type, depth int) reflect.Value {
	one := func(of ...any) reflect.Value { return reflect.ValueOf(of[d.rng.IntN(len(of))]).Convert(typ) }
	switch typ {
	case reflect.TypeFor[context.Context]():
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return reflect.ValueOf(ctx)
	case reflect.TypeFor[db.WriteOption]():
		return one(db.TTL(time.Hour), db.KeepTTL, db.IfAbsent, db.IfPresent, db.IfEqual([]byte("1")), db.IfNotEqual([]byte("a")))
	case reflect.TypeFor[time.Time]():
		return one(time.Now().Add(2 * time.Hour))
	case reflect.TypeFor[time.Duration]():
		return one(2 * time.Hour)
	case reflect.TypeFor[db.StreamID]():
		return one(db.StreamID{Ms: 5}, db.StreamID{Ms: 5, Seq: 2}, db.StreamID{Ms: 8, Seq: 1}, db.StreamID{Ms: 8, Seq: 4}, db.StreamID{Ms: 9}, db.MaxStreamID)
	case reflect.TypeFor[[]byte]():
		return one([]byte("1"), []byte("a"), make([]byte, 200))
	}
	switch typ.Kind() {
	case reflect.String:
		return one(slices.Concat([]any{"g"}, anyOf(d.keys), anyOf(drawnNames), anyOf(drawnNames))...)
	case reflect.Bool:
		return one(true, false)
	case reflect.Float64:
		return one(0.5, 2.0)
	case reflect.Int, reflect.Int64, reflect.Int8, reflect.Uint64, reflect.Uint32, reflect.Uint8, reflect.Uint, reflect.Int32:
		return one(0, 1, 2, 3)
	case reflect.Interface:
		return one(db.RankRange{Stop: -1}, db.RankRange{Start: 1, Stop: 2})
	case reflect.Func:
		return reflect.MakeFunc(typ, func([]reflect.Value) (out []reflect.Value) {
			for i := range typ.NumOut() {
				if out = append(out, reflect.Zero(typ.Out(i))); typ.Out(i).Kind() == reflect.Bool {
					out[i] = reflect.ValueOf(true)
				}
			}
			return out
		})
	}
	v := reflect.New(typ).Elem()
	switch {
	case typ.Kind() == reflect.Slice:
		for range 1 + d.rng.IntN(4) {
			v = reflect.Append(v, d.value(typ.Elem(), depth-1))
		}
	case typ.Kind() == reflect.Pointer && depth > 0 && d.rng.IntN(2) == 0:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(d.value(typ.Elem(), depth-1))
	case typ.Kind() == reflect.Struct && depth > 0:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				v.Field(i).Set(d.value(typ.Field(i).Type, depth-1))
			}
		}
	}
	return v
}

func anyOf(list []string) (all []any) {
	for _, s := range list {
		all = append(all, s)
	}
	return all
}
