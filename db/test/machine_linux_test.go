package db_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/merge"
)

// What a real machine does to a store: power cuts on a real file system, full
// disks, no more descriptors, a second process. What needs root is skipped
// without, and says so.

var kernelCuts = flag.Int("kernelcut.runs", 6, "how often the kernel cuts the power of a file system")

// command runs a program and skips the test if it cannot.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("%s %s: %v, %s", name, strings.Join(args, " "), err, out)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
}

// loopDisk is an ext4 file system in a file.
type loopDisk struct {
	t            *testing.T
	image, mount string
}

func newLoopDisk(t *testing.T) *loopDisk {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	d := &loopDisk{t: t, image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "mount")}
	must(t, os.Mkdir(d.mount, 0o700))
	must(t, os.WriteFile(d.image, nil, 0o600))
	must(t, os.Truncate(d.image, 64<<20))
	command(t, "mkfs.ext4", "-q", "-F", d.image)
	command(t, "mount", "-o", "loop", d.image, d.mount)
	t.Cleanup(func() {
		if err := syscall.Unmount(d.mount, 0); err != nil && !errors.Is(err, syscall.EINVAL) {
			t.Errorf("unmount: %v", err)
		}
	})
	return d
}

// cutPower is what the kernel has for tests of file systems: nothing that is
// not on the disk gets there, and every write from now on fails.
func (d *loopDisk) cutPower() error {
	const (
		shutdown   = 0x8004587d // FS_IOC_SHUTDOWN
		noLogFlush = 2
	)
	f, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noLogFlush), f.Close())
}

// again mounts the file system anew.
func (d *loopDisk) again(options string) {
	d.t.Helper()
	must(d.t, syscall.Unmount(d.mount, 0))
	out, err := exec.Command("mount", "-o", options, d.image, d.mount).CombinedOutput()
	if err != nil {
		d.t.Fatalf("mount: %v, %s", err, out)
	}
}

// TestKernelPowerCut cuts the power of a real file system under writers, again
// and again: every acknowledged write is there, for each writer in its order.
func TestKernelPowerCut(t *testing.T) {
	d := newLoopDisk(t)
	runs, rng := *kernelCuts, chance.Rand(t)
	if testing.Short() {
		runs = 1
	}
	dir := filepath.Join(d.mount, "store")
	o := &db.Options{
		Sync: db.SyncAlways, SegmentSize: 8 << 10, NoMerge: true, Merge: merge.Policy{TriggerRatio: 0.3, IncludeRatio: 0.1, SmallCount: 2},
	}
	const writers = 4
	var acked [writers]atomic.Int64
	total := int64(0)
	for run := range runs {
		s, err := db.Open(dir, o)
		must(t, err)
		var work sync.WaitGroup
		for w := range writers {
			key := "counter " + strconv.Itoa(w)
			work.Go(func() {
				for s.Update(func(tx *db.Tx) error { return count(tx, key) }) == nil {
					acked[w].Add(1)
				}
			})
		}
		work.Go(func() {
			for mergeEverything(s) == nil {
			}
		})
		time.Sleep(time.Duration(20+rng.IntN(200)) * time.Millisecond)
		// A write acknowledged while the power goes is not promised: a sync that meets the shutdown
		// may return as if nothing had happened.
		var promised [writers]int64
		for w := range writers {
			promised[w] = acked[w].Load()
		}
		must(t, d.cutPower())
		work.Wait()
		if err := s.Close(); err == nil {
			t.Error("a store without a disk closes as if nothing had happened")
		}
		d.again("loop")
		s, err = db.Open(dir, o)
		if err != nil {
			t.Fatalf("open after power cut %d: %v", run, err)
		}
		for w := range writers {
			n := counted(t, s, "counter "+strconv.Itoa(w))
			if n < promised[w] || n > acked[w].Load()+1 {
				t.Errorf("power cut %d, writer %d: %d commits, %d were acknowledged before", run, w, n, promised[w])
			}
			acked[w].Store(n)
			total += n
		}
		wantSound(t, s)
		must(t, s.Close())
	}
	t.Logf("%d power cuts of an ext4 file system, %d commits acknowledged", runs, total)
	d.again("loop,ro")
	if _, err := db.Open(dir, o); !errors.Is(err, syscall.EROFS) {
		t.Errorf("opening for writing on a read-only file system: %v", err)
	}
	ro := *o
	ro.ReadOnly = true
	s, err := db.Open(dir, &ro)
	must(t, err)
	equal(t, "commits seen read-only", counted(t, s, "counter 0"), acked[0].Load())
	must(t, s.Close())
}

// count adds one to a number that stands in two places, in one commit.
func count(tx *db.Tx, key string) error {
	n, err := tx.String(key).Incr(1)
	if err != nil {
		return err
	}
	_, err = tx.Hash("hash of "+key).Put("n", []byte(strconv.FormatInt(n, 10)+strings.Repeat(" ", int(n%300))))
	return err
}

