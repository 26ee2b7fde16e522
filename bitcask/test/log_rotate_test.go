package bitcask_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// held is a store whose first segment is full and whose sealing is stopped at
// one of its syncs, while the second segment is written to.
type held struct {
	t     *testing.T
	mem   vfs.FS
	fault *vfstest.Fault
	store *bitcask.Store
	first int // puts that went to the first segment
	puts  int
	free  func() // lets the sealing go on
}

const heldSegment = 1000

// hold makes one, stopped at that sync of the first segment: 0 is that of its
// frames, 1 that of its footer.
func hold(t *testing.T, sync int) *held {
	mem := vfs.NewMem()
	h := &held{t: t, mem: mem, fault: vfstest.NewFault(mem)}
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: heldSegment, SyncEvery: neverIdle}, seam.Options{FS: h.fault, NoMapping: true, NoIndex: true}))
	if err != nil {
		t.Fatal(err)
	}
	h.store = s
	reached, free := make(chan struct{}), make(chan struct{})
	h.fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "000000001.data", Skip: sync, Do: func(vfstest.Event) {
		close(reached)
		<-free
	}})
	h.free = onceOnly(free)
	t.Cleanup(func() {
		h.free()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for len(s.Segments()) == 1 {
		h.put()
		h.first = h.puts - 1
	}
	<-reached
	return h
}

func onceOnly(c chan struct{}) func() {
	var once sync.Once
	return func() { once.Do(func() { close(c) }) }
}

func heldKey(i int) string { return fmt.Sprintf("key %03d", i) }

func (h *held) put() {
	h.t.Helper()
	put(h.t, h.store, heldKey(h.puts), "some value")
	h.puts++
}

// crash returns what a killed process would leave now, with n bytes truncated from the end of one
// of its files.
func (h *held) crash(name string, n int64) vfs.FS { return copyCut(h.t, h.mem, name, n) }

// copyCut copies a store, with n bytes truncated from the end of one of its files.
func copyCut(t *testing.T, fs vfs.FS, name string, n int64) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(to.MkdirAll("d"))
	names, err := fs.List("d")
	must(err)
	for _, file := range names {
		from, err := fs.Open("d/"+file, vfs.ReadOnly)
		must(err)
		size, err := from.Size()
		must(err)
		b := make([]byte, size)
		if size > 0 {
			_, err = from.ReadAt(b, 0)
			must(err)
		}
		must(from.Close())
		if file == name {
			b = frames(b)
			b = b[:int64(len(b))-n]
		}
		copied, err := to.Open("d/"+file, vfs.Create)
		must(err)
		_, err = copied.WriteAt(b, 0)
		must(err)
		must(copied.Close())
	}
	return to
}

// reopens checks that exactly the first n puts are there, twice and after
// going on.
func (h *held) reopens(fs vfs.FS, n int) {
	h.t.Helper()
	for range 2 {
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: heldSegment}, seam.Options{FS: fs, NoMapping: true, NoIndex: true}))
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range h.puts + 20 {
			if i < n {
				want(h.t, s, heldKey(i), "some value")
			} else {
				wantNone(h.t, s, heldKey(i))
			}
		}
		for range 20 {
			put(h.t, s, heldKey(n), "some value")
			n++
		}
		check(h.t, s)
		if err := s.Close(); err != nil {
			h.t.Fatal(err)
		}
		h.puts = n
	}
}

// footerBytes is the length of a footer.
const footerBytes = 56

// TestPutsDoNotWaitForSealing: while the disk is slow about a full segment,
// writers go on in the next.
func TestPutsDoNotWaitForSealing(t *testing.T) {
	h := hold(t, 0)
	for range 3 {
		h.put() // would hang
	}
	for i := range h.puts {
		want(t, h.store, heldKey(i), "some value")
	}
	var unsealed int
	for _, sg := range h.store.Segments() {
		if !sg.Sealed {
			unsealed++
		}
	}
	if unsealed != 2 {
		t.Errorf("%d unsealed segments, want the old one and the new", unsealed)
	}
	h.free()
	if err := h.store.Rotate(); err != nil {
		t.Fatal(err)
	}
	check(t, h.store)
}

