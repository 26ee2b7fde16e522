//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRepairThatFails: what a repair that fails leaves behind is in the error, by the path that was given, with what to
// do.
func TestRepairThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	want(t, "OK\n", "", 0, "", "exec", "--dir", "store", "SET", "key", strings.Repeat("v", 100_000))
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limit := old
	limit.Cur = 50_000
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil { // The Go runtime ignores the SIGXFSZ that comes with it.
		t.Skip(err)
	}
	_, stderr, status := run("", "repair", "store", "--out", "new/")
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if status != 1 || !strings.Contains(stderr, "file too large") || !strings.HasSuffix(stderr, "; new.partial is incomplete: delete it, and repair again when that is put right\n") {
		t.Errorf("status %d, %s", status, stderr)
	}
	if left, err := filepath.Glob("new*"); err != nil || len(left) != 1 {
		t.Errorf("left %q, %v", left, err)
	}
	if err := os.RemoveAll("new.partial"); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run("", "repair", "store", "--out", "new/")
	if status != 0 {
		t.Errorf("status %d, %s%s", status, stdout, stderr)
	}

	// One that fails before it begins leaves nothing to delete.
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, status = run("", "repair", "store", "--out", "file/new")
	if status != 1 || stderr == "" || strings.Contains(stderr, "partial is incomplete") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
