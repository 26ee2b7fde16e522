package codec_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/codec"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

func open(t *testing.T) *db.Store {
	t.Helper()
	s, err := db.Open("d", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %+v, %v, want %+v", what, got, err, want)
	}
}

// keys is what a store and a transaction have in common.
type keys interface {
	String(key string) db.String
	Hash(key string) db.Hash
	List(key string) db.List
	Stream(key string) db.Stream
	Key(key string) db.Key
}

// point is a value that JSON and gob both know.
type point struct {
	X, Y float64
	Tags []string
}

// everywhere runs a test on the handles of a store and of a transaction, with each codec.
func everywhere(t *testing.T, test func(t *testing.T, k keys, c codec.Codec)) {
	for name, c := range map[string]codec.Codec{"default": nil, "JSON": codec.JSON, "gob": codec.Gob} {
		t.Run("store, "+name, func(t *testing.T) { test(t, open(t), c) })
		t.Run("transaction, "+name, func(t *testing.T) {
			must(t, open(t).Update(func(tx *db.Tx) error {
				test(t, tx, c)
				return nil
			}))
		})
	}
}

func TestStringOfEveryCodec(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		s := codec.String[point]{String: k.String("p"), Codec: c}
		if v, err := s.Get(); !errors.Is(err, db.ErrNotFound) || !reflect.DeepEqual(v, point{}) {
			t.Errorf("of no key: %v, %v", v, err)
		}
		want := point{1, -2.5, []string{"a"}}
		must(t, s.Put(want))
		got, err := s.Get()
		equal(t, "Get", got, err, want)
		if err := s.Put(point{}, db.IfAbsent); !errors.Is(err, db.ErrExists) {
			t.Errorf("Put with IfAbsent: %v", err)
		}
		got, err = s.Get()
		equal(t, "Get after a Put that was refused", got, err, want)
		pointers := codec.String[*point]{String: k.String("p"), Codec: c}
		p, err := pointers.Get()
		equal(t, "Get into a pointer", p, err, &want)
	})
}

func TestHashOfEveryCodec(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		h := codec.Hash[point]{Hash: k.Hash("h"), Codec: c}
		isNew, err := h.Put("a", point{X: 1})
		equal(t, "Put", isNew, err, true)
		n, err := h.PutAll(map[string]point{"a": {X: 2}, "": {Y: 3}})
		equal(t, "PutAll", n, err, 1)
		if _, err := h.Put("a", point{}, db.IfAbsent); !errors.Is(err, db.ErrExists) {
			t.Errorf("Put with IfAbsent: %v", err)
		}
		isNew, err = h.Put("c", point{X: 4}, db.IfAbsent)
		equal(t, "Put with IfAbsent of another", isNew, err, true)
		v, err := h.Get("a")
		equal(t, "Get", v, err, point{X: 2})
		if _, err := h.Get("none"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("Get of no field: %v", err)
		}
		some, err := h.GetMany("none", "c", "a")
		equal(t, "GetMany", some, err, map[string]point{"c": {X: 4}, "a": {X: 2}})
		all := map[string]point{}
		for f, err := range h.All() {
			must(t, err)
			all[f.Name] = f.Value
		}
		equal(t, "All", all, nil, map[string]point{"": {Y: 3}, "c": {X: 4}, "a": {X: 2}})
		for _, err := range h.All() {
			must(t, err)
			break
		}
	})
}

func TestListOfEveryCodec(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		l := codec.List[point]{List: k.List("l"), Codec: c}
		n, err := l.PushBack(point{X: 1}, point{X: 2})
		equal(t, "PushBack", n, err, 2)
		n, err = l.PushFront(point{X: 3}, point{X: 4})
		equal(t, "PushFront", n, err, 4)
		must(t, l.Set(-1, point{Y: 9}))
		v, err := l.At(-1)
		equal(t, "At", v, err, point{Y: 9})
		some, err := l.Range(0, 1)
		equal(t, "Range", some, err, []point{{X: 4}, {X: 3}})
		var all []point
		for v, err := range l.All() {
			must(t, err)
			all = append(all, v)
		}
		equal(t, "All", all, err, []point{{X: 4}, {X: 3}, {X: 1}, {Y: 9}})
		v, err = l.PopFront()
		equal(t, "PopFront", v, err, point{X: 4})
		v, err = l.PopBack()
		equal(t, "PopBack", v, err, point{Y: 9})
		if _, err := l.At(5); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("At of no position: %v", err)
		}
	})
}

