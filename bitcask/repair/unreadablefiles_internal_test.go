package repair

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
)

// A badFS has one file with a part that cannot be read.
type badFS struct {
	vfs.FS
	name     string
	from, to int64
	fails    int // how often it was asked for that file
}

func (v *badFS) Open(name string, mode vfs.Mode) (vfs.File, error) {
	f, err := v.FS.Open(name, mode)
	if err == nil && filepath.Base(name) == v.name {
		v.fails++
		return &badFile{f, v.from, v.to}, nil
	}
	return f, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func numbered(n int) (key string, value []byte) {
	return fmt.Sprintf("key%04d", n), bytes.Repeat([]byte{byte(n)}, 100)
}

// put writes the keys of some numbers.
func put(t *testing.T, s *bitcask.Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		key, value := numbered(i)
		must(t, s.Put(key, value))
	}
}

// salvaged repairs d and counts the keys that are there with the right value.
func salvaged(t *testing.T, fsys vfs.FS, n int) (result Result, there int) {
	t.Helper()
	result, err := Salvage(t.Context(), "d", "new", seam.With(&bitcask.Options{}, seam.Options{FS: fsys}))
	must(t, err)
	s, err := bitcask.Open("new", seam.With(&bitcask.Options{}, seam.Options{FS: fsys}))
	must(t, err)
	for i := range n {
		key, want := numbered(i)
		if got, err := s.Get(key); err == nil && bytes.Equal(got, want) {
			there++
		} else if err == nil {
			t.Errorf("%s is %x", key, got)
		}
	}
	must(t, s.Close())
	return result, there
}

// lostOnly fails the test unless something is lost, all of it of one file, and because it cannot be read.
func lostOnly(t *testing.T, result Result, file string) {
	t.Helper()
	for _, l := range result.Lost {
		if l.File != file || !strings.Contains(l.Reason, "cannot be read") {
			t.Errorf("%+v", l)
		}
	}
	if len(result.Lost) == 0 {
		t.Errorf("nothing is lost of %s", file)
	}
}

// Of a segment that the manifest has lost, all is salvaged but what cannot be read.
func TestUnreadableUnlisted(t *testing.T) {
	const n = 400
	mem := vfs.NewMem()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 16 << 10}, seam.Options{FS: mem, NoIndex: true, NoHints: true}))
	must(t, err)
	put(t, s, 0, 30)
	early, err := crash.ReadState(mem, "d")
	must(t, err)
	put(t, s, 30, n)
	must(t, s.Close())
	state, err := crash.ReadState(mem, "d")
	must(t, err)
	state["MANIFEST"] = early["MANIFEST"]
	const file = "000000004.data"
	size := int64(len(state[file]))
	if _, listed := early[file]; listed || size < 8000 {
		t.Fatalf("%s has %d bytes, listed %v", file, size, listed)
	}
	whole, err := state.Mem("d")
	must(t, err)
	if result, there := salvaged(t, whole, n); there != n || len(result.Lost) > 0 {
		t.Fatalf("%d of %d keys, %+v", there, n, result)
	}
	for where, part := range map[string][2]int64{"the header": {0, 1}, "the first frames": {60, 5000}, "the middle": {5000, 5001}, "the end": {size - 20, size}, "all": {0, size}} {
		mem, err := state.Mem("d")
		must(t, err)
		bad := &badFS{FS: mem, name: file, from: part[0], to: part[1]}
		result, there := salvaged(t, bad, n)
		if bad.fails == 0 {
			t.Errorf("%s: it was not opened", where)
		}
		if where == "the header" { // which nothing needs: each frame says where it belongs
			if there != n || len(result.Lost) > 0 {
				t.Errorf("%s: %d of %d keys, %+v", where, there, n, result.Lost)
			}
			continue
		}
		if lostOnly(t, result, file); there < n-100 || there == n {
			t.Errorf("%s: %d of %d keys", where, there, n)
		}
	}
}

// Of a file of what an opening has truncated, all is salvaged but what cannot be read.
func TestUnreadableRemains(t *testing.T) {
	const n = 400
	options := func(fsys vfs.FS) *bitcask.Options {
		return seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fsys, NoIndex: true, NoHints: true})
	}
	mem := vfs.NewMem()
	s, err := bitcask.Open("d", options(mem))
	must(t, err)
	put(t, s, 0, 100)
	before, err := crash.ReadState(mem, "d")
	must(t, err)
	put(t, s, 100, n)
	state, err := crash.ReadState(mem, "d")
	must(t, err)
	must(t, s.Close())
	at := len(before["000000001.data"])/512*512 + 1024 // a sector that a power cut has lost
	clear(state["000000001.data"][at : at+512])
	mem, err = state.Mem("d")
	must(t, err)
	s, err = bitcask.Open("d", options(mem))
	must(t, err)
	must(t, s.Put("after", nil))
	cut := s.Recovery().Truncated
	must(t, s.Close())
	if len(cut) != 1 || cut[0].Kept == "" || cut[0].Bytes < 16<<10 {
		t.Fatalf("%+v", cut)
	}
	file := filepath.Base(cut[0].Kept)
	_, all := salvaged(t, mem.Clone(), n)
	for where, part := range map[string][2]int64{"the header": {0, 1}, "the middle": {9000, 9001}, "the end": {cut[0].Bytes, cut[0].Bytes + 1}, "all": {0, 1 << 40}} {
		bad := &badFS{FS: mem.Clone(), name: file, from: part[0], to: part[1]}
		result, there := salvaged(t, bad, n)
		if bad.fails == 0 {
			t.Errorf("%s: it was not opened", where)
		}
		unread := 0
		for _, l := range result.Lost {
			if l.File != file {
				t.Errorf("%s: %+v", where, l)
			}
			if strings.Contains(l.Reason, "cannot be read") {
				unread++
			}
		}
		if unread == 0 {
			t.Errorf("%s: what cannot be read is not named: %+v", where, result.Lost)
		}
		if middle := where == "the middle" || where == "the end"; middle && (there < all-60 || there >= all) || !middle && there < 100 {
			t.Errorf("%s: %d of %d keys", where, there, all)
		}
	}
}
