package db_test

import (
	"flag"
	"go/ast"
	"go/doc"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/serverside"
)

// What is promised of every method of a store and of a transaction is promised of the functions that only servers have,
// too: the tests of all methods draw them.

// serverCalls are those functions by name, of one receiver.
func serverCalls(receiver reflect.Type) map[string]reflect.Value {
	found, db := map[string]reflect.Value{}, reflect.ValueOf(serverside.DB).Elem()
	for i := range db.NumField() {
		if f := db.Field(i); f.Type().In(0) == receiver {
			found[db.Type().Field(i).Name] = f
		}
	}
	return found
}

// methodsOf are the methods of a type, of which those of servers are some: functions whose first parameter is the
// receiver.
func methodsOf(receiver reflect.Type) map[string]reflect.Value {
	all := serverCalls(receiver)
	for i := range receiver.NumMethod() {
		m := receiver.Method(i)
		all[m.Name] = m.Func
	}
	return all
}

// TestServerCallsAreComplete: each is registered, and is one of a store or of a transaction.
func TestServerCallsAreComplete(t *testing.T) {
	db, drawn := reflect.ValueOf(serverside.DB).Elem(), 0
	for i := range db.NumField() {
		if db.Field(i).IsNil() {
			t.Errorf("%s is not registered", db.Type().Field(i).Name)
		}
	}
	for _, r := range receivers {
		drawn += len(serverCalls(r))
	}
	if drawn != db.NumField() {
		t.Errorf("%d of %d are drawn by the tests of all methods", drawn, db.NumField())
	}
}

var updateExported = flag.Bool("update-exported", false, "rewrite testdata/exported.txt")

// TestExported compares what the package exports with a list, so that whoever adds a name means it: a name stays, while
// one of internal/serverside may go.
func TestExported(t *testing.T) {
	var names []string
	values := func(list []*doc.Value) {
		for _, v := range list {
			names = append(names, v.Names...)
		}
	}
	p := packageOf(t, ".")
	values(p.Consts)
	values(p.Vars)
	for _, f := range p.Funcs {
		names = append(names, f.Name)
	}
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		for _, f := range typ.Funcs {
			names = append(names, f.Name)
		}
		for _, m := range typ.Methods {
			names = append(names, typ.Name+"."+m.Name)
		}
		if s, ok := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					names = append(names, typ.Name+"."+name.Name)
				}
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name[strings.LastIndex(name, ".")+1:]) })
	slices.Sort(names)
	got, file := strings.Join(names, "\n")+"\n", filepath.Join("testdata", "exported.txt")
	if *updateExported {
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := strings.Fields(string(ok[[]byte](t)(os.ReadFile(file))))
	for _, name := range names {
		if !slices.Contains(want, name) {
			t.Errorf("%s is new: is it for programs that embed a store? Then run this test with -update-exported, else see internal/serverside", name)
		}
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s is gone: if programs can do without it, run this test with -update-exported", name)
		}
	}
}
