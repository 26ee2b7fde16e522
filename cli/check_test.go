//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckFindsWhatAMergeHasUndone: testdata/deleted-consumer was written by a build that removed a consumer with one
// tombstone, and merged the segment in which that consumer had claimed an entry. The INDEX has what the store held, the
// log brings the entry back. A merge of all segments mends it as long as there is the INDEX.
func TestCheckFindsWhatAMergeHasUndone(t *testing.T) {
	copied := func(without ...string) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/deleted-consumer")); err != nil {
			t.Fatal(err)
		}
		for _, name := range without {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	wants := func(want int, text string, args ...string) {
		t.Helper()
		if stdout, stderr, status := run("", args...); status != want || !strings.Contains(stdout+stderr, text) {
			t.Errorf("%q: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
	dir := copied()
	wants(4, `key "jobs": a replay of the log brings back the pending entry 1-0 of a group, which is gone`, "check", dir)
	wants(0, "reclaimed", "merge", dir, "--all")
	wants(0, "sound", "check", dir, "--replay")
	wants(0, "[]", "exec", "--dir", dir, "--json", "XPENDING", "jobs", "workers", "-", "+", "10", "bob")
	wants(0, "1", "exec", "--dir", dir, "XPENDING", "jobs", "workers")

	replayed := copied("INDEX")
	wants(0, "sound", "check", replayed)
	wants(1, "there is no INDEX that fits the log", "check", replayed, "--replay")
	wants(4, "brings back", "check", copied(), "--replay", "--quiet")
}
