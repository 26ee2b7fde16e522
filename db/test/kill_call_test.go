package db_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	callEvery  = flag.Int("callkill.every", 1, "every how many operations on files a process is killed there (default: a sample)")
	callStrace = flag.Int("callkill.strace", 4, "up to which call of each kind strace kills a process; more take long")
)

// callEnv carries to the child which of its operations on files it must not
// survive (-1: it survives), and the directory.
const callEnv = "STAVE_CALL_TEST"

// callPlan is what the child does: some segments' worth of operations, a backup,
// one merge of everything, some more, a backup with the help of the first, and some more.
func callPlan(dir string) killPlan { return killPlan{dir: dir, seed: 7, round: 0} }

const (
	callBefore = 40 // operations before the merge
	callMore   = 4  // from the merge to the second backup
	callAfter  = 8  // operations after the merge
)

func callOptions(fsys vfs.FS) *db.Options {
	o := stepOptions(fsys, db.SyncAlways)
	o.SegmentSize = 2 << 10
	return o
}

// TestCalledChild is the child.
func TestCalledChild(t *testing.T) {
	text := os.Getenv(callEnv)
	if text == "" {
		t.Skip("this is the child of TestKillAtEveryCall")
	}
	number, dir, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	must(t, err)
	out := os.NewFile(3, "acknowledgements")
	fsys := vfstest.NewFault(vfs.OS())
	if n >= 0 {
		fsys.Inject(vfstest.Rule{Skip: n, Do: func(vfstest.Event) {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err == nil {
				select {} // until the signal has come
			}
			t.Error(err)
		}})
	}
	s, err := db.Open(dir, callOptions(fsys))
	must(t, err)
	p := callPlan(dir)
	for i := range callBefore + callAfter {
		if i == callBefore {
			must(t, first(s.Backup(t.Context(), callBackup(dir))))
			must(t, mergeEverything(s))
		}
		if i == callBefore+callMore {
			must(t, first(s.BackupSince(t.Context(), callSince(dir), callBackup(dir))))
		}
		must(t, p.operation(0, i, s))
		_, err := fmt.Fprintln(out, i)
		must(t, err)
	}
	must(t, s.Close())
	_, err = fmt.Fprintln(out, "operations", fsys.Ops())
	must(t, err)
}

func callBackup(dir string) string { return dir + " backup" }

func callSince(dir string) string { return dir + " since" }

// verifyCallBackups wants each backup to be whole, if it is there, and to be made if only a part of it is. The second
// one does no harm to the first, on which it stands.
func verifyCallBackups(t *testing.T, dir string, acked int) {
	t.Helper()
	full, since := callBackup(dir), callSince(dir)
	made := verifyCallBackup(t, dir, full, acked > callBefore, func(s *db.Store) error { return first(s.Backup(t.Context(), full)) })
	verifyCallBackup(t, dir, since, acked > callBefore+callMore, func(s *db.Store) error {
		if !made {
			t.Errorf("%s: a part of a second backup without a first", dir)
		}
		return first(s.BackupSince(t.Context(), since, full))
	})
	if made {
		checkCallBackup(t, full)
	}
	must(t, errors.Join(os.RemoveAll(since), os.RemoveAll(full)))
}

// verifyCallBackup reports whether there is a backup now.
func verifyCallBackup(t *testing.T, dir, name string, due bool, again func(*db.Store) error) bool {
	t.Helper()
	_, partial := os.Stat(name + ".partial")
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		if due {
			t.Errorf("%s is not there", name)
		}
		if partial != nil {
			return false
		}
		s, err := db.Open(dir, &db.Options{ReadOnly: true, Namespaces: modelNamespaces})
		must(t, err)
		must(t, again(s))
		must(t, s.Close())
	}
	if _, err := os.Stat(name + ".partial"); err == nil {
		t.Errorf("%s: a part is left", name)
	}
	checkCallBackup(t, name)
	return true
}

// checkCallBackup wants a whole store.
func checkCallBackup(t *testing.T, name string) {
	t.Helper()
	s, err := db.Open(name, &db.Options{ReadOnly: true, Namespaces: modelNamespaces})
	must(t, err)
	if _, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("%s: check: %v", name, f) }); err != nil {
		t.Errorf("%s: check: %v", name, err)
	}
	must(t, s.Close())
}

