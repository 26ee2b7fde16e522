//go:build unix

package conf_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/server/conf"
)

var pad = strings.Repeat("x", 5000)

// settings is a file of many settings, all of which have the same number.
func settings(n int) string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "name%d %d %s\n", i, n, pad)
	}
	return b.String()
}

// TestMain runs a process that a test kills, or lets run out of space.
func TestMain(m *testing.M) {
	path, role, is := strings.Cut(os.Getenv("STAVE_TEST_REWRITES"), "|")
	if !is {
		os.Exit(m.Run())
	}
	if err := rewrite(path, role); err != nil {
		fmt.Println("error:", err)
	}
	os.Exit(0)
}

// rewrite is that process: it rewrites a file for ever, or once with no more room than a number says.
func rewrite(path, role string) error {
	f, err := conf.Read(path)
	if err != nil {
		return err
	}
	if room, err := strconv.ParseUint(role, 10, 63); err == nil {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
			return err
		}
		f.Set([]string{"name0"}, [][]string{{"changed", pad}})
		return f.Write()
	}
	for n := 1; ; n++ {
		for i := range 20 {
			f.Set([]string{"name" + strconv.Itoa(i)}, [][]string{{strconv.Itoa(n), pad}})
		}
		if err := f.Write(); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func start(t *testing.T, path, role string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "STAVE_TEST_REWRITES="+path+"|"+role)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// TestKilledWhileItWrites: a process that is killed at any moment leaves one of the texts whole, and the next one can
// go on.
func TestKilledWhileItWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(path, []byte(settings(0)), 0o600); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		cmd, out := start(t, path, "loop")
		line, err := out.ReadString('\n') // it writes
		if err != nil || strings.HasPrefix(line, "error") {
			t.Fatal(line, err)
		}
		time.Sleep(time.Duration(round*137%20) * time.Millisecond / 4)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.SplitN(string(text)+"  ", " ", 3)[1])
		if err != nil || string(text) != settings(n) {
			t.Fatalf("round %d: the file is torn: %d bytes, %v", round, len(text), err)
		}
	}
}

// TestNoRoomToWrite: without room for the new text the old one stays, and nothing else is left.
func TestNoRoomToWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "stave.conf")
	if err := os.WriteFile(path, []byte(settings(0)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"0", "1", "4096", strconv.Itoa(len(settings(0)))} {
		cmd, out := start(t, path, room)
		line, _ := out.ReadString('\n')
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(line, "error: rewriting ") {
			t.Errorf("room for %s bytes: %q", room, line)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != settings(0) {
			t.Errorf("room for %s bytes: the file has changed: %d bytes, %v", room, len(text), err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("room for %s bytes: %v are left, %v", room, entries, err)
		}
	}
}

// TestChangedMeanwhile: what somebody else has written after the file was read is not lost, and a link that leads
// elsewhere, or nowhere, by then is not followed to what was never read.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "stave.conf"), filepath.Join(dir, "other")
	link := filepath.Join(dir, "link.conf")
	for name, change := range map[string]func() error{
		"another text":       func() error { return os.WriteFile(path, []byte("port 9\n"), 0o600) },
		"renamed over":       func() error { return os.Rename(other, path) },
		"the link redirects": func() error { return errors.Join(os.Remove(link), os.Symlink("other", link)) },
		"the link dangles":   func() error { return errors.Join(os.Remove(link), os.Symlink("none", link)) },
		"a loop":             func() error { return errors.Join(os.Remove(link), os.Symlink("link.conf", link)) },
		"a directory":        func() error { return errors.Join(os.Remove(link), os.Mkdir(link, 0o700)) },
		"gone":               func() error { return os.Remove(path) },
	} {
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, []byte("port 1\n"), 0o600), os.WriteFile(other, []byte("port 2\n"), 0o600), os.Symlink("stave.conf", link)); err != nil {
			t.Fatal(err)
		}
		f, err := conf.Read(link)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		before := texts(path, other)
		f.Set([]string{"port"}, [][]string{{"3"}})
		if err := f.Write(); err == nil {
			t.Errorf("%s: the file was written", name)
		}
		if after := texts(path, other); after != before {
			t.Errorf("%s: the files were %q and are %q", name, before, after)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || left != nil {
			t.Errorf("%s: %q are left, %v", name, left, err)
		}
	}
}

// texts are those of some files, or what is wrong with them.
func texts(paths ...string) string {
	var all []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			text = []byte("gone")
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "|")
}

// TestTooLongToReadAgain: what could not be read at the next start is not written.
func TestTooLongToReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(path, []byte("# "+strings.Repeat("x", conf.MaxFile-10)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := conf.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Set([]string{"requirepass"}, [][]string{{strings.Repeat("p", 100)}})
	if err := f.Write(); err == nil || !strings.Contains(err.Error(), "could not be read again") {
		t.Errorf("it was written: %v", err)
	}
	if _, err := conf.Read(path); err != nil {
		t.Error(err)
	}
}