// TestSyncWaitsForSealing: what stands in the new segment is not durable
// before the old one is.
func TestSyncWaitsForSealing(t *testing.T) {
	h := hold(t, 0)
	done := make(chan error, 1)
	go func() { done <- h.store.Sync() }()
	select {
	case err := <-done:
		t.Fatalf("Sync returned %v with the old segment not on disk", err)
	case <-time.After(20 * time.Millisecond):
	}
	h.free()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestCrashBetweenSegments: a crash while the old segment is being sealed and
// the new one written. What the new one holds counts only if the old one is all
// there.
func TestCrashBetweenSegments(t *testing.T) {
	for _, test := range []struct {
		name string
		stop int
		file string
		cut  int64
		lost func(h *held) int // puts
	}{
		{"all is there", 0, "", 0, func(*held) int { return 0 }},
		{"new one torn", 0, "000000002.data", 1, func(*held) int { return 1 }},
		{"old one torn", 0, "000000001.data", 1, func(h *held) int { return h.puts - h.first + 1 }},
		{"old one lost", 0, "000000001.data", heldSegment, func(h *held) int { return h.puts }},
		{"footer torn", 1, "000000001.data", 1, func(*held) int { return 0 }},
		{"footer gone", 1, "000000001.data", footerBytes, func(*held) int { return 0 }},
		{"footer there", 1, "", 0, func(*held) int { return 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := hold(t, test.stop)
			h.put()
			h.put()
			cut := test.cut
			if cut == heldSegment { // all but the header
				cut = h.store.Segments()[0].Bytes - 40
			}
			h.reopens(h.crash(test.file, cut), h.puts-test.lost(h))
		})
	}
}

// TestHoleBeforeSyncedSegment: once something in the new segment was synced,
// the old one was on disk: if it is not all there that is damage.
func TestHoleBeforeSyncedSegment(t *testing.T) {
	h := hold(t, 1)
	h.put()
	if err := h.store.Sync(); err != nil {
		t.Fatal(err)
	}
	h.put() // says that the one before is on disk
	for _, cut := range []int64{footerBytes + 1, footerBytes + 100, 700} {
		_, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: heldSegment}, seam.Options{FS: h.crash("000000001.data", cut), NoIndex: true}))
		var bad *bitcask.CorruptError
		if !errors.As(err, &bad) || bad.File != "000000001.data" {
			t.Errorf("cut by %d: %v", cut, err)
		}
	}
	h.reopens(h.crash("000000001.data", footerBytes), h.puts)
}

// TestReaderBetweenSegments: a reader alongside a writer sees both unsealed segments.
func TestReaderBetweenSegments(t *testing.T) {
	h := hold(t, 0)
	h.put()
	r, err := bitcask.Open("d", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: h.mem, NoMapping: true}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.puts {
		want(t, r, heldKey(i), "some value")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTornBatch: the records of a torn commit that verify by themselves count
// for nothing, neither in the footer nor in the sequence.
func TestTornBatch(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "d", seam.With(&bitcask.Options{SyncEvery: neverIdle}, seam.Options{FS: mem, NoMapping: true}))
	b := s.NewBatch()
	for i := range 4 {
		b.Put(heldKey(i), []byte("some value"))
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	torn := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: copyCut(t, mem, "000000001.data", 1), NoMapping: true}))
	if at := torn.Sequence(); at != 0 {
		t.Errorf("sequence %d in an empty store", at)
	}
	put(t, torn, "k", "v")
	if err := torn.Rotate(); err != nil {
		t.Fatal(err)
	}
	if sg := torn.Segments()[0]; sg.Records != 1 || sg.MinSeq != 1 || sg.MaxSeq != 1 {
		t.Errorf("%+v, want one record with sequence 1", sg)
	}
	check(t, torn)
}

// TestSegmentSealedAtOpenGetsHint: as any sealed segment does.
func TestSegmentSealedAtOpenGetsHint(t *testing.T) {
	h := hold(t, 0)
	h.put()
	fs := h.crash("", 0)
	open(t, "d", seam.With(&bitcask.Options{SegmentSize: heldSegment}, seam.Options{FS: fs, NoMapping: true, NoIndex: true}))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		names, err := fs.List("d")
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(names, "000000001.hint") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no hint among %v", names)
		}
	}
}
