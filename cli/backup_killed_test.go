//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
)

// killedAfter runs the program as a process, and kills it after some time unless it has ended.
func killedAfter(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STAVE_TEST_AS_PROGRAM=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // which says that it was killed
}

// killings kills a command at moments that are spread over what it takes, and calls look after each.
func killings(t *testing.T, rng *rand.Rand, args []string, look func()) {
	t.Helper()
	began := time.Now()
	killedAfter(t, 0, args...)
	least := time.Since(began) / 2 // until there is a process
	began = time.Now()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STAVE_TEST_AS_PROGRAM=1")
	_ = cmd.Run() // a repair that has lost something has a status
	took := time.Since(began)
	look()
	for range budget.Rounds(t, 4, 60) {
		killedAfter(t, least+time.Duration(rng.Int64N(int64(took))), args...)
		look()
	}
}

// bigStore is a store of many segments.
func bigStore(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s, err := db.Open(dir, &db.Options{SegmentSize: 256 << 10, NoMerge: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4000 {
		if err := s.String(fmt.Sprintf("key%d", i%3000)).Put(bytes.Repeat([]byte{'a' + byte(i%26)}, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// exported is all that a store holds.
func exported(t *testing.T, dir string) string {
	t.Helper()
	stdout, stderr, status := run("", "export", "--dir", dir, "--sort", "--quiet")
	if status != 0 {
		t.Fatalf("export %s: status %d, %s", dir, status, stderr)
	}
	return stdout
}

// otherDisk is a directory on another file system than those of the test, where files cannot be linked but are copied; "" if there
// is none.
func otherDisk(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "stave-test")
	if err != nil {
		return ""
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestBackupKilled kills backups and restores at random moments: there is a whole copy or none, the store is as it was, and the
// next attempt succeeds without anything to be done before.
func TestBackupKilled(t *testing.T) {
	dir := bigStore(t)
	want, was, rng := exported(t, dir), files(t, dir), chance.Rand(t)
	places := []string{t.TempDir()}
	if other := otherDisk(t); other != "" {
		places = append(places, other)
	}
	for _, place := range places {
		earlier := filepath.Join(place, "earlier")
		if _, stderr, status := run("", "backup", dir, earlier, "--quiet"); status != 0 {
			t.Fatal(stderr)
		}
		out := filepath.Join(place, "new")
		for _, args := range [][]string{{"backup", dir, out, "--quiet"}, {"backup", dir, out, "--incremental", earlier, "--quiet"}, {"restore", dir, out, "--quiet"}} {
			made, missing := 0, 0
			killings(t, rng, args, func() {
				if _, err := os.Lstat(out); err != nil {
					missing++
					if missing%3 != 0 { // remains are no obstacle to the next attempt, which is killed as well
						return
					}
					if stdout, stderr, status := run("", args...); status != 0 {
						t.Fatalf("%v once more: status %d, %s%s", args, status, stdout, stderr)
					}
				} else {
					made++
				}
				if stdout, stderr, status := run("", "check", out); status != 0 || !strings.HasPrefix(stdout, "sound") {
					t.Fatalf("check of %v: status %d, %s%s", args, status, stdout, stderr)
				}
				if exported(t, out) != want {
					t.Fatalf("%v: the copy holds something else", args)
				}
				if err := os.RemoveAll(out); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("%v: %d made, %d killed before", args, made, missing)
			_ = os.RemoveAll(out + ".partial")
		}
	}
	if now := files(t, dir); fmt.Sprint(now) != fmt.Sprint(was) {
		t.Error("the store has changed")
	}
}
