package vfstest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

func TestTrace(t *testing.T) {
	rec := vfstest.NewRecorder(vfstest.NewFault(vfs.NewMem(), vfstest.Rule{Ops: []vfstest.Op{vfstest.OpList}, Err: syscall.EIO}))
	if err := publish(rec); err == nil {
		t.Fatal("the error does not come through")
	}
	rec.Mark("failed")
	want := `mkdir dir
lock dir/LOCK
create dir/a.tmp
write dir/a.tmp 0+5
read dir/a.tmp 0+5
truncate dir/a.tmp 4
sync dir/a.tmp
size dir/a.tmp
rename dir/a.tmp -> dir/a
link dir/a -> dir/b
remove dir/b
sync-dir dir
list dir (list dir: input/output error)
close dir/a.tmp
unlock dir/LOCK
mark failed
`
	if got := rec.Trace(); got != want {
		t.Errorf("the trace is\n%s\nwant\n%s", got, want)
	}
	if got := rec.Trace(vfstest.OpSync, vfstest.OpRename, vfstest.OpSyncDir); got != "sync dir/a.tmp\nrename dir/a.tmp -> dir/a\nsync-dir dir\n" {
		t.Errorf("the part asked for is\n%s", got)
	}
	only := vfstest.NewRecorder(vfs.NewMem(), vfstest.OpLock)
	must(t, publish(only))
	if got := only.Trace(); got != "lock dir/LOCK\n" {
		t.Errorf("a recorder of locks has\n%s", got)
	}
}

func TestFileNumbersFollowFiles(t *testing.T) {
	mem := vfs.NewMem()
	vfstest.Create(t, mem, "old", "")
	rec := vfstest.NewRecorder(mem)
	a := vfstest.Create(t, rec, "a", "") // 1
	must(t, rec.Rename("a", "b"))        // 1
	must(t, rec.Link("b", "c"))          // 1
	must(t, rec.Rename("b", "c"))        // 1, and nothing happens
	vfstest.Create(t, rec, "a", "")      // 2
	must(t, rec.Rename("old", "a"))      // 3 replaces 2
	_, err := a.WriteAt([]byte("x"), 0)  // 1
	must(t, err)
	must(t, rec.Remove("b"))        // 1
	must(t, rec.Remove("a"))        // 3
	vfstest.Create(t, rec, "a", "") // 4
	must(t, rec.MkdirAll("dir"))
	vfstest.Create(t, rec, "dir/f", "") // 5
	must(t, rec.RenameDir("dir", "other"))
	must(t, rec.Remove("other/f")) // 5
	got := ""
	for _, e := range rec.Events() {
		if e.File > 0 && (e.Op != vfstest.OpWrite || e.Len > 0) {
			got += fmt.Sprint(e.File)
		}
	}
	if got != "111123113455" {
		t.Errorf("file numbers are %s", got)
	}
}

// TestSyncCoversWhatCameBefore: a write during a slow sync must not count as synced.
func TestSyncCoversWhatCameBefore(t *testing.T) {
	started, finish := make(chan bool), make(chan bool)
	rec := vfstest.NewRecorder(vfstest.NewFault(vfs.NewMem(), vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Do: func(vfstest.Event) {
		started <- true
		<-finish
	}}))
	f := vfstest.Create(t, rec, "a", "before")
	done := make(chan error)
	go func() { done <- f.Sync() }()
	<-started
	_, err := f.WriteAt([]byte("during"), 6)
	must(t, err)
	finish <- true
	must(t, <-done)
	events := rec.Events()
	sync := events[len(events)-1]
	if sync.Op != vfstest.OpSync || sync.Covers != 2 || events[sync.Covers].Off != 6 {
		t.Errorf("the sync covers %d of\n%s", sync.Covers, rec.Trace())
	}
}

