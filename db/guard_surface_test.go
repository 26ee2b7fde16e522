package db_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// What the package exports, for tests that nothing of it may escape.

// makers are the methods of a store and of a transaction that return a handle, and their results.
type makers interface {
	String(key string) db.String
	Bitmap(key string) db.Bitmap
	HyperLogLog(key string) db.HyperLogLog
	Hash(key string) db.Hash
	List(key string) db.List
	Set(key string) db.Set
	SortedSet(key string) db.SortedSet
	Stream(key string) db.Stream
	Geo(key string) db.Geo
	Key(key string) db.Key
	Keyspace() db.Keyspace
}

func handlesOf(m makers, key string) []any {
	return []any{
		m.String(key), m.Bitmap(key), m.HyperLogLog(key), m.Hash(key), m.List(key), m.Set(key), m.SortedSet(key), m.Stream(key), m.Geo(key), m.Key(key), m.Keyspace(),
	}
}

// receivers are all types of the package that have exported methods and can reach a store.
var receivers = []reflect.Type{
	reflect.TypeFor[*db.Store](), reflect.TypeFor[*db.Tx](), reflect.TypeFor[*db.Events](), reflect.TypeFor[*db.Watch](), reflect.TypeFor[*db.Waiter](),
	reflect.TypeFor[db.String](), reflect.TypeFor[db.Bitmap](), reflect.TypeFor[db.HyperLogLog](), reflect.TypeFor[db.Hash](), reflect.TypeFor[db.List](),
	reflect.TypeFor[db.Set](), reflect.TypeFor[db.SortedSet](), reflect.TypeFor[db.Stream](), reflect.TypeFor[db.StreamGroup](), reflect.TypeFor[db.Geo](), reflect.TypeFor[db.Key](), reflect.TypeFor[db.Keyspace](),
}

func nameOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// TestReceiversAreComplete: a type of the package with exported methods is in the list above, and a function that takes
// a callback is none of the package.
func TestReceiversAreComplete(t *testing.T) {
	var have []string
	for _, r := range receivers {
		have = append(have, nameOf(r))
	}
	files, err := filepath.Glob("*.go")
	must(t, err)
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		must(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			if f.Recv == nil {
				for _, p := range f.Type.Params.List {
					if _, ok := p.Type.(*ast.FuncType); ok {
						t.Errorf("%s: a function with a callback has no test", fset.Position(f.Pos()))
					}
				}
				continue
			}
			typ := f.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			if id := typ.(*ast.Ident); id.IsExported() && !slices.Contains(have, id.Name) {
				t.Errorf("%s: no test knows the type %s", fset.Position(f.Pos()), id.Name)
			}
		}
	}
}

// callsUser says whether a value of the type can hold code of a user's that the package calls.
func callsUser(t reflect.Type) bool {
	if t == reflect.TypeFor[*slog.Logger]() {
		return true
	}
	switch t.Kind() {
	case reflect.Func:
		return true
	case reflect.Slice, reflect.Pointer:
		return t.Elem() != reflect.TypeFor[db.Tx]() && callsUser(t.Elem())
	case reflect.Interface:
		if t == reflect.TypeFor[error]() || t == reflect.TypeFor[context.Context]() {
			return false
		}
		for i := range t.NumMethod() {
			if !t.Method(i).IsExported() {
				return false // no other package can implement it
			}
		}
		return true
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && callsUser(f.Type) {
				return true
			}
		}
	}
	return false
}

