package leak_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/leak"
	"github.com/stavedb/stave/internal/vfs"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m) }

func TestOpenFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what is open")
	}
	dir := t.TempDir()
	want := func(when string, want ...string) {
		t.Helper()
		got, err := leak.OpenFiles(dir)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", when, got, err, want)
		}
	}
	name := filepath.Join(dir, "000000001.data")
	f, err := vfs.OS().Open(name, vfs.Create)
	must(t, err)
	other, err := os.Create(filepath.Join(dir, "other"))
	must(t, err)
	want("open", name)
	mapper := f.(vfs.Mapper)
	mapping, err := mapper.Map(1)
	must(t, err)
	want("mapped", name, "mapping of "+name)
	must(t, f.Close())
	must(t, os.Remove(name))
	want("removed", "mapping of "+name+" (deleted)")
	must(t, mapper.Unmap(mapping))
	want("unmapped")
	must(t, other.Close())

	held, err := vfs.Hold(vfs.OS(), dir)
	must(t, err)
	want("held, of no store")
	lock, err := held.Lock(filepath.Join(dir, "LOCK"))
	must(t, err)
	want("held", dir, dir, filepath.Join(dir, "LOCK"))
	must(t, lock.Close())
	must(t, held.Close())
	want("released")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
