package codec_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/codec"
	"github.com/stavedb/stave/db"
)

// handles are the types of the package, each with the handle of db that it embeds.
var handles = map[reflect.Type]reflect.Type{
	reflect.TypeFor[codec.String[point]]():      reflect.TypeFor[db.String](),
	reflect.TypeFor[codec.Hash[point]]():        reflect.TypeFor[db.Hash](),
	reflect.TypeFor[codec.List[point]]():        reflect.TypeFor[db.List](),
	reflect.TypeFor[codec.Stream[point]]():      reflect.TypeFor[db.Stream](),
	reflect.TypeFor[codec.StreamGroup[point]](): reflect.TypeFor[db.StreamGroup](),
}

// storedBytes are the methods that deal with the stored bytes on purpose, as the documentation of the package says.
var storedBytes = []string{"String.Append", "String.AppendTo", "String.Range", "String.SetRange", "Hash.AppendTo", "Stream.Append"}

// hasBytes says whether a value of the type has stored bytes, or gives a handle on them.
func hasBytes(t reflect.Type) bool {
	for _, below := range handles {
		if t == below {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return t.Elem().Kind() == reflect.Uint8 || hasBytes(t.Elem())
	case reflect.Pointer:
		return hasBytes(t.Elem())
	case reflect.Map:
		return hasBytes(t.Key()) || hasBytes(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && hasBytes(f.Type) {
				return true
			}
		}
	case reflect.Func: // an iterator, or a visitor
		for i := range t.NumIn() {
			if hasBytes(t.In(i)) {
				return true
			}
		}
	}
	return false
}

// TestNoMethodOfBytes: each method of db's handles that takes or returns values has one of this package in its place,
// with values of the type.
func TestNoMethodOfBytes(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	seen := 0
	for typed, below := range handles {
		for i := range below.NumMethod() {
			m := below.Method(i)
			name, bytes := below.Name()+"."+m.Name, false
			for j := 1; j < m.Type.NumIn(); j++ {
				bytes = bytes || hasBytes(m.Type.In(j))
			}
			for j := range m.Type.NumOut() {
				bytes = bytes || hasBytes(m.Type.Out(j))
			}
			if !bytes || strings.HasPrefix(m.Name, "Visit") {
				continue
			}
			seen++
			same := signature(t, typed, m.Name) == signature(t, below, m.Name)
			switch stored := slices.Contains(storedBytes, name); {
			case same && !stored:
				t.Errorf("%s has bytes for values, and this package no method in its place: %v", name, m.Type)
			case stored && !same:
				t.Errorf("%s is said to deal with the stored bytes, and has values", name)
			case stored && !strings.Contains(string(doc), m.Name):
				t.Errorf("the documentation does not say that %s deals with the stored bytes", name)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d methods were found", seen)
	}
}

// signature is the type of a method without its receiver.
func signature(t *testing.T, receiver reflect.Type, name string) string {
	t.Helper()
	m, ok := receiver.MethodByName(name)
	if !ok {
		t.Fatalf("%v has no method %s", receiver, name)
	}
	_, rest, _ := strings.Cut(fmt.Sprint(m.Type), receiver.String())
	return strings.TrimPrefix(rest, ", ")
}
