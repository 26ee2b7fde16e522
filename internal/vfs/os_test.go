//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/internal/test/leak"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// lockEnv makes the test binary a process that locks a file and waits to be killed.
const lockEnv = "STAVE_TEST_LOCK_FILE"

func TestMain(m *testing.M) {
	if name := os.Getenv(lockEnv); name != "" {
		if _, err := vfs.OS().Lock(name); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		fmt.Println("locked")
		io.Copy(io.Discard, os.Stdin) // Until the parent closes it or kills us.
		os.Exit(0)
	}
	leak.VerifyTestMain(m)
}

func TestLockDiesWithItsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockEnv+"="+name)
	stdin, err := child.StdinPipe()
	must(t, err)
	defer stdin.Close()
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line := make([]byte, len("locked\n"))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "locked\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	before, err := os.ReadFile(name)
	must(t, err)

	_, err = vfs.OS().Lock(name)
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("error is %v, want a LockedError", err)
	}
	if want := fmt.Sprintf("pid %d (%s)", child.Process.Pid, filepath.Base(os.Args[0])); locked.Holder != want {
		t.Errorf("holder is %q, want %q", locked.Holder, want)
	}
	if after, _ := os.ReadFile(name); string(after) != string(before) {
		t.Errorf("a refused lock changed the file to %q", after)
	}

	must(t, child.Process.Kill())
	child.Wait() // Reports the kill.
	lock, err := vfs.OS().Lock(name)
	if err != nil {
		t.Fatalf("a killed process left its lock: %v", err)
	}
	must(t, lock.Close())
}

func TestSpecialFilesAreRefusedWithoutHanging(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	must(t, os.WriteFile(target, []byte("secret"), 0o600))
	link, dangling, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "pipe")
	must(t, os.Symlink(target, link))
	must(t, os.Symlink(filepath.Join(dir, "none"), dangling))
	must(t, unix.Mkfifo(pipe, 0o600))

	inside := filepath.Join(dir, "inside") // a link that os.Root would follow
	must(t, os.Symlink("target", inside))
	held, err := vfs.Hold(vfs.OS(), dir)
	must(t, err)
	defer held.Close()

	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, fsys := range []vfs.FS{vfs.OS(), held} {
			for _, name := range []string{link, dangling, inside, pipe, "/dev/null", dir} {
				refuses(t, fsys, name)
			}
		}
		for _, name := range []string{pipe, target} {
			if held, err := vfs.Hold(vfs.OS(), name); err == nil {
				t.Errorf("%s is held as a directory", name)
				held.Close()
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("open of a special file hangs")
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a file was created through a symbolic link")
	}
	if got, _ := os.ReadFile(target); string(got) != "secret" {
		t.Errorf("the target of a link became %q", got)
	}
}

// refuses fails unless a name can neither be opened nor locked.
func refuses(t *testing.T, fsys vfs.FS, name string) {
	for _, mode := range []vfs.Mode{vfs.ReadOnly, vfs.ReadWrite, vfs.Create} {
		if f, err := fsys.Open(name, mode); err == nil {
			t.Errorf("%s opens in mode %d", name, mode)
			f.Close()
		} else if mode == vfs.ReadOnly {
			wantErr(t, err, vfs.ErrNotRegular)
		}
	}
	if lock, err := fsys.Lock(name); err == nil {
		t.Errorf("%s was locked", name)
		lock.Close()
	}
}

// The holder of the lock may remove its file: others that have opened that by then must not take it for the
// lock.
func TestLockIsOfTheFileThatHasTheName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	var holders atomic.Int32
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 500 {
				lock, err := vfs.OS().Lock(name)
				if errors.Is(err, vfs.ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) > 1 {
					t.Error("two have the lock")
				}
				holders.Add(-1)
				if err := os.Remove(name); err != nil {
					t.Error(err)
				}
				if err := lock.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

func TestPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	must(t, vfs.OS().MkdirAll(dir))
	name := filepath.Join(dir, "a")
	vfstest.Create(t, vfs.OS(), name, "")
	for path, want := range map[string]os.FileMode{dir: 0o700, name: 0o600} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestMapSeesLaterWrites(t *testing.T) {
	f := vfstest.Create(t, vfs.OS(), filepath.Join(t.TempDir(), "a"), "hello")
	m, ok := f.(vfs.Mapper)
	if !ok {
		t.Fatal("an OS file is no Mapper")
	}
	length := 4 * os.Getpagesize()
	mapping, err := m.Map(length)
	must(t, err)
	if len(mapping) != length || string(mapping[:5]) != "hello" {
		t.Fatalf("%d bytes are mapped, starting %q", len(mapping), mapping[:5])
	}
	far := int64(length - 5)
	_, err = f.WriteAt([]byte("later"), far)
	must(t, err)
	if got := string(mapping[far:]); got != "later" {
		t.Errorf("a later write shows as %q", got)
	}
	must(t, f.Close())
	if got := string(mapping[:5]); got != "hello" {
		t.Errorf("after close the mapping reads %q", got)
	}
	if _, err := m.Map(1); err == nil {
		t.Error("a closed file was mapped")
	}
	must(t, m.Unmap(mapping))
	if m.Unmap(mapping) == nil {
		t.Error("a mapping was unmapped twice")
	}
}

// TestShortWriteIsAnError has a process of its own: go test writes files with this one.
func TestShortWriteIsAnError(t *testing.T) {
	const role = "STAVE_TEST_SHORT_WRITE"
	if os.Getenv(role) == "" {
		self, err := os.Executable()
		must(t, err)
		child := exec.Command(self, "-test.run=^TestShortWriteIsAnError$")
		child.Env = append(os.Environ(), role+"=1")
		if out, err := child.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	f := vfstest.Create(t, vfs.OS(), filepath.Join(t.TempDir(), "a"), "hello")
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 8, Max: 1 << 20})) // The Go runtime ignores the SIGXFSZ that comes with it.
	n, err := f.WriteAt([]byte("0123456789"), 5)
	if n >= 10 || !errors.Is(err, unix.EFBIG) {
		t.Errorf("a write over the limit gives %d, %v; want fewer bytes and EFBIG", n, err)
	}
	if got := vfstest.Text(t, f); got != "hello012" {
		t.Errorf("a write over the limit leaves %q", got)
	}
	if err != nil && !strings.Contains(err.Error(), "/a:") {
		t.Errorf("error %q does not name the file", err)
	}
}