func counted(t *testing.T, s *db.Store, key string) int64 {
	t.Helper()
	text, err := s.String(key).Get()
	if errors.Is(err, db.ErrNotFound) {
		return 0
	}
	must(t, err)
	again, err := s.Hash("hash of " + key).Get("n")
	must(t, err)
	equal(t, "the second place", strings.TrimSpace(string(again)), string(text))
	n, err := strconv.ParseInt(string(text), 10, 64)
	must(t, err)
	return n
}

func wantSound(t *testing.T, s *db.Store) {
	t.Helper()
	_, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) })
	must(t, err)
}

// TestFullDisk fills a small file system: writes fail, reads go on, and with
// room again writes do too.
func TestFullDisk(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	command(t, "mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", dir)
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 96<<10), 0o600))
	for _, sync := range []db.SyncMode{db.SyncNone, db.SyncAlways} {
		store := filepath.Join(dir, sync.String())
		o := &db.Options{Sync: sync, SegmentSize: 16 << 10, NoMerge: true}
		s, err := db.Open(store, o)
		must(t, err)
		n := 0
		for ; err == nil && n < 1000; n++ {
			err = s.String("k" + strconv.Itoa(n)).Put([]byte(strings.Repeat("v", 500)))
		}
		n-- // this one failed
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("sync %v: after %d writes: %v", sync, n, err)
		}
		wantKeys(t, s, n)
		must(t, os.Remove(ballast))
		must(t, s.String("k"+strconv.Itoa(n)).Put([]byte(strings.Repeat("v", 500))))
		must(t, s.Flush())
		must(t, s.String("k0").Put([]byte(strings.Repeat("v", 500))))
		must(t, mergeEverything(s))
		must(t, s.Close())
		s, err = db.Open(store, o)
		must(t, err)
		wantKeys(t, s, 1)
		wantSound(t, s)
		must(t, s.Close())
		must(t, os.RemoveAll(store))
		must(t, os.WriteFile(ballast, make([]byte, 96<<10), 0o600))
	}
}

// wantKeys wants k0 to k(n-1) and no others.
func wantKeys(t *testing.T, s *db.Store, n int) {
	t.Helper()
	equal(t, "keys", s.Len(), n)
	for i := range n {
		if v, err := s.String("k" + strconv.Itoa(i)).Get(); err != nil || len(v) != 500 {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
}

// TestNoMoreDescriptors removes a process's descriptors while it writes: acknowledged writes are
// there, reads continue, and writes resume once there are descriptors again. It runs in a process
// of its own.
func TestNoMoreDescriptors(t *testing.T) {
	const env = "STAVE_DESCRIPTOR_TEST"
	dir := os.Getenv(env)
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoMoreDescriptors$")
		cmd.Env = append(os.Environ(), env+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	o := &db.Options{SegmentSize: 4 << 10, Sync: db.SyncAlways, NoMerge: true}
	s, err := db.Open(dir, o)
	must(t, err)
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(len(open) - 1), Max: before.Max}))
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = s.String("k" + strconv.Itoa(n)).Put([]byte(strings.Repeat("v", 500)))
	}
	n--
	if !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("after %d writes: %v", n, err)
	}
	wantKeys(t, s, n)
	if err := mergeEverything(s); err == nil {
		t.Error("a merge without descriptors")
	}
	wantKeys(t, s, n)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	must(t, s.String("k"+strconv.Itoa(n)).Put([]byte(strings.Repeat("v", 500))))
	must(t, mergeEverything(s))
	must(t, s.Close())
	s, err = db.Open(dir, o)
	must(t, err)
	wantKeys(t, s, n+1)
	wantSound(t, s)
	must(t, s.Close())
}

// TestSecondProcess opens a store that another process has: it gets the error at once, no byte
// changes, and a killed holder leaves no lock.
func TestSecondProcess(t *testing.T) {
	const env = "STAVE_HOLDER_TEST"
	if dir := os.Getenv(env); dir != "" {
		s, err := db.Open(dir, nil)
		must(t, err)
		must(t, s.String("k0").Put([]byte(strings.Repeat("v", 500))))
		fmt.Println("holding")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends as well
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcess$")
	cmd.Env = append(os.Environ(), env+"="+dir)
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = out.Read(make([]byte, len("holding")))
	must(t, err)
	before, names := dirBytes(t, dir), dirTimes(t, dir)
	quickest := time.Hour // of three: the machine may be busy with other things
	for range 3 {
		begin := time.Now()
		_, err := db.Open(dir, nil)
		if !errors.Is(err, bitcask.ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
			t.Errorf("second opening: %v", err)
		}
		quickest = min(quickest, time.Since(begin))
	}
	if quickest > time.Second {
		t.Errorf("it took %v", quickest)
	}
	equal(t, "bytes", dirBytes(t, dir), before)
	if now := dirTimes(t, dir); !slices.Equal(now, names) {
		t.Errorf("files were touched: %v, before %v", now, names)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	s, err := db.Open(dir, nil)
	must(t, err)
	wantKeys(t, s, 1)
	must(t, s.Close())
}

// dirTimes is when each file was last changed.
func dirTimes(t *testing.T, dir string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		list = append(list, fmt.Sprint(name, " ", info.ModTime()))
		return err
	}))
	return list
}