// methodsWithCallbacks are those that take or return a function, by "Type.Method".
func methodsWithCallbacks() (names []string) {
	// Nothing of a user's: these functions run with the log locked, and a server that calls them keeps bytes there.
	locked := []string{"Store.Capture", "Store.SnapshotAt"}
	for _, r := range receivers {
		for name, m := range methodsOf(r) {
			found := false
			for j := 1; j < m.Type().NumIn(); j++ {
				found = found || callsUser(m.Type().In(j))
			}
			for j := range m.Type().NumOut() {
				found = found || m.Type().Out(j).Kind() == reflect.Func
			}
			if name := nameOf(r) + "." + name; found && !slices.Contains(locked, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// everyMethod calls every method of a handle with zero arguments, and check with its name and the error of the call. A
// method that returns an iterator is ranged over.
func everyMethod(t *testing.T, handle any, check func(name string, err error)) {
	t.Helper()
	v := reflect.ValueOf(handle)
	for i := range v.NumMethod() {
		name, m := nameOf(v.Type())+"."+v.Type().Method(i).Name, v.Method(i)
		args := make([]reflect.Value, m.Type().NumIn())
		for j := range args {
			switch in := m.Type().In(j); in {
			case reflect.TypeFor[context.Context]():
				args[j] = reflect.ValueOf(context.Background())
			default:
				args[j] = reflect.Zero(in)
				if in.Kind() == reflect.Interface {
					args[j] = reflect.ValueOf(db.RankRange{}) // the only other one
				}
			}
		}
		call := m.Call
		if m.Type().IsVariadic() {
			call = m.CallSlice
		}
		out := call(args)
		last := out[len(out)-1]
		switch last.Type() {
		case reflect.TypeFor[db.StreamGroup]():
			everyMethod(t, last.Interface(), check)
			continue
		case reflect.TypeFor[db.Wait](): // does nothing yet
			continue
		}
		err, _ := last.Interface().(error)
		if last.Kind() == reflect.Func {
			if last.Type().In(0).NumIn() == 1 {
				for range last.Seq() {
					t.Errorf("%s has something", name)
				}
			} else {
				for _, failed := range last.Seq2() {
					if err, _ = failed.Interface().(error); err == nil {
						t.Errorf("%s has something", name)
					}
				}
			}
		}
		check(name, err)
	}
}

// bound is how long anything may take that is not to hang. The machine may be busy.
const bound = 20 * time.Second

// hung says that something has hung, and that the rest of a table need not be waited for.
var hung bool

// within runs fn, on a goroutine of its own, and ends the test with all stacks if it hangs. It reports what fn panicked
// with, if it did, and whether it came to its end.
func within(t *testing.T, what string, fn func()) (panicked any, ended bool) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		fn()
		ended = true
	}()
	select {
	case <-done:
	case <-time.After(bound):
		hung = true
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s hangs\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
	return panicked, ended
}

// openToHang is openMemory for a test of what may hang: if it does, Close would as well.
func openToHang(t *testing.T) *db.Store {
	t.Helper()
	s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()})))
	t.Cleanup(func() {
		if !t.Failed() {
			must(t, s.Close())
		}
	})
	return s
}

// usable fails the test unless the store can be locked as a whole, written, and is sound.
func usable(t *testing.T, what string, s *db.Store) {
	t.Helper()
	within(t, "the store after "+what, func() {
		for range 3 { // more than one use of what a pool may have got back
			if err := s.Update(func(tx *db.Tx) error { return tx.String("usable").Put([]byte("yes")) }); err != nil {
				t.Errorf("after %s: %v", what, err)
			}
			if err := s.String("usable").Put([]byte("still")); err != nil {
				t.Errorf("after %s: %v", what, err)
			}
		}
		res, err := s.Check(context.Background(), func(f db.Finding) { t.Errorf("after %s: %v", what, f) })
		if err != nil || res.Findings > 0 {
			t.Errorf("after %s: %v, %+v", what, err, res)
		}
	})
}

// TestNothingElseIsCalled: a field of Options that holds code of a user's is known to the tests of this package.
func TestNothingElseIsCalled(t *testing.T) {
	known := []string{"Logger", "Observe", "Archive"} // TestLogHandlerFails, TestObserverPanics, bitcask/archive: TestStorePanics
	typ := reflect.TypeFor[db.Options]()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() && callsUser(f.Type) && !slices.Contains(known, f.Name) {
			t.Errorf("Options.%s can hold a callback that no test makes panic", f.Name)
		}
	}
	if _, err := os.Stat("guard_surface_test.go"); errors.Is(err, fs.ErrNotExist) {
		t.Error("the test does not run in its directory")
	}
}
