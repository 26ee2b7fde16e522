//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
)

// TestRepairKilled kills repairs at random moments: the damaged store is as it was, the new one is whole or not there, and the next
// attempt repairs as much, once what the killed one has left is deleted, as its error says.
func TestRepairKilled(t *testing.T) {
	dir := bigStore(t)
	rewrite(t, filepath.Join(dir, "000000030.data"), func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
	out := filepath.Join(t.TempDir(), "new")
	args := []string{"repair", dir, "--out", out, "--quiet"}
	repaired := func() {
		t.Helper()
		if stdout, stderr, status := run("", args...); status != 4 || strings.Count(stdout, "\n") != 1 {
			t.Fatalf("repair: status %d, %s%s", status, stdout, stderr)
		}
	}
	repaired()
	want, was := exported(t, out), files(t, dir)
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	made, left := 0, 0
	killings(t, chance.Rand(t), args, func() {
		if _, err := os.Lstat(out); err == nil {
			made++
		} else {
			if _, err := os.Lstat(out + ".partial"); err == nil {
				left++
				stdout, stderr, status := run("", args...)
				if status != 1 || !strings.Contains(stderr, out+".partial is there, from a repair that did not end: delete it") {
					t.Fatalf("repair after one that was killed: status %d, %s%s", status, stdout, stderr)
				}
				if err := os.RemoveAll(out + ".partial"); err != nil {
					t.Fatal(err)
				}
			}
			repaired()
		}
		if stdout, stderr, status := run("", "check", out); status != 0 || exported(t, out) != want {
			t.Fatalf("check of the repaired store: status %d, %s%s", status, stdout, stderr)
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d made, %d left something", made, left)
	if now := files(t, dir); fmt.Sprint(now) != fmt.Sprint(was) {
		t.Error("the damaged store has changed")
	}
}
