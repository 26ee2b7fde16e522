//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
)

// killedCopy is what a process that was killed in the middle of its last write leaves.
func killedCopy(t *testing.T) (dir string) {
	t.Helper()
	live := filepath.Join(t.TempDir(), "live")
	s, err := db.Open(live, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := s.String(fmt.Sprintf("key%d", i)).Put([]byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Without the zeros that may have been reserved, so that the file ends with the last commit.
	rewrite(t, filepath.Join(dir, "000000001.data"), func(b []byte) []byte { return bytes.TrimRight(b, "\x00") })
	return dir
}

func rewrite(t *testing.T, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every command that opens a store for writing reports what recovery has truncated, and where it is now; check lists
// it, repair reads it.
func TestTruncatedIsTold(t *testing.T) {
	for _, command := range []string{"exec --dir DIR DEL none", "shell --dir DIR", "merge DIR --quiet", "import --dir DIR -"} {
		dir := killedCopy(t)
		rewrite(t, filepath.Join(dir, "000000001.data"), func(b []byte) []byte { return b[:len(b)-1] })
		stdout, stderr, status := run("", strings.Fields(strings.ReplaceAll(command, "DIR", dir))...)
		if status != 0 || !strings.Contains(stderr, "000000001.data: ") || !strings.Contains(stderr, "kept in 000000001.torn-") {
			t.Errorf("%s: status %d\n%s%s", command, status, stdout, stderr)
		}
		if _, stderr, _ := run("", "exec", "--dir", dir, "DEL", "none"); stderr != "" {
			t.Errorf("%s: told once more: %s", command, stderr)
		}
		stdout, stderr, status = run("", "check", dir)
		if status != 0 || !strings.HasPrefix(stdout, "sound") || !strings.Contains(stdout, "\n000000001.torn-") {
			t.Errorf("check: status %d\n%s%s", status, stdout, stderr)
		}
		stdout, stderr, status = run("", "repair", dir, "--out", dir+".new")
		if status != 0 || !strings.Contains(stdout, "from 1 file of what openings had truncated") {
			t.Errorf("repair: status %d\n%s%s", status, stdout, stderr)
		}
	}
}

// One flipped bit in the log or the manifest of a killed store is damage to every command; none of them makes it worse,
// and a repair has all the rest.
func TestFlippedBitIsDamage(t *testing.T) {
	for file, lost := range map[string]string{"000000001.data": "lost 1", "MANIFEST": "lost 0"} {
		dir := killedCopy(t)
		var was []byte
		rewrite(t, filepath.Join(dir, file), func(b []byte) []byte {
			b[len(b)-1] ^= 1
			was = slices.Clone(b)
			return b
		})
		for _, command := range []string{"exec --dir DIR DBSIZE", "merge DIR", "stats DIR", "export --dir DIR", "import --dir DIR -", "check DIR"} {
			stdout, stderr, status := run("", strings.Fields(strings.ReplaceAll(command, "DIR", dir))...)
			want := 3
			if command == "check DIR" {
				want = 4
			}
			if status != want || !strings.Contains(stdout+stderr, file) {
				t.Errorf("%s: %s: status %d, want %d\n%s%s", file, command, status, want, stdout, stderr)
			}
		}
		if now, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !slices.Equal(now, was) {
			t.Errorf("%s has changed, from %d bytes to %d, %v", file, len(was), len(now), err)
		}
		stdout, stderr, _ := run("", "repair", dir, "--out", dir+".new")
		if !strings.Contains(stdout, lost) {
			t.Errorf("%s: repair: %s%s", file, stdout, stderr)
		}
		if stdout, _, _ := run("", "exec", "--dir", dir+".new", "DBSIZE"); stdout != map[string]string{"lost 1": "99\n", "lost 0": "100\n"}[lost] {
			t.Errorf("%s: repaired: %s keys", file, stdout)
		}
	}
}
