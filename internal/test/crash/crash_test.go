package crash_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// record does something to the files a and b of directory d.
func record(t *testing.T, work func(fsys vfs.FS) error) []vfstest.Event {
	t.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	rec := vfstest.NewRecorder(mem)
	if err := work(rec); err != nil {
		t.Fatal(err)
	}
	return rec.Events()
}

func name(base string) string { return filepath.Join("d", base) }

// write writes text at off and syncs the given parts: "data", "name" or both.
func write(fsys vfs.FS, base, text string, off int64, sync string) error {
	f, err := fsys.Open(name(base), vfs.Create)
	if errors.Is(err, fs.ErrExist) {
		f, err = fsys.Open(name(base), vfs.ReadWrite)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), off)
	if err == nil && strings.Contains(sync, "data") {
		err = f.Sync()
	}
	if err == nil && strings.Contains(sync, "name") {
		err = fsys.SyncDir("d")
	}
	return errors.Join(err, f.Close())
}

// states lists what a cut at the end may leave, each state as text.
func states(p crash.Profile, events []vfstest.Event) []string {
	d := crash.NewDisk("d", nil)
	for i, e := range events {
		d.Apply(i, e)
	}
	found := map[string]bool{}
	for keep := range crash.Choices(d.Units(), 0, 0, rand.New(rand.NewPCG(1, 1))) {
		var b strings.Builder
		s := d.Cut(p, keep)
		for _, name := range slices.Sorted(maps.Keys(s)) {
			fmt.Fprintf(&b, "%s=%s ", name, strings.ReplaceAll(string(s[name]), "\x00", "0"))
		}
		found[strings.TrimSpace(b.String())] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func TestWhatACutLeaves(t *testing.T) {
	long := strings.Repeat("x", 510)
	for _, c := range []struct {
		what          string
		work          func(fsys vfs.FS) error
		weak, ordered []string // nil: as weak
	}{
		{"bytes and name synced", func(fsys vfs.FS) error { return write(fsys, "a", "one", 0, "data name") }, []string{"a=one"}, nil},
		{"name not synced", func(fsys vfs.FS) error { return write(fsys, "a", "one", 0, "data") }, []string{"", "a=one"}, nil},
		{"bytes not synced", func(fsys vfs.FS) error { return write(fsys, "a", "one", 0, "name") }, []string{"a=", "a=000", "a=one"}, nil},
		{"two sectors in any order", func(fsys vfs.FS) error {
			if err := write(fsys, "a", long, 0, "data name"); err != nil {
				return err
			}
			return write(fsys, "a", "1234", 510, "")
		}, []string{"a=" + long, "a=" + long + "0000", "a=" + long + "0034", "a=" + long + "12", "a=" + long + "1200", "a=" + long + "1234"}, nil},
		{"renamed before it is synced", func(fsys vfs.FS) error {
			return errors.Join(write(fsys, "a", "old", 0, "data name"), write(fsys, "b", "new", 0, ""), fsys.Rename(name("b"), name("a")))
		}, []string{"a=", "a=000", "a=new", "a=old", "a=old b=", "a=old b=000", "a=old b=new"}, nil},
		{"removed", func(fsys vfs.FS) error {
			return errors.Join(write(fsys, "a", "1", 0, "data name"), fsys.Remove(name("a")))
		}, []string{"", "a=1"}, nil},
		{"two names", func(fsys vfs.FS) error {
			return errors.Join(write(fsys, "a", "1", 0, "data"), write(fsys, "b", "2", 0, "data"))
		}, []string{"", "a=1", "a=1 b=2", "b=2"}, []string{"", "a=1", "a=1 b=2"}},
	} {
		events := record(t, c.work)
		if c.ordered == nil {
			c.ordered = c.weak
		}
		for p, want := range map[crash.Profile][]string{crash.Weak: c.weak, crash.Ordered: c.ordered} {
			got := states(p, events)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %v: %q, want %q", c.what, p, got, want)
			}
		}
	}
}

// TestDirectories is the life of a copy: a neighbouring directory, a link in it, a new name for it.
func TestDirectories(t *testing.T) {
	prepare := func(fsys vfs.FS) error {
		return errors.Join(write(fsys, "a", "one", 0, "data name"), fsys.MkdirAll("new"), fsys.Link(name("a"), "new/b"))
	}
	publish := func(fsys vfs.FS) error {
		return errors.Join(prepare(fsys), fsys.SyncDir("new"), fsys.RenameDir("new", "copy"))
	}
	for _, c := range []struct {
		what string
		work func(fsys vfs.FS) error
		want []string
	}{
		{"nothing synced", prepare, []string{"../new/= a=one", "../new/b=one a=one", "a=one"}},
		{"renamed", publish, []string{"../copy/b=one a=one", "../new/b=one a=one", "a=one"}},
		{"the parent synced", func(fsys vfs.FS) error { return errors.Join(publish(fsys), fsys.SyncDir(".")) }, []string{"../copy/b=one a=one"}},
		{"a link is no copy", func(fsys vfs.FS) error {
			return errors.Join(publish(fsys), fsys.SyncDir("."), write(fsys, "a", "two", 0, "data"), fsys.Remove(name("a")), fsys.SyncDir("d"))
		}, []string{"../copy/b=two"}},
		{"taken away", func(fsys vfs.FS) error {
			return errors.Join(publish(fsys), fsys.SyncDir("."), fsys.Remove("copy/b"), fsys.RemoveDir("copy"))
		}, []string{"../copy/= a=one", "../copy/b=one a=one", "a=one"}},
	} {
		if got := states(crash.Weak, record(t, c.work)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	mem, err := crash.State{"a": []byte("one"), "../copy/b": []byte("two"), "../empty/": nil}.Mem("d")
	if err != nil {
		t.Fatal(err)
	}
	got, err := crash.ReadState(mem, "copy")
	if err != nil || string(got["b"]) != "two" {
		t.Errorf("the directory beside holds %q, %v", got, err)
	}
	if names, err := mem.List("empty"); err != nil || len(names) > 0 {
		t.Errorf("the empty directory holds %q, %v", names, err)
	}
}

func TestChoices(t *testing.T) {
	count := func(n, fresh, random int) int {
		seen := map[string]bool{}
		for c := range crash.Choices(n, fresh, random, rand.New(rand.NewPCG(1, 2))) {
			back, ok := crash.ParseChoice(c.String())
			if !ok || back.String() != c.String() {
				t.Fatalf("%v does not come back", c)
			}
			seen[c.String()] = true
		}
		return len(seen)
	}
	for _, c := range []struct{ n, fresh, random, want int }{
		{0, 0, 0, 1}, {3, 0, 9, 8}, {3, 1, 9, 4}, {12, 0, 0, 4096}, {12, 2, 0, 4096 - 1024},
		{13, 0, 0, 13 + 12 + 12 + 1}, // the first 0..12, each alone, all but each, all; the first one alone and the first 12 of 13 count once
	} {
		if got := count(c.n, c.fresh, c.random); got != c.want {
			t.Errorf("%d units, %d fresh: %d choices, want %d", c.n, c.fresh, got, c.want)
		}
	}
	if got := count(40, 0, 500); got < 500 {
		t.Errorf("%d choices among 40 units with 500 random ones", got)
	}
}
