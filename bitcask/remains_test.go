package bitcask_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// hole makes the files of a store after a power cut that has lost one sector of a log of so many keys, long before its
// end.
func hole(t *testing.T, mem *vfs.Mem, file string, from int) *vfs.Mem {
	t.Helper()
	state, err := crash.ReadState(mem, "d")
	if err != nil {
		t.Fatal(err)
	}
	at := (from/512 + 2) * 512 // what comes first is not lost
	if log := state[file]; len(log) < at+1024 {
		t.Fatalf("a log of %d bytes has no sector to lose after %d", len(log), from)
	}
	state[file] = slices.Clone(state[file])
	clear(state[file][at : at+512])
	cut, err := state.Mem("d")
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

// Truncated bytes are kept once, and named; a repair puts them back at their time: newer than the log then, older than
// what it has had since, though that has the same sequence numbers.
func TestRemainsAreKept(t *testing.T) {
	const file = "000000001.data"
	options := func(mem *vfs.Mem) *bitcask.Options {
		return seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: mem, NoIndex: true, NoHints: true})
	}
	x := &tornEnd{T: t, holds: map[string]string{}}
	mem := vfs.NewMem()
	sitting := func(n int, write func(s *bitcask.Store, put func(key, value string))) {
		s, err := bitcask.Open("d", options(mem))
		x.must(err)
		r := s.Recovery()
		if len(r.Remains)+len(r.Truncated) != n || n > 0 && (len(r.Truncated) != 1 || r.Truncated[0].Kept == "") {
			t.Fatalf("opening %d: %+v", n, r)
		}
		state, err := crash.ReadState(mem, "d")
		x.must(err)
		write(s, func(key, value string) {
			x.must(s.Put(key, []byte(value)))
			x.holds[key] = value
		})
		mem = hole(t, mem, file, len(state[file]))
		x.must(s.Close())
	}
	sitting(0, func(s *bitcask.Store, put func(key, value string)) {
		for i := range 100 {
			put(fmt.Sprintf("first%d", i), strings.Repeat("1", 40))
		}
		put("overwritten", "before the first cut")
		put("deleted", "before the first cut")
	})
	sitting(1, func(s *bitcask.Store, put func(key, value string)) {
		put("overwritten", "after the first cut")
		put("deleted", "after the first cut")
		_, err := s.Delete("deleted")
		x.must(err)
		delete(x.holds, "deleted")
		for i := range 100 {
			put(fmt.Sprintf("second%d", i), strings.Repeat("2", 40))
		}
		put("again", "before the second cut")
	})
	s, err := bitcask.Open("d", options(mem))
	x.must(err)
	x.must(s.Put("again", []byte("after the second cut")))
	x.holds["again"] = "after the second cut"
	r := s.Recovery()
	if len(r.Remains) != 1 || len(r.Truncated) != 1 || r.TornBytes != r.Truncated[0].Bytes {
		t.Errorf("%+v", r)
	}
	x.must(s.Close())
	s, err = bitcask.Open("d", options(mem))
	x.must(err)
	if r := s.Recovery(); len(r.Truncated) != 0 || len(r.Remains) != 2 || len(r.Unknown) != 0 {
		t.Errorf("opened once more: %+v", r)
	}
	if n := s.Len(0); n >= len(x.holds) {
		t.Fatalf("%d keys, want less than %d", n, len(x.holds))
	}
	x.must(s.Close())

	// Of each cut the sector's records are lost, whatever their keys; the rest is back.
	result, err := repair.Salvage(context.Background(), "d", "out", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	x.must(err)
	if result.Remains != 2 || result.Returned == 0 || len(result.Lost) == 0 {
		t.Errorf("%+v", result)
	}
	s, err = bitcask.Open("out", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	x.must(err)
	missing := 0
	for key, want := range x.holds {
		if got, err := s.Get(key); err != nil {
			missing++
		} else if string(got) != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if missing == 0 || missing > 20 {
		t.Errorf("%d keys are missing", missing)
	}
	for _, key := range []string{"overwritten", "again"} {
		if got, err := s.Get(key); err != nil || string(got) != x.holds[key] {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
	if got, err := s.Get("deleted"); err == nil {
		t.Errorf("what was deleted after the cut is back: %q", got)
	}
	x.must(s.Close())
}

// The bytes that are kept are those that were truncated. Zeros are not kept, and the same end of a log is kept once,
// however often an opening is killed between keeping and truncating it.
func TestRemainsAreTheBytes(t *testing.T) {
	x := killed(t, bitcask.SyncNone, 20, nil)
	const file = "000000001.data"
	log := frames(x.state[file])
	x.state[file] = append(slices.Clone(log), make([]byte, 100)...)
	mem, _ := x.mem("LOCK", nil, false)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	x.must(err)
	if r := s.Recovery(); r.TornBytes != 100 || len(r.Truncated) != 0 {
		t.Errorf("zeros: %+v", r)
	}
	x.must(s.Close())

	torn := log[len(log)-30:]
	x.state[file] = log[:len(log)-1]
	mem, _ = x.mem("LOCK", nil, true)
	fault := vfstest.NewFault(mem)
	for range 3 {
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpTruncate}, Path: file, Err: syscall.EIO})
		if s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: fault})); err == nil {
			x.must(s.Close())
			t.Fatal("opened")
		}
		fault.Heal()
	}
	s, err = bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: fault}))
	x.must(err)
	r := s.Recovery()
	x.must(s.Close())
	state, err := crash.ReadState(mem, "d")
	x.must(err)
	kept := 0
	for name, b := range state {
		if strings.Contains(name, ".torn-") {
			kept++
			if !bytes.HasSuffix(b, torn[:len(torn)-1]) {
				t.Errorf("%s does not end with what was truncated", name)
			}
		}
	}
	if kept != 1 || len(r.Truncated) != 1 || r.Truncated[0].File != file || r.Truncated[0].Bytes != r.TornBytes {
		t.Errorf("%d files of remains, %+v", kept, r)
	}
}

