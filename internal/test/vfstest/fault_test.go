package vfstest_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// publish does each kind of operation on which a store's safety rests, and stops at the first error. It closes what it
// has opened.
func publish(fsys vfs.FS) (err error) {
	keep := func(e error) bool {
		err = errors.Join(err, e)
		return err == nil
	}
	if !keep(fsys.MkdirAll("dir")) {
		return err
	}
	lock, e := fsys.Lock("dir/LOCK")
	if !keep(e) {
		return err
	}
	defer func() { keep(lock.Close()) }()
	f, e := fsys.Open("dir/a.tmp", vfs.Create)
	if !keep(e) {
		return err
	}
	defer func() { keep(f.Close()) }()
	p := []byte("hello")
	_, e = f.WriteAt(p, 0)
	if !keep(e) {
		return err
	}
	_, e = f.ReadAt(p, 0)
	_ = keep(e) && keep(f.Truncate(4)) && keep(f.Sync())
	if err != nil {
		return err
	}
	_, e = f.Size()
	_ = keep(e) && keep(fsys.Rename("dir/a.tmp", "dir/a")) && keep(fsys.Link("dir/a", "dir/b")) && keep(fsys.Remove("dir/b")) &&
		keep(fsys.SyncDir("dir"))
	if err != nil {
		return err
	}
	_, e = fsys.List("dir")
	if !keep(e) {
		return err
	}
	g, e := fsys.Open("dir/a", vfs.ReadOnly)
	if keep(e) {
		keep(g.Close())
	}
	return err
}

// TestEveryOperationCanFail is the sweep that larger tests make: run once to count, then fail each operation in turn.
func TestEveryOperationCanFail(t *testing.T) {
	healthy := vfstest.NewFault(vfs.NewMem())
	must(t, publish(healthy))
	if healthy.Ops() < 17 || healthy.Failed() != 0 {
		t.Fatalf("%d operations, %d failed", healthy.Ops(), healthy.Failed())
	}
	for n := range healthy.Ops() {
		for _, rule := range []vfstest.Rule{
			{Skip: n, Err: syscall.EIO}, {Skip: n, Err: syscall.ENOSPC, Sticky: true}, {Skip: n, Err: syscall.EMFILE, Applied: true},
		} {
			mem := vfs.NewMem()
			f := vfstest.NewFault(mem, rule)
			err := publish(f)
			wantErr(t, err, rule.Err)
			if leaks := mem.Leaks(); len(leaks) > 0 {
				t.Errorf("operation %d failing (%+v) leaves %q open", n, rule, leaks)
			}
			if f.Failed() == 0 || !rule.Sticky && f.Failed() != 1 {
				t.Errorf("operation %d: %d failures, %+v", n, f.Failed(), rule)
			}
		}
	}
}

func TestRulesChooseOperations(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	f := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync, vfstest.OpRename}, Path: "*.data", Skip: 1, Err: syscall.EIO})
	a, b := vfstest.Create(t, f, "d/1.data", "x"), vfstest.Create(t, f, "d/1.hint", "x")
	must(t, b.Sync())
	must(t, a.Sync()) // The first that matches.
	must(t, b.Sync())
	err := f.Rename("d/1.data", "d/2.data")
	wantErr(t, err, syscall.EIO)
	if got := err.Error(); got != "rename d/1.data d/2.data: input/output error" {
		t.Errorf("error says %q", got)
	}
	if names, _ := mem.List("d"); !slices.Equal(names, []string{"1.data", "1.hint"}) {
		t.Errorf("a failed rename leaves %q", names)
	}
	must(t, a.Sync())
	must(t, f.Rename("d/1.hint", "d/3.data"))

	f.Inject(vfstest.Rule{Path: "9.data", Err: syscall.EIO, Sticky: true})
	wantErr(t, f.Rename("d/3.data", "d/9.data"), syscall.EIO) // The new name counts as well.
	_, err = f.Open("d/9.data", vfs.Create)
	wantErr(t, err, syscall.EIO)
	f.Heal()
	must(t, f.Rename("d/3.data", "d/9.data"))
}

