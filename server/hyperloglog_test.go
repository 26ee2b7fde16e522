package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// newSketch makes a session, on a store in mem, that has added two elements to a sketch.
func newSketch(t *testing.T, mem *vfs.Mem) *server.Session {
	t.Helper()
	store, err := db.Open("d", seam.With(&db.Options{Reserve: 64 << 10, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := newSession(t, store, nil)
	if got := ask(s, "PFADD k a b\r\n"); got != ":1\r\n" {
		t.Fatal(got)
	}
	return s
}

// TestPfcountKeepsTheCount: the count is in the string after PFCOUNT, alone, in a pipeline, and within MULTI next to a
// write.
func TestPfcountKeepsTheCount(t *testing.T) {
	const fresh = "$8\r\n\x02\x00\x00\x00\x00\x00\x00\x00\r\n"
	for name, in := range map[string]string{
		"alone": "PFCOUNT k\r\n", "pipeline": "PFCOUNT k\r\nPFCOUNT k\r\n", "of reads": "GET none\r\nPFCOUNT k\r\n",
		"transaction": "MULTI\r\nPFCOUNT k\r\nSET other x\r\nEXEC\r\n",
	} {
		s := newSketch(t, vfs.NewMem())
		if got := ask(s, "GETRANGE k 15 15\r\n"); got != "$1\r\n\x80\r\n" {
			t.Errorf("%s: before: %q", name, got)
		}
		if got := ask(s, in); !strings.Contains(got, ":2\r\n") {
			t.Errorf("%s: %q", name, got)
		}
		if got := ask(s, "GETRANGE k 8 15\r\n"); got != fresh {
			t.Errorf("%s: the string has %q", name, got)
		}
	}
}

// TestPfcountOnAFullDisk: PFCOUNT reads where it cannot write, alone and in a pipeline of reads.
func TestPfcountOnAFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	mem.SetLimit(512<<10, 4096)
	s := newSketch(t, mem)
	for i := 0; ; i++ {
		if got := ask(s, fmt.Sprintf("SET filler%d %s\r\n", i, strings.Repeat("v", 400>>min(i/2000, 9)))); got != "+OK\r\n" {
			if i > 20000 { // what is empty has no room either
				break
			}
		}
	}
	for in, want := range map[string]string{
		"PFCOUNT k\r\n":                      ":2\r\n",
		"PFCOUNT k\r\nGET none\r\n":          ":2\r\n$-1\r\n",
		"GET none\r\nPFCOUNT k\r\nGET x\r\n": "$-1\r\n:2\r\n$-1\r\n",
	} {
		if got := ask(s, in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := ask(s, "GETRANGE k 15 15\r\n"); got != "$1\r\n\x80\r\n" {
		t.Errorf("the count was written, so the disk was not full: %q", got)
	}
}
