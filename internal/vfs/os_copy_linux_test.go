package vfs_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
)

// However long a file becomes, no more of it is mapped than the window: that is all that a stray pointer can change,
// and all that counts as memory of the process.
func TestTheWindowMoves(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	const step = 64 << 10
	f, c := copier(t, vfs.OS(), name, step)
	for at := int64(0); at < 100*step; at += step {
		_, err := f.WriteAt(make([]byte, step), at)
		must(t, err)
		must(t, c.Window(at, step))
		must(t, c.CopyAt([]byte("some text"), at+1000))
		if n := mapped(t, name); n > step {
			t.Fatalf("%d bytes are mapped at %d", n, at)
		}
	}
	must(t, f.Close())
	if n := mapped(t, name); n != 0 {
		t.Errorf("%d bytes are mapped after Close", n)
	}
}

// mapped is how many bytes of a file this process has mapped.
func mapped(t *testing.T, name string) (total int) {
	t.Helper()
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	defer maps.Close()
	for s := bufio.NewScanner(maps); s.Scan(); {
		var from, to int
		if strings.HasSuffix(s.Text(), name) {
			_, err := fmt.Sscanf(s.Text(), "%x-%x", &from, &to)
			must(t, err)
			total += to - from
		}
	}
	return total
}