// What is to be truncated is kept durably, name and bytes, before anything is truncated, the manifest included.
func TestRemainsAreDurableFirst(t *testing.T) {
	x := killed(t, bitcask.SyncNone, 20, nil)
	const file = "000000001.data"
	log := frames(x.state[file])
	x.state[file] = log[:len(log)-1]
	x.state["MANIFEST"] = append(slices.Clone(x.state["MANIFEST"]), 1, 2, 3)
	mem, _ := x.mem("LOCK", nil, true)
	rec := vfstest.NewRecorder(mem)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: rec}))
	x.must(err)
	var got []string
	for _, e := range rec.Events() {
		switch {
		case e.Op == vfstest.OpTruncate, e.Op == vfstest.OpRename, e.Op == vfstest.OpSyncDir, e.Op == vfstest.OpSync && strings.HasSuffix(e.Name, "TORN.new"):
			got = append(got, fmt.Sprint(e.Op, " ", strings.TrimPrefix(e.Name, "d/")))
		}
		if e.Op == vfstest.OpTruncate && strings.HasSuffix(e.Name, file) {
			break
		}
	}
	want := []string{"sync TORN.new", "rename TORN.new", "sync TORN.new", "rename TORN.new", "sync-dir d", "truncate MANIFEST", "sync-dir d", "truncate " + file}
	if !slices.Equal(got[:min(len(want), len(got))], want) {
		t.Errorf("%q, want %q", got, want)
	}
	x.must(s.Close())
}

// A disk that is too full to keep an unfinished write does not keep the store from opening; where there are commits
// among what is to be truncated, it does, and nothing has changed.
func TestRemainsOnAFullDisk(t *testing.T) {
	x := killed(t, bitcask.SyncNone, 100, nil)
	const file = "000000001.data"
	log := frames(x.state[file])
	for _, readable := range []bool{false, true} {
		end := slices.Clone(log[:len(log)-1])
		if readable {
			clear(end[512:1024])
		}
		mem, state := x.mem(file, end, false)
		fault := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "TORN.new", Err: syscall.ENOSPC, Sticky: true})
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: fault}))
		if readable {
			if err == nil {
				t.Error("commits were given up")
				x.must(s.Close())
			}
			now, err := crash.ReadState(mem, "d")
			x.must(err)
			delete(now, "LOCK")
			for name := range now {
				if !bytes.Equal(now[name], state[name]) {
					t.Errorf("%s has changed", name)
				}
			}
			continue
		}
		x.must(err)
		if r := s.Recovery(); r.TornBytes == 0 || s.Len(0) != 99 {
			t.Errorf("%d keys, %+v", s.Len(0), r)
		}
		x.must(s.Close())
	}
}
