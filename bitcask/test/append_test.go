package bitcask_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// The rules that appends by copy keep have numbers: bitcask/internal/segment/append.go.

// copied is options of a store that copies, with steps of so many bytes.
func copied(fsys vfs.FS, segment, step int64) *bitcask.Options {
	return seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: segment, SyncEvery: neverIdle}, seam.Options{FS: fsys, Copies: seam.CopiesOn, CopyStep: step, NoMapping: true})
}

// M1, M2, M3: after each commit there are zeros after the frames, at least one and no more than a step, whatever the
// length of the commits; the file has a length by which an open knows that, and a reader finds every commit.
func TestReservedZeros(t *testing.T) {
	for _, step := range []int64{2 << 10, 16 << 10, 64 << 10} {
		mem := vfs.NewMem()
		s := open(t, "d", copied(mem, 4<<20, step))
		for i := range 300 {
			n := i * i % 3000
			switch i {
			case 100:
				n = 70_000 // too long to be copied
			case 200, 201:
				n = 64<<10 - 100
			}
			put(t, s, fmt.Sprint("key", i), strings.Repeat("x", n))
			b := snapshot(t, mem, "d")[firstData]
			frames := s.Segments()[0].Bytes
			zeros := int64(len(b)) - frames
			if i != 100 && (zeros < 1 || zeros > step || len(b)%512 != 0) {
				t.Fatalf("step %d, %d bytes of frames, the last of %d: the file is %d bytes long", step, frames, n, len(b))
			}
			if strings.Trim(string(b[frames:]), "\x00") != "" {
				t.Fatalf("step %d: no zeros after %d", step, frames)
			}
			if i%50 == 0 {
				r := open(t, "d", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: mem}))
				if r.Len(0) != i+1 || r.Recovery().TornBytes != 0 {
					t.Errorf("a reader finds %d keys of %d: %+v", r.Len(0), i+1, r.Recovery())
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got, frames := size(snapshot(t, mem, "d")), s.Segments(); len(frames) != 0 || got%512 == 0 {
			t.Errorf("after Close the file is %d bytes long", got)
		}
	}
}

func size(files map[string][]byte) int { return len(files[firstData]) }

// M4: nothing stands after a footer, and no copy is made into a sealed segment. Its zeros are truncated before the
// footer is written and synced.
func TestSealedWithoutZeros(t *testing.T) {
	mem := vfs.NewMem()
	rec := vfstest.NewRecorder(mem, vfstest.OpWrite, vfstest.OpTruncate, vfstest.OpSync)
	s := open(t, "d", copied(rec, 8<<10, 2<<10))
	for i := range 500 {
		put(t, s, fmt.Sprint("key", i), strings.Repeat("v", 100))
	}
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	files, sealed := snapshot(t, mem, "d"), 0
	for _, sg := range s.Segments() {
		if !sg.Sealed {
			continue
		}
		sealed++
		if len(files[sg.File]) != int(sg.Bytes) {
			t.Errorf("%s: %d bytes, %d of them frames and footer", sg.File, len(files[sg.File]), sg.Bytes)
		}
		var last []string
		for _, e := range rec.Events() {
			if filepath.Base(e.Name) == sg.File {
				last = append(last, fmt.Sprint(e.Op, " ", e.Off, " ", e.Len))
			}
		}
		frames := sg.Bytes - footerBytes
		want := []string{"sync 0 0", fmt.Sprint("truncate ", frames, " 0"), fmt.Sprint("write ", frames, " ", footerBytes), "sync 0 0"}
		if last = last[max(len(last)-len(want), 0):]; !slices.Equal(last, want) {
			t.Errorf("%s ends with %q, want %q", sg.File, last, want)
		}
	}
	if sealed < 5 {
		t.Errorf("%d segments are sealed", sealed)
	}
	check(t, s)
}

// M6: a reader that opens while the writer seals has every commit that was acknowledged before, and no more than were
// made. A store of its own for every few readers keeps the number of segments, and so of open files, small.
func TestReadersWhileSegmentsAreSealed(t *testing.T) {
	readers := 300
	if testing.Short() {
		readers = 60
	}
	for readers > 0 && !t.Failed() {
		readers -= readWhileSegmentsAreSealed(t, min(readers, 30), 300)
	}
}

// readWhileSegmentsAreSealed opens a store so many times, or until it has so many segments. It returns how many times
// that were.
func readWhileSegmentsAreSealed(t *testing.T, readers, segments int) (opened int) {
	dir := t.TempDir()
	var fsys vfs.FS = vfs.OS()
	o := copied(fsys, 16<<10, 2<<10)
	w, err := bitcask.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var acked atomic.Int64
	done, stop := make(chan error, 1), make(chan struct{})
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := w.Put(fmt.Sprint("key", i%5000), []byte(fmt.Sprint(i, strings.Repeat(".", i%200)))); err != nil {
				done <- err
				return
			}
			acked.Store(int64(i + 1))
		}
	}()
	for ; opened < readers && len(w.Segments()) < segments; opened++ {
		before := acked.Load()
		r, err := bitcask.Open(dir, seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{NoIndex: true}))
		if err != nil {
			t.Errorf("after %d commits: %v", before, err)
			break
		}
		if got := int64(r.Sequence()); got < before || got > acked.Load()+1 {
			t.Errorf("%d commits are there, of at least %d", got, before)
		}
		if n := r.Len(0); int64(n) < min(before, 5000) {
			t.Errorf("%d keys, %d commits", n, before)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Logf("%d readers beside %d commits in %d segments", opened, acked.Load(), len(w.Segments()))
	return opened
}