// runCalled runs the child and returns how many operations it acknowledged,
// and how many operations on files it made if nothing killed it.
func runCalled(t *testing.T, dir string, n int, wrapper ...string) (acked, ops int) {
	t.Helper()
	read, write, err := os.Pipe()
	must(t, err)
	defer read.Close()
	args := append(wrapper, os.Args[0], "-test.run=^TestCalledChild$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", callEnv, n, dir), "GOMAXPROCS=1")
	cmd.ExtraFiles = []*os.File{write}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	must(t, cmd.Start())
	must(t, write.Close())
	lines := bufio.NewReader(read)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		must(t, err)
		if _, err := fmt.Sscanf(line, "operations %d\n", &ops); err == nil {
			continue
		}
		if line != fmt.Sprintln(acked) {
			t.Fatalf("acknowledgement %q after %d", line, acked)
		}
		acked++
	}
	if err := cmd.Wait(); strings.Contains(output.String(), "FAIL") {
		t.Fatalf("operation %d: the child failed: %v\n%s", n, err, output.String())
	}
	return acked, ops
}

// calledShadow is a store in memory that is as far as a child has come.
type calledShadow struct {
	store *db.Store
	done  int
}

// verify opens what the child left.
func (c *calledShadow) verify(t *testing.T, dir string, acked int) {
	t.Helper()
	p := callPlan(dir)
	if acked < c.done || c.store == nil {
		s, err := db.Open("shadow", seam.With(&db.Options{Namespaces: modelNamespaces, NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
		must(t, err)
		if c.store != nil {
			must(t, c.store.Close())
		}
		c.store, c.done = s, 0
	}
	for ; c.done < acked; c.done++ {
		must(t, p.operation(0, c.done, c.store))
	}
	c.done += compareKilled(t, p, [killWriters]int{acked}, c.store)
}

func (c *calledShadow) close(t *testing.T) {
	if c.store != nil {
		must(t, c.store.Close())
	}
}

// TestKillAtEveryCall kills a process before each operation on files of a life
// with rotations, two backups and a merge, and finds every acknowledged write.
func TestKillAtEveryCall(t *testing.T) {
	parent := t.TempDir()
	acked, ops := runCalled(t, filepath.Join(parent, "whole"), -1)
	if acked != callBefore+callAfter {
		t.Fatalf("%d operations acknowledged", acked)
	}
	every := *callEvery
	if testing.Short() {
		every = max(every, ops/4)
	}
	var shadow calledShadow
	defer shadow.close(t)
	calls := longTests.Start(t, 1, "callkill.every").Part(t, 5)
	defer calls.End()
	kills := 0
	for n := chance.Rand(t).IntN(every); n < ops; n += every {
		if !calls.Take(n, ops) {
			continue
		}
		dir := filepath.Join(parent, strconv.Itoa(n))
		acked, _ := runCalled(t, dir, n)
		if _, err := os.Stat(filepath.Join(dir, "MANIFEST")); errors.Is(err, os.ErrNotExist) && acked == 0 {
			continue // there was no store yet
		}
		verifyCallBackups(t, dir, acked)
		shadow.verify(t, dir, acked)
		must(t, os.RemoveAll(dir))
		kills++
	}
	t.Logf("%d kills before one of %d operations on files", kills, ops)
}

// TestKillAtSyscalls has strace kill the process at a system call, the n-th of
// its kind in its thread: it sees calls that the store does not know of.
func TestKillAtSyscalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace")
	}
	if out, err := exec.Command(strace, "-f", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace: %v, %s", err, out)
	}
	last := *callStrace
	if testing.Short() {
		last = 0
	}
	parent := t.TempDir()
	var shadow calledShadow
	defer shadow.close(t)
	kills := 0
	begin := time.Now()
	for _, call := range []string{"pwrite64", "fsync,fdatasync", "renameat,renameat2", "unlinkat", "ftruncate", "openat"} {
		for n := 1; n <= last; n++ {
			when := n
			if call == "openat" {
				when += 10 // the program's own start
			}
			if call == "pwrite64" {
				when *= 9
			}
			dir := filepath.Join(parent, fmt.Sprint(call, n))
			inject := fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, when)
			acked, _ := runCalled(t, dir, -1, strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", inject)
			if _, err := os.Stat(filepath.Join(dir, "MANIFEST")); errors.Is(err, os.ErrNotExist) && acked == 0 {
				continue
			}
			if acked < callBefore+callAfter {
				kills++
			}
			shadow.verify(t, dir, acked)
		}
	}
	t.Logf("%d kills at system calls in %v", kills, time.Since(begin).Round(time.Second))
}