// TestEventsRebuildTheFiles does random operations, some of which fail, and rebuilds their result from the log.
func TestEventsRebuildTheFiles(t *testing.T) {
	seed := chance.Seed(t)
	for round := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, round))
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("d"))
		vfstest.Create(t, mem, "d/1", "there before").Close()
		base := mem.Clone()
		fault := vfstest.NewFault(mem)
		rec := vfstest.NewRecorder(fault)
		scribble(rec, fault, rng)
		rebuilt := replay(t, base, rec.Events())
		if got, want := dump(t, rebuilt), dump(t, mem); got != want {
			t.Fatalf("round %d: rebuilt\n%s\nwant\n%s\nfrom\n%s", round, got, want, rec.Trace())
		}
	}
}

// scribble does random operations and ignores their errors.
func scribble(fsys vfs.FS, fault *vfstest.Fault, rng *rand.Rand) {
	name := func() string { return fmt.Sprintf("d/%d", rng.IntN(4)) }
	var open []vfs.File
	for range 200 {
		if rng.IntN(5) == 0 {
			fault.Inject(vfstest.Rule{Err: syscall.EIO, Partial: rng.IntN(20)})
		}
		switch rng.IntN(8) {
		case 0:
			fsys.Rename(name(), name())
		case 1:
			fsys.Link(name(), name())
		case 2:
			fsys.Remove(name())
		case 3:
			fsys.SyncDir("d")
		case 4, 5:
			if f, err := fsys.Open(name(), vfs.Mode(1+rng.IntN(2))); err == nil {
				open = append(open, f)
			}
		default:
			if len(open) == 0 {
				continue
			}
			f := open[rng.IntN(len(open))]
			if rng.IntN(4) == 0 {
				f.Truncate(rng.Int64N(40))
			} else {
				f.WriteAt([]byte(strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(30))), rng.Int64N(40))
			}
			f.Sync()
		}
	}
	for _, f := range open {
		f.Close()
	}
}

// replay repeats on base what the events say, the way a power cut's states are built: by file number, not by name.
func replay(t *testing.T, base *vfs.Mem, events []vfstest.Event) *vfs.Mem {
	t.Helper()
	files := map[int]vfs.File{}
	for _, e := range events {
		var err error
		switch {
		case e.Op == vfstest.OpWrite:
			if e.N > 0 {
				_, err = files[e.File].WriteAt(e.Data[:e.N], e.Off)
			}
		case e.Err != nil:
		case e.Op == vfstest.OpOpen:
			if files[e.File] == nil {
				files[e.File], err = base.Open(e.Name, vfs.ReadWrite)
			}
		case e.Op == vfstest.OpCreate:
			files[e.File], err = base.Open(e.Name, vfs.Create)
		case e.Op == vfstest.OpTruncate:
			err = files[e.File].Truncate(e.Off)
		case e.Op == vfstest.OpRename:
			err = base.Rename(e.Name, e.To)
		case e.Op == vfstest.OpLink:
			err = base.Link(e.Name, e.To)
		case e.Op == vfstest.OpRemove:
			err = base.Remove(e.Name)
		}
		if err != nil {
			t.Fatalf("%v: %v", e, err)
		}
	}
	for _, f := range files {
		must(t, f.Close())
	}
	return base
}

// dump returns every file with its bytes.
func dump(t *testing.T, fsys vfs.FS) string {
	t.Helper()
	var b strings.Builder
	names, err := fsys.List("d")
	must(t, err)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %q\n", name, vfstest.Content(t, fsys, filepath.Join("d", name)))
	}
	return b.String()
}

func TestRecorderReportsErrorsAsTheyAre(t *testing.T) {
	rec := vfstest.NewRecorder(vfs.NewMem())
	_, err := rec.Open("none", vfs.ReadOnly)
	wantErr(t, err, fs.ErrNotExist)
	lock, err := rec.Lock("LOCK")
	must(t, err)
	defer lock.Close()
	_, err = rec.Lock("LOCK")
	wantErr(t, err, vfs.ErrLocked)
	events := rec.Events()
	if last := events[len(events)-1]; !errors.Is(last.Err, vfs.ErrLocked) {
		t.Errorf("the log has %v", last.Err)
	}
}