// M7: where a file cannot be copied into, commits are written, and nothing is reserved.
func TestNoCopiesWhereTheFileSystemRefuses(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpMap}, Sticky: true, Err: errors.ErrUnsupported})
	s := open(t, "d", copied(fault, 1<<20, 0))
	for i := range 100 {
		put(t, s, fmt.Sprint("key", i), "value")
	}
	if got, want := size(snapshot(t, mem, "d")), int(s.Segments()[0].Bytes); got != want {
		t.Errorf("the file is %d bytes long, its frames %d", got, want)
	}
	check(t, s)
}

// A window that cannot be had any more, and pages that cannot be made ready: the rest is written, and no zeros stay.
func TestCopiesThatCannotGoOn(t *testing.T) {
	for skip := range 12 {
		mem := vfs.NewMem()
		fault := vfstest.NewFault(mem)
		s := open(t, "d", copied(fault, 1<<20, 2<<10))
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpMap}, Skip: skip, Err: syscall.ENOMEM})
		for i := range 100 {
			put(t, s, fmt.Sprint("key", i), strings.Repeat("v", 100))
			if i%10 == 0 {
				if err := s.Sync(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if fault.Failed() != 1 {
			t.Fatalf("%d windows", skip)
		}
		if got, want := size(snapshot(t, mem, "d")), int(s.Segments()[0].Bytes); got != want {
			t.Errorf("skip %d: the file is %d bytes long, its frames %d", skip, got, want)
		}
		check(t, s)
	}
}

// M8: a copy that fails is a write that failed: the store refuses further ones, its commit is not there, all others
// are.
func TestFailedCopy(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s := open(t, "d", copied(fault, 1<<20, 0))
	put(t, s, "before", "x")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Partial: 30, Err: syscall.EIO})
	if err := s.Put("failed", []byte("y")); !errors.Is(err, syscall.EIO) || !errors.Is(err, bitcask.ErrFailed) {
		t.Errorf("put: %v", err)
	}
	if err := s.Put("after", []byte("z")); !errors.Is(err, bitcask.ErrFailed) {
		t.Errorf("the next one: %v", err)
	}
	want(t, s, "before", "x")
	if err := s.Close(); !errors.Is(err, bitcask.ErrFailed) {
		t.Errorf("close: %v", err)
	}
	s = open(t, "d", copied(mem, 1<<20, 0))
	if s.Len(0) != 1 || s.Recovery().TornBytes != 0 {
		t.Errorf("%d keys: %+v", s.Len(0), s.Recovery())
	}
	check(t, s)
}

