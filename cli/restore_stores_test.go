//go:build unix

package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeArchivedStores: of an archive with two stores none is restored unless --store names it, with the id that --list
// shows.
func TestServeArchivedStores(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "archive")
	for _, store := range []string{"a", "b", "a"} {
		p := startProgram(t, "--dir", filepath.Join(dir, store), "--addr", "127.0.0.1:0", "--archive", archive)
		p.does("SET", store, "1")
		p.archivedAll()
		p.kill()
	}
	stdout, stderr, status := run("", "restore", "--archive", archive, "--list", "--json")
	var ids []string
	for line := range strings.Lines(stdout) {
		var span struct {
			ID string `json:"store_id"`
		}
		if err := json.Unmarshal([]byte(line), &span); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, span.ID)
	}
	if status != 0 || len(ids) != 2 || ids[0] == ids[1] {
		t.Fatalf("status %d, %s%s", status, stdout, stderr)
	}
	if stdout, _, _ := run("", "restore", "--archive", archive, "--list"); !strings.Contains(stdout, ids[0]) || !strings.Contains(stdout, ids[1]) {
		t.Errorf("%s", stdout)
	}
	for _, args := range [][]string{nil, {"--store", "x"}, {"--to", "1"}} {
		args = append(append([]string{"restore", "--archive", archive}, args...), filepath.Join(dir, "new"))
		_, stderr, status := run("", args...)
		if status != 1 || !strings.Contains(stderr, ids[0]) || !strings.Contains(stderr, ids[1]) || !strings.Contains(stderr, "--store") {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	for i, key := range []string{"a", "b"} {
		to := filepath.Join(dir, "new-"+key)
		if _, stderr, status := run("", "restore", "--archive", archive, "--store", ids[i], to); status != 0 {
			t.Fatalf("%s", stderr)
		}
		if stdout, _, _ := run("", "exec", "--dir", to, "KEYS", "*"); !strings.Contains(stdout, key) {
			t.Errorf("%s: %s", key, stdout)
		}
	}
	if _, _, status := run("", "restore", "--store", ids[0], "backup", filepath.Join(dir, "new")); status != 2 {
		t.Errorf("--store of a backup: status %d", status)
	}
}
