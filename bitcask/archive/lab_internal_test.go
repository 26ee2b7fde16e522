package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// lab is a store and its archive, both in memory.
type lab struct {
	t      *testing.T
	mem    *vfs.Mem
	fs     vfs.FS // of the store; nil: mem
	faulty faulty // what the archiver writes to
	to     *Directory
	s      *bitcask.Store
	a      *Archiver
	keep   Options // Keep and KeepBytes
	clock  atomic.Int64
	state  map[string]string
	states map[uint64]map[string]string // by sequence
	copies int
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, mem: vfs.NewMem(), state: map[string]string{}, states: map[uint64]map[string]string{}}
	l.clock.Store(1_700_000_000_000)
	var err error
	l.to, err = openDirectory(l.mem, "archive")
	must(t, err)
	l.faulty.Store = l.to
	l.open("store")
	t.Cleanup(func() { l.close() })
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lab) options() *bitcask.Options {
	o := seam.Options{FS: l.mem}
	if l.fs != nil {
		o.FS, o.NoMapping = l.fs, true
	}
	return seam.With(&bitcask.Options{SegmentSize: 2 << 10, SyncEvery: 20 * time.Millisecond}, o)
}

func (l *lab) open(dir string) {
	l.t.Helper()
	var err error
	l.s, err = bitcask.Open(dir, l.options())
	must(l.t, err)
	o := l.keep
	o.To, o.Every, o.now = &l.faulty, 10*time.Millisecond, l.clock.Load
	if o.compactFrom == 0 {
		o.compactFrom = 12
	}
	if o.waits == nil {
		o.waits = func(int) time.Duration { return time.Millisecond }
	}
	l.a = Start(l.s, o)
}

func (l *lab) close() {
	if l.a != nil {
		must(l.t, l.s.Close())
		must(l.t, l.a.Close())
	}
	l.a = nil
}

func (l *lab) put(key, value string) {
	l.t.Helper()
	must(l.t, l.s.Put(key, []byte(value)))
	l.state[key] = value
	l.states[l.s.Sequence()] = maps.Clone(l.state)
}

// fill makes so many commits.
func (l *lab) fill(n int) {
	l.t.Helper()
	for i := range n {
		l.put(fmt.Sprint("key", i%7), fmt.Sprint("value ", l.s.Sequence(), " of some length"))
	}
}

// until waits for something that must come true.
func (l *lab) until(what string, is func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: %+v", what, l.a.Status())
		}
	}
}

// archived waits until everything is in the archive, with a base.
func (l *lab) archived() {
	l.t.Helper()
	l.until("archived", func() bool { st := l.a.Status(); return st.Behind == 0 && st.Bases > 0 && st.Err == "" })
}

// merge removes what is dead.
func (l *lab) merge() {
	l.t.Helper()
	var ids []uint32
	for _, info := range l.s.Segments() {
		if info.Sealed {
			ids = append(ids, info.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	_, err := l.s.Rewrite(l.t.Context(), ids, bitcask.RewriteOptions{})
	must(l.t, err)
}

// restore makes a store of a moment, checks it, and returns what it has.
func (l *lab) restore(t Target) (state map[string]string, made Restored, err error) {
	l.t.Helper()
	l.copies++
	dir := fmt.Sprint("copy", l.copies)
	made, err = restore(l.t.Context(), l.mem, l.to, dir, t)
	if err != nil {
		if names, _ := l.mem.List(dir); len(names) > 0 {
			l.t.Errorf("left after %v: %q", err, names)
		}
		return nil, made, err
	}
	names, err := l.mem.List(dir)
	must(l.t, err)
	if n := len(slices.DeleteFunc(names, func(name string) bool { return filepath.Ext(name) != bitcask.DataSuffix })); n != made.Segments {
		l.t.Errorf("restored to %v: %d segments, want %d", t, n, made.Segments)
	}
	s, err := bitcask.Open(dir, l.options())
	if err != nil {
		l.t.Fatalf("restored to %v: %v", t, err)
	}
	_, err = s.Check(l.t.Context(), func(f bitcask.Finding) { l.t.Errorf("restored to %v: %v", t, f) })
	must(l.t, err)
	if s.Sequence() != made.Sequence {
		l.t.Errorf("restored to %v: the store is at %d, not at %d", t, s.Sequence(), made.Sequence)
	}
	state = map[string]string{}
	for i := range 7 {
		key := fmt.Sprint("key", i)
		value, err := s.Get(key)
		if err == nil {
			state[key] = string(value)
		} else if !errors.Is(err, bitcask.ErrNotFound) {
			l.t.Errorf("restored to %v: %v", t, err)
		}
	}
	must(l.t, s.Close())
	return state, made, nil
}

// wants compares a moment with what the store was then.
func (l *lab) wants(t Target, sequence uint64) {
	l.t.Helper()
	state, made, err := l.restore(t)
	if err != nil {
		l.t.Errorf("%v: %v", t, err)
		return
	}
	if made.Sequence != sequence || !maps.Equal(state, l.states[sequence]) {
		l.t.Errorf("%v: restored sequence %d, %v; want %d, %v", t, made.Sequence, state, sequence, l.states[sequence])
	}
}

// objects are the names of the files in the archive, of one kind.
func (l *lab) objects(k kind) (names []string) {
	l.t.Helper()
	list, err := l.to.List(l.t.Context(), "")
	must(l.t, err)
	for _, o := range list {
		if at, ok := parseName(o.Name); ok && at.kind == k {
			names = append(names, o.Name)
		}
	}
	return names
}

// edit changes the bytes of an object; nil removes it.
func (l *lab) edit(name string, edit func(b []byte) []byte) {
	l.t.Helper()
	path := filepath.Join("archive", filepath.FromSlash(name))
	f, err := l.mem.Open(path, vfs.ReadWrite)
	must(l.t, err)
	size, err := f.Size()
	must(l.t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(l.t, err)
	if b = edit(slices.Clone(b)); b == nil {
		must(l.t, errors.Join(f.Close(), l.mem.Remove(path)))
		return
	}
	must(l.t, f.Truncate(0))
	_, err = f.WriteAt(b, 0)
	must(l.t, errors.Join(err, f.Close()))
}

// unrestorable is the error, which must be one of those.
func unrestorable(t *testing.T, err error) *UnrestorableError {
	t.Helper()
	e, ok := errors.AsType[*UnrestorableError](err)
	if !ok {
		t.Fatalf("not an UnrestorableError: %v", err)
	}
	return e
}

var errDead = errors.New("the archive is dead")

// faulty is a Store that refuses to put what it is told to.
type faulty struct {
	Store
	refuses atomic.Pointer[func(o id) bool]
}

func (f *faulty) refuse(which func(o id) bool) { f.refuses.Store(&which) }

func (f *faulty) Put(ctx context.Context, name string, r io.Reader) error {
	if o, ok := parseName(name); !ok {
		return fmt.Errorf("put of %q", name)
	} else if refuse := f.refuses.Load(); refuse != nil && (*refuse)(o) {
		return errDead
	}
	return f.Store.Put(ctx, name, r)
}
