//go:build linux

package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// TestProgressAndCtrlC runs the commands that read a whole store on a terminal: they show how far they are, and at
// Ctrl-C they end with status 130 and a sentence, and leave nothing that looks like a result. A store that is read
// before anything is shown is made larger.
func TestProgressAndCtrlC(t *testing.T) {
	dir := t.TempDir()
	data, out := filepath.Join(dir, "data"), filepath.Join(dir, "out")
	store, err := db.Open(data, &db.Options{Sync: db.SyncNone, SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	keys := 0
	grow := func() {
		t.Helper()
		store, err := db.Open(data, &db.Options{Sync: db.SyncNone, SegmentSize: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 + keys/20_000*20 {
			err := store.Update(func(tx *db.Tx) error {
				for range 1000 {
					if err := tx.String(fmt.Sprint("key", keys)).Put([]byte("a value of some bytes")); err != nil {
						return err
					}
					keys++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	grow()
	began := time.Now()
	for _, c := range []struct {
		args []string
		bars []string
	}{
		{[]string{"check", data}, []string{"open [", "check ["}},
		{[]string{"repair", data, "--out", out}, []string{"repair ["}},
		{[]string{"restore", data, out}, []string{"open [", "check ["}},
	} {
		for _, bar := range c.bars {
			for !interruptedAt(t, bar, c.args...) {
				if keys > 10_000_000 {
					t.Fatalf("stave %s shows no %q, or is not interrupted at it, with %d keys", strings.Join(c.args, " "), bar, keys)
				}
				os.RemoveAll(out)
				grow()
			}
			if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stave %s, interrupted: there is a result (%v)", strings.Join(c.args, " "), err)
			}
			os.RemoveAll(out + ".partial")
		}
	}
	t.Logf("%d keys, %v", keys, time.Since(began))
	if got, stderr, status := run("", "check", data); status != 0 {
		t.Errorf("the store: status %d, %s%s", status, got, stderr)
	}
}

// TestBackupShowsHowFar: a backup that takes long, here because its archive is read slowly, shows how much of it is
// done.
func TestBackupShowsHowFar(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	store, err := db.Open(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if err := store.String(fmt.Sprint("key", i)).Put(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := converseOn(t, 24, 80, w, nil, "backup", data, "-")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	shows := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return regexp.MustCompile(`copy \[#+\.+\] +[1-9]`).MatchString(s.text.String())
	}
	for buf := make([]byte, 8<<10); !shows(); time.Sleep(time.Millisecond) {
		if _, err := r.Read(buf); err != nil {
			t.Fatalf("%v; it showed %q", err, s.text.String())
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if got := s.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// interruptedAt runs a command on a terminal and interrupts it when it shows a bar. It reports whether that was before
// the command ended.
func interruptedAt(t *testing.T, bar string, args ...string) bool {
	t.Helper()
	s := converse(t, nil, args...)
	ended := make(chan error, 1)
	go func() { ended <- s.command.Wait() }()
	shown := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.text.String()
	}
	began := time.Now()
	for !strings.Contains(shown(), bar) {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("stave %s: %v\n%s", strings.Join(args, " "), err, shown())
			}
			return false
		case <-time.After(time.Millisecond):
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("stave %s goes on, and shows no %q", strings.Join(args, " "), bar)
		}
	}
	if err := s.command.Process.Signal(syscall.SIGINT); err != nil {
		return false
	}
	err := <-ended
	if err == nil {
		return false // it was at its end
	}
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT {
		return false // it had done its work, and no longer handled the signal; one that never does is found by the number of keys
	}
	if exit == nil || exit.ExitCode() != 130 {
		t.Errorf("stave %s: %v after Ctrl-C\n%s", strings.Join(args, " "), err, shown())
	}
	for began := time.Now(); !strings.Contains(shown(), "stave: interrupted"); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("stave %s, interrupted, says %q", strings.Join(args, " "), shown())
		}
	}
	return true
}
