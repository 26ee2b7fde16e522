package bitcask_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

const (
	fewDescriptors = 250
	manySegments   = 3 * fewDescriptors
	descriptorsDir = "STAVE_TEST_DESCRIPTORS"
)

// TestFewDescriptors: a store of more segments than a process may have descriptors is opened, read, checked, written,
// repaired and merged, with mappings and without.
func TestFewDescriptors(t *testing.T) {
	if dir := os.Getenv(descriptorsDir); dir != "" {
		useFewDescriptors(t, dir)
		return
	}
	dir := t.TempDir()
	s := open(t, dir, &bitcask.Options{SegmentSize: 256, Sync: bitcask.SyncNone})
	for i := range manySegments {
		put(t, s, fmt.Sprint("key", i), fmt.Sprintf("%0150d", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestFewDescriptors$", "-test.v")
	child.Env = append(os.Environ(), descriptorsDir+"="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// useFewDescriptors is a process of its own.
func useFewDescriptors(t *testing.T, dir string) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}); err != nil {
		t.Fatal(err)
	}
	for _, noMapping := range []bool{false, true} {
		o := seam.With(&bitcask.Options{SegmentSize: 256}, seam.Options{NoMapping: noMapping})
		reader := *o
		reader.ReadOnly = true
		for _, o := range []*bitcask.Options{o, &reader} {
			s, err := bitcask.Open(dir, o)
			if err != nil {
				t.Fatalf("no mapping %v, read only %v: %v", noMapping, o.ReadOnly, err)
			}
			if n := len(s.Segments()); n < manySegments-1 {
				t.Errorf("%d segments", n)
			}
			for i := range manySegments {
				want(t, s, fmt.Sprint("key", i), fmt.Sprintf("%0150d", i))
			}
			check(t, s)
			if !o.ReadOnly {
				put(t, s, "another", "value")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Remove(filepath.Join(dir, bitcask.IndexFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	r, err := repair.Salvage(t.Context(), dir, dir+".repaired", nil)
	if err != nil || r.Records < manySegments {
		t.Fatalf("repair: %+v, %v", r, err)
	}
	s := open(t, dir, nil) // without an INDEX
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	if err := rewriteAll(s); err != nil {
		t.Fatalf("merge: %v", err)
	}
	if n := len(s.Segments()); n > 3 {
		t.Errorf("%d segments after a merge of all", n)
	}
	for i := range manySegments {
		want(t, s, fmt.Sprint("key", i), fmt.Sprintf("%0150d", i))
	}
	mergeWithLastDescriptor(t, t.TempDir())
}

// lastDescriptor is a file system that takes all descriptors that are left when a segment has been made and the directory
// synced.
type lastDescriptor struct {
	vfs.FS
	armed atomic.Bool
	made  atomic.Bool
	mu    sync.Mutex // guards taken
	taken []int
}

func (l *lastDescriptor) Open(name string, mode vfs.Mode) (vfs.File, error) {
	if mode == vfs.Create && l.armed.Load() {
		l.made.Store(true)
	}
	return l.FS.Open(name, mode)
}

func (l *lastDescriptor) SyncDir(dir string) error {
	err := l.FS.SyncDir(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.made.Load() {
		fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
		if err != nil {
			break
		}
		l.taken = append(l.taken, fd)
	}
	return err
}

func (l *lastDescriptor) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fd := range l.taken {
		_ = syscall.Close(fd)
	}
	l.taken = nil
}

// mergeWithLastDescriptor merges while others take every descriptor: an output that has been published can be read back.
func mergeWithLastDescriptor(t *testing.T, dir string) {
	fs := &lastDescriptor{FS: vfs.OS()}
	s, err := bitcask.Open(dir, seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fs, NoHints: true}))
	if err != nil {
		t.Fatal(err)
	}
	const keys, rounds = 100, 10
	for range rounds {
		for i := range keys * 3 / 2 { // so that half of each segment is dead
			put(t, s, fmt.Sprint("key", i*2%(keys-1)), fmt.Sprintf("%0150d", i))
		}
		if err := s.Rotate(); err != nil {
			t.Fatal(err)
		}
		fs.armed.Store(true)
		err = rewriteAll(s)
		fs.armed.Store(false)
		fs.made.Store(false)
		fs.giveBack()
		if err != nil && !errors.Is(err, syscall.EMFILE) || s.Err() != nil {
			t.Fatalf("merge: %v; %v", err, s.Err())
		}
	}
	put(t, s, "another", "value")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