func TestPartialTransfers(t *testing.T) {
	mem := vfs.NewMem()
	f := vfstest.NewFault(mem)
	a := vfstest.Create(t, f, "a", "")
	for _, c := range []struct {
		name string
		rule vfstest.Rule
		n    int
		left string
	}{
		{"nothing", vfstest.Rule{}, 0, ""},
		{"a part", vfstest.Rule{Partial: 2}, 2, "he"},
		{"more than asked", vfstest.Rule{Partial: 99}, 5, "hello"},
		{"all", vfstest.Rule{Applied: true}, 5, "hello"},
	} {
		must(t, a.Truncate(0))
		c.rule.Ops, c.rule.Err = []vfstest.Op{vfstest.OpWrite}, io.ErrShortWrite
		f.Inject(c.rule)
		n, err := a.WriteAt([]byte("hello"), 0)
		wantErr(t, err, io.ErrShortWrite)
		if got := vfstest.Content(t, mem, "a"); got != c.left || n != c.n {
			t.Errorf("%s: wrote %d bytes and left %q, want %d and %q", c.name, n, got, c.n, c.left)
		}
	}
	f.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRead}, Partial: 3, Err: syscall.EIO})
	p := make([]byte, 9)
	n, err := a.ReadAt(p, 0)
	wantErr(t, err, syscall.EIO)
	if n != 3 || string(p[:4]) != "hel\x00" {
		t.Errorf("a failing read gives %d bytes, %q", n, p)
	}
}

func TestFailingCloseCloses(t *testing.T) {
	mem := vfs.NewMem()
	f := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpClose, vfstest.OpUnlock}, Sticky: true, Err: syscall.EIO})
	a := vfstest.Create(t, f, "a", "")
	lock, err := f.Lock("LOCK")
	must(t, err)
	wantErr(t, a.Close(), syscall.EIO)
	wantErr(t, lock.Close(), syscall.EIO)
	if leaks := mem.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %q", leaks)
	}
	wantErr(t, a.Close(), fs.ErrClosed)
}

func TestDoSeesAndDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen vfstest.Event
		f := vfstest.NewFault(vfs.NewMem(), vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Do: func(e vfstest.Event) {
			seen = e
			time.Sleep(time.Minute)
		}})
		before := time.Now()
		vfstest.Create(t, f, "a", "hello") // Would deadlock, had the Fault a lock held during Do.
		if got := time.Since(before); got != time.Minute {
			t.Errorf("the write took %v", got)
		}
		if got := seen.String(); got != "write a 0+5" || f.Failed() != 0 {
			t.Errorf("the rule saw %q, %d failures", got, f.Failed())
		}
	})
}

func TestWrappersKeepMapping(t *testing.T) {
	dir := t.TempDir()
	fault := vfstest.NewFault(vfs.OS())
	rec := vfstest.NewRecorder(fault)
	f := vfstest.Create(t, rec, filepath.Join(dir, "a"), "hello")
	m, ok := f.(vfs.Mapper)
	if !ok {
		t.Skip("no mappings on this system")
	}
	for _, rule := range []vfstest.Rule{{Err: syscall.ENOMEM}, {Err: syscall.ENOMEM, Applied: true}} {
		fault.Inject(rule)
		if mapping, err := m.Map(5); !errors.Is(err, syscall.ENOMEM) || mapping != nil {
			t.Errorf("a failing Map gives %v and %v", mapping, err)
		}
	}
	mapping, err := m.Map(5)
	must(t, err)
	if string(mapping) != "hello" {
		t.Errorf("mapped %q", mapping)
	}
	must(t, m.Unmap(mapping))
	if _, ok := vfstest.Create(t, vfstest.NewRecorder(vfstest.NewFault(vfs.NewMem())), "a", "").(vfs.Mapper); ok {
		t.Error("a wrapper makes a Mapper of a file that is none")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}
