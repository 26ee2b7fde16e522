package vfs_test

import (
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

func TestMemTellsWhatIsOpen(t *testing.T) {
	m := vfs.NewMem()
	a, b := vfstest.Create(t, m, "a", ""), vfstest.Create(t, m, "b", "")
	again, err := m.Open("a", vfs.ReadOnly)
	must(t, err)
	lock, err := m.Lock("LOCK")
	must(t, err)
	if got := m.Leaks(); !slices.Equal(got, []string{"LOCK", "a", "a", "b"}) {
		t.Errorf("open are %q", got)
	}
	must(t, m.Remove("b")) // A removed file still is an open handle.
	for _, c := range []interface{ Close() error }{a, again, lock, b} {
		must(t, c.Close())
	}
	if got := m.Leaks(); len(got) != 0 {
		t.Errorf("after closing all, open are %q", got)
	}
}

func TestMemCloneIsAnotherProcess(t *testing.T) {
	m := vfs.NewMem()
	f := vfstest.Create(t, m, "a", "before")
	must(t, m.Link("a", "b"))
	lock, err := m.Lock("LOCK")
	must(t, err)
	defer lock.Close()

	c := m.Clone()
	if got := c.Leaks(); len(got) != 0 {
		t.Errorf("the copy starts with %q open", got)
	}
	other, err := c.Lock("LOCK")
	must(t, err)
	must(t, other.Close())
	_, err = f.WriteAt([]byte("after!"), 0)
	must(t, err)
	g, err := c.Open("a", vfs.ReadWrite)
	must(t, err)
	defer g.Close()
	if got := vfstest.Text(t, g); got != "before" {
		t.Errorf("a write to the original changed the copy to %q", got)
	}
	_, err = g.WriteAt([]byte("BE"), 0)
	must(t, err)
	if got := vfstest.Content(t, c, "b"); got != "BEfore" {
		t.Errorf("links of the copy do not share bytes: %q", got)
	}
	if got := vfstest.Content(t, m, "a"); got != "after!" {
		t.Errorf("a write to the copy changed the original to %q", got)
	}
}