// TestWhatCannotBeEncoded is refused before anything is written.
func TestWhatCannotBeEncoded(t *testing.T) {
	s := open(t)
	bad := point{X: math.NaN()}
	hash, list := codec.HashOf[point](s.Hash("h")), codec.ListOf[point](s.List("l"))
	refused := func(what string, err error) {
		t.Helper()
		var failed *codec.EncodeError
		var cause *json.UnsupportedValueError
		if !errors.As(err, &failed) || failed.Type != reflect.TypeFor[point]() || !errors.As(err, &cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("String.Put", codec.StringOf[point](s.String("s")).Put(bad))
	_, err := hash.Put("f", bad)
	refused("Hash.Put", err)
	_, err = hash.Put("f", bad, db.IfAbsent)
	refused("Hash.Put with IfAbsent", err)
	_, err = hash.PutAll(map[string]point{"good": {}, "bad": bad})
	refused("Hash.PutAll", err)
	_, err = list.PushBack(point{}, bad)
	refused("List.PushBack", err)
	_, err = list.PushFront(point{}, bad)
	refused("List.PushFront", err)
	refused("List.Set", list.Set(0, bad))
	if s.Len() != 0 {
		t.Errorf("%d keys were written", s.Len())
	}
	lasting := codec.String[point]{String: s.String("s"), Codec: codec.Gob}
	must(t, lasting.Put(bad))
	if v, err := lasting.Get(); err != nil || !math.IsNaN(v.X) {
		t.Errorf("gob makes of a NaN %v, %v", v, err)
	}
}

// TestWhatCannotBeDecoded: the error has the bytes, and a value that was filled in part is not
// returned.
func TestWhatCannotBeDecoded(t *testing.T) {
	s := open(t)
	const text = `{"X":1,"Y":"no number"}`
	must(t, s.String("s").Put([]byte(text)))
	_, err := s.Hash("h").PutAll(db.Field{Name: "good", Value: []byte("{}")}, db.Field{Name: "bad", Value: []byte(text)})
	must(t, err)
	_, err = s.List("l").PushBack([]byte("{}"), []byte(text), []byte("{}"), []byte(text))
	must(t, err)
	hash, list := codec.HashOf[point](s.Hash("h")), codec.ListOf[point](s.List("l"))
	refused := func(what string, nothing bool, err error) {
		t.Helper()
		var failed *codec.DecodeError
		var cause *json.UnmarshalTypeError
		if !errors.As(err, &failed) || failed.Type != reflect.TypeFor[point]() || string(failed.Data) != text || !errors.As(err, &cause) {
			t.Errorf("%s: %v", what, err)
		}
		if !nothing {
			t.Errorf("%s returned something as well", what)
		}
	}
	v, err := codec.StringOf[point](s.String("s")).Get()
	refused("String.Get", reflect.ValueOf(v).IsZero(), err)
	v, err = hash.Get("bad")
	refused("Hash.Get", reflect.ValueOf(v).IsZero(), err)
	some, err := hash.GetMany("good", "bad")
	refused("Hash.GetMany", some == nil, err)
	seen := 0
	for f, e := range hash.All() {
		if err = e; err != nil {
			continue // the loop has ended
		}
		if seen++; f.Name != "good" {
			t.Errorf("Hash.All came to %q", f.Name)
		}
	}
	refused("Hash.All", seen <= 1, err)
	seen = 0
	for _, e := range list.All() {
		if err = e; err == nil {
			seen++
		}
	}
	refused("List.All", seen == 1, err)
	v, err = list.At(1)
	refused("List.At", reflect.ValueOf(v).IsZero(), err)
	elems, err := list.Range(0, 2)
	refused("List.Range", elems == nil, err)
	v, err = list.PopBack()
	refused("List.PopBack", reflect.ValueOf(v).IsZero(), err)
	if n, err := list.Len(); n != 3 || err != nil {
		t.Errorf("%d elements are left, %v", n, err)
	}
}

// TestErrorsOfTheStore go through as they are.
func TestErrorsOfTheStore(t *testing.T) {
	s := open(t)
	must(t, s.String("s").Put([]byte("{}")))
	hash := codec.HashOf[point](s.Hash("s"))
	_, err := hash.Get("f")
	_, errPut := hash.Put("f", point{})
	_, errMany := hash.GetMany("f")
	var errAll error
	for _, errAll = range hash.All() {
		if errAll == nil {
			t.Error("All ranges over a string")
		}
	}
	for i, err := range []error{err, errPut, errMany, errAll} {
		if !errors.Is(err, db.ErrWrongType) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestPopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		jobs := codec.ListOf[point](s.List("jobs"))
		got := make(chan point, 2)
		for _, pop := range []func(context.Context) (point, error){jobs.PopFrontWait, jobs.PopBackWait} {
			go func() {
				v, err := pop(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- v
			}()
			synctest.Wait()
			_, err := jobs.PushBack(point{X: 7})
			must(t, err)
			if v := <-got; v.X != 7 {
				t.Errorf("got %v", v)
			}
		}
	})
}