// M9: with a sync for each commit nothing is copied.
func TestAlwaysNeverCopies(t *testing.T) {
	mem := vfs.NewMem()
	o := copied(mem, 1<<20, 0)
	o.Sync = bitcask.SyncAlways
	s := open(t, "d", o)
	put(t, s, "k", "v")
	if got, want := size(snapshot(t, mem, "d")), int(s.Segments()[0].Bytes); got != want {
		t.Errorf("the file is %d bytes long, its frames %d", got, want)
	}
}

// M10: the pages of the window are made ready in a call, when they are reserved and once after each sync.
func TestPagesAreReadyBeforeCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := 0
		fault := vfstest.NewFault(vfs.NewMem(), vfstest.Rule{Ops: []vfstest.Op{vfstest.OpMap}, Sticky: true, Do: func(vfstest.Event) { ready++ }})
		o := copied(fault, 1<<20, 16<<10)
		o.Sync, o.SyncEvery = bitcask.SyncInterval, time.Second
		s, err := bitcask.Open("d", o)
		if err != nil {
			t.Fatal(err)
		}
		for second := range 5 {
			for i := range 10 {
				put(t, s, fmt.Sprint("key", i), "value")
			}
			// The first asks whether the file can be copied into, and makes a window.
			if want := 2 + second; ready != want {
				t.Errorf("second %d: pages were made ready %d times, want %d", second, ready, want)
			}
			time.Sleep(time.Second + time.Millisecond)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A disk that is full for zeros is not full for the commit: every one goes in that would without copies.
func TestCopiesOnAFullDisk(t *testing.T) {
	fill := func(copies seam.Copies) (puts int) {
		mem := vfs.NewMem()
		o := copied(mem, 1<<20, 0)
		seam.Of(o).Copies, o.Reserve = copies, -1
		s := open(t, "d", o)
		mem.SetLimit(60<<10, 512)
		for ; ; puts++ {
			err := s.Put(fmt.Sprint("key", puts), make([]byte, 100))
			if errors.Is(err, bitcask.ErrNoSpace) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		mem.SetLimit(0, 512)
		put(t, s, "again", "v")
		check(t, s)
		if n := s.Len(0); n != puts+1 {
			t.Errorf("%d keys after %d puts", n, puts+1)
		}
		return puts
	}
	if written, copied := fill(seam.CopiesOff), fill(seam.CopiesOn); written != copied {
		t.Errorf("%d commits fit when they are copied, %d when they are written", copied, written)
	}
}

// After a copy that failed for a reason that passes, as after a write, the log ends where it did before, and goes on
// from there: no copy is made to what has been truncated.
func TestCopiesAfterAFailedOne(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s := open(t, "d", copied(fault, 1<<20, 0))
	for i := range 100 {
		put(t, s, fmt.Sprint("key", i), "value")
		if i%10 != 0 {
			continue
		}
		end := s.Segments()[0].Bytes
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Partial: i, Err: syscall.ENOSPC})
		if err := s.Put("failed", []byte("y")); !errors.Is(err, bitcask.ErrNoSpace) {
			t.Errorf("put: %v", err)
		}
		if got := s.Segments()[0].Bytes; got != end {
			t.Errorf("the log ends at %d, and did at %d", got, end)
		}
		check(t, s)
	}
	killed := open(t, "d", copied(mem.Clone(), 1<<20, 0))
	if n := killed.Len(0); n != 100 || killed.Recovery().TornBytes != 0 {
		t.Errorf("%d keys after a kill, want 100: %+v", n, killed.Recovery())
	}
}
