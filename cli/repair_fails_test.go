//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRepairThatFails: what a repair that fails leaves behind is in the error, by the path that was given, with what to
// do.
func TestRepairThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	want(t, "OK\n", "", 0, "", "exec", "--dir", "store", "SET", "key", strings.Repeat("v", 100_000))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A limit of this process would hold for the test's own files, too.
	limited := exec.Command("sh", "-c", `ulimit -f 96 && exec "$0" "$@"`, self, "repair", "store", "--out", "new/")
	limited.Env = append(os.Environ(), asProgram+"=1")
	output, err := limited.CombinedOutput()
	if limited.ProcessState == nil {
		t.Fatal(err)
	}
	stderr, status := string(output), limited.ProcessState.ExitCode()
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
