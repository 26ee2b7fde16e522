// Package archivetest tests what implements [archive.Store]: a driver for another kind of place calls [Test] in a test of
// its own, against the real service.
package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask/archive"
)

// large is more than any driver sends in one piece.
const large = 20 << 20

// errRead is the error of readers that fail.
var errRead = errors.New("the reader has failed")

// Test fails t where a Store does not do what archive.Store says. Each call of open is of a new and empty one.
func Test(t *testing.T, open func(t *testing.T) archive.Store) {
	for name, test := range map[string]func(*lab){
		"empty": empty, "round trips": roundTrips, "replaced": replaced, "lists": lists, "many objects": manyObjects, "deleted": deleted,
		"readers that fail": readersFail, "canceled": canceled, "whole or not at all": whole, "several at a time": several,
	} {
		t.Run(name, func(t *testing.T) { test(&lab{t, open(t)}) })
	}
}

// lab is a Store under test.
type lab struct {
	*testing.T
	archive.Store
}

// named is a name as archives have them.
func named(generation, n int) string { return fmt.Sprintf("g%08d-%032x/%020d.log", generation, 10, n) }

// contents are n bytes that begin with seed, and that no shift repeats.
func contents(seed byte, n int) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	if n > 0 {
		b[0] = seed
	}
	return b
}

func (l *lab) put(name string, b []byte) {
	l.Helper()
	// The reader is nothing but a reader, as those of the archiver are.
	if err := l.Put(l.Context(), name, struct{ io.Reader }{bytes.NewReader(b)}); err != nil {
		l.Errorf("Put %s: %v", name, err)
	}
}

// get reads an object.
func (l *lab) get(name string) (b []byte, err error) {
	r, err := l.Get(l.Context(), name)
	if err != nil {
		return nil, err
	}
	b, err = io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func (l *lab) wants(name string, want []byte) {
	l.Helper()
	if got, err := l.get(name); err != nil || !bytes.Equal(got, want) {
		l.Errorf("Get %s: %d bytes, %v; want the %d that were put", name, len(got), err, len(want))
	}
}

// missing fails the test if there is such an object.
func (l *lab) missing(name string) {
	l.Helper()
	if got, err := l.get(name); !errors.Is(err, fs.ErrNotExist) {
		l.Errorf("Get %s: %d bytes, %v; want fs.ErrNotExist", name, len(got), err)
	}
	l.listed("", name, false)
}

// listed fails the test if an object is listed, or is not.
func (l *lab) listed(prefix, name string, want bool) {
	l.Helper()
	list, err := l.List(l.Context(), prefix)
	if err != nil {
		l.Error(err)
	}
	if got := slices.ContainsFunc(list, func(o archive.Object) bool { return o.Name == name }); got != want {
		l.Errorf("List %q has %s: %v", prefix, name, got)
	}
}

// empty: a Store in which nothing was put.
func empty(l *lab) {
	for _, prefix := range []string{"", "g", named(1, 1)} {
		if list, err := l.List(l.Context(), prefix); len(list) > 0 || err != nil {
			l.Errorf("List %q: %v, %v", prefix, list, err)
		}
	}
	if err := l.Delete(l.Context(), named(1, 1)); err != nil {
		l.Errorf("Delete of what is not there: %v", err)
	}
	l.missing(named(1, 1))
}

// roundTrips: an object has what was put, whatever its size.
func roundTrips(l *lab) {
	for i, size := range []int{0, 1, 4096, 1<<20 - 1, 1 << 20, 8 << 20, 8<<20 + 1, large} {
		b := contents(byte(i), size)
		l.put(named(1, i), b)
		l.wants(named(1, i), b)
	}
	list, err := l.List(l.Context(), "")
	if err != nil || len(list) != 8 || list[0] != (archive.Object{Name: named(1, 0)}) || list[7] != (archive.Object{Name: named(1, 7), Size: large}) {
		l.Errorf("List: %v, %v", list, err)
	}
}

// replaced: a second Put of an object replaces it, so that one with an unknown outcome can be tried again.
func replaced(l *lab) {
	for i, size := range []int{10, large, 100, large, 0} {
		l.put(named(1, 1), contents(byte(i), size))
		l.wants(named(1, 1), contents(byte(i), size))
	}
	if list, err := l.List(l.Context(), ""); err != nil || len(list) != 1 || list[0].Size != 0 {
		l.Errorf("List: %v, %v", list, err)
	}
}

// lists: the objects with a prefix, which may end anywhere in a name, in order of name.
func lists(l *lab) {
	var names []string
	for _, i := range []int{5, 3, 30, 1, 4, 2} {
		for generation := range 3 {
			names = append(names, named(9+generation, i))
			l.put(named(9+generation, i), contents(1, i))
		}
	}
	slices.Sort(names)
	first := names[0]
	folder, _, _ := strings.Cut(first, "/")
	for _, prefix := range []string{"", "g", "g0000000", "g00000009", "g0000001", folder, folder + "/", folder + "/0000", first, first[:len(first)-1], first + "x", "x"} {
		list, err := l.List(l.Context(), prefix)
		if err != nil {
			l.Fatal(err)
		}
		var got, want []string
		for _, o := range list {
			got = append(got, o.Name)
			if !strings.HasSuffix(o.Name, fmt.Sprintf("%020d.log", o.Size)) {
				l.Errorf("List: %s has size %d", o.Name, o.Size)
			}
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		if !slices.Equal(got, want) {
			l.Errorf("List %q: %q, want %q", prefix, got, want)
		}
	}
}

// manyObjects: a list is whole, also if the service gives it in pages.
func manyObjects(l *lab) {
	const n = 1100
	var work sync.WaitGroup
	for g := range 8 {
		work.Go(func() {
			for i := g; i < n; i += 8 {
				if err := l.Put(l.Context(), named(1, i), strings.NewReader("x")); err != nil {
					l.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	list, err := l.List(l.Context(), "")
	if err != nil || len(list) != n {
		l.Fatalf("List: %d objects, %v; want %d", len(list), err, n)
	}
	for i, o := range list {
		if o != (archive.Object{Name: named(1, i), Size: 1}) {
			l.Fatalf("List: object %d is %v", i, o)
		}
	}
}

// deleted: what was deleted is gone, and nothing else.
func deleted(l *lab) {
	for i := range 3 {
		l.put(named(1, i), contents(1, 100))
	}
	for range 2 {
		if err := l.Delete(l.Context(), named(1, 1)); err != nil {
			l.Error(err)
		}
	}
	l.missing(named(1, 1))
	l.wants(named(1, 0), contents(1, 100))
	l.put(named(1, 1), contents(2, 100))
	l.wants(named(1, 1), contents(2, 100))
	for i := range 3 {
		if err := l.Delete(l.Context(), named(1, i)); err != nil {
			l.Error(err)
		}
	}
	if list, err := l.List(l.Context(), ""); len(list) > 0 || err != nil {
		l.Errorf("List: %v, %v", list, err)
	}
	l.put(named(1, 1), contents(2, 100))
	l.wants(named(1, 1), contents(2, 100))
}

// readersFail: a Put whose reader fails has its error, and has changed nothing.
func readersFail(l *lab) {
	l.put(named(1, 1), contents(1, 100))
	for _, size := range []int{0, 100, 9 << 20, large} {
		for i, name := range []string{named(1, 0), named(1, 1)} {
			err := l.Put(l.Context(), name, io.MultiReader(bytes.NewReader(contents(2, size)), failing{errRead}))
			if !errors.Is(err, errRead) {
				l.Errorf("Put of a reader that fails after %d bytes: %v", size, err)
			}
			if i == 0 {
				l.missing(name)
			} else {
				l.wants(name, contents(1, 100))
			}
		}
	}
	l.put(named(1, 0), contents(3, large))
	l.wants(named(1, 0), contents(3, large))
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// canceled: a Put whose context ends has its error, and has put nothing.
func canceled(l *lab) {
	for _, size := range []int{0, 100, 9 << 20, large} {
		ctx, cancel := context.WithCancel(l.Context())
		err := l.Put(ctx, named(1, 1), io.MultiReader(bytes.NewReader(contents(1, size)), calling{cancel}, bytes.NewReader(contents(2, 3<<20))))
		if !errors.Is(err, context.Canceled) {
			l.Errorf("Put that was canceled after %d bytes: %v", size, err)
		}
		l.missing(named(1, 1))
	}
	l.put(named(1, 1), contents(1, large))
	l.wants(named(1, 1), contents(1, large))
}

// calling is an empty reader that calls a function when it is read.
type calling struct{ do func() }

func (c calling) Read([]byte) (int, error) {
	c.do()
	return 0, io.EOF
}

// whole: while an object is put it is not there, or as it was, and never in part.
func whole(l *lab) {
	for i, was := range [][]byte{nil, contents(1, 1000), contents(2, large)} {
		name := named(1, i)
		look := func() {
			if was == nil {
				l.missing(name)
			} else {
				l.wants(name, was)
			}
		}
		if was != nil {
			l.put(name, was)
		}
		next := contents(3, large)
		err := l.Put(l.Context(), name, io.MultiReader(calling{look}, bytes.NewReader(next[:large-1]), calling{look}, bytes.NewReader(next[large-1:]), calling{look}))
		if err != nil {
			l.Fatal(err)
		}
		l.wants(name, next)
		l.listed(name, name, true)
	}
}

// several: the methods may be called by several goroutines at a time, and readers may stay open, and be closed early.
func several(l *lab) {
	var work sync.WaitGroup
	for g := range 6 {
		work.Go(func() {
			for i := range 4 {
				name, b := named(g%2+1, 100*g+i), contents(byte(g), 100<<(3*i))
				l.put(name, b)
				open, err := l.Get(l.Context(), name)
				if err != nil {
					l.Error(err)
					return
				}
				l.wants(name, b)
				l.listed(named(g%2+1, 100*g)[:43], name, true)
				if err := open.Close(); err != nil {
					l.Error(err)
				}
				if i > 0 {
					if err := l.Delete(l.Context(), name); err != nil {
						l.Error(err)
					}
				}
			}
		})
	}
	work.Wait()
	if list, err := l.List(l.Context(), ""); err != nil || len(list) != 6 {
		l.Errorf("List: %d objects, %v", len(list), err)
	}
}
