package cli_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli"
)

// Every tool refuses a store of a newer version, and says so.
func TestNewerVersions(t *testing.T) {
	goldens, err := filepath.Glob("../bitcask/testdata/newer-*")
	if err != nil || len(goldens) == 0 {
		t.Fatal(goldens, err)
	}
	for _, golden := range goldens {
		for _, command := range []string{
			"check DIR", "check DIR --json", "stats DIR", "stats DIR --watch --count 1", "inspect DIR", "repair DIR --out NEW", "backup --dir DIR NEW", "backup --dir DIR -",
			"restore DIR NEW", "restore ARCHIVE NEW", "merge DIR", "merge DIR --dry-run", "exec --dir DIR DBSIZE", "exec --dir DIR SET k v", "exec --dir DIR --scan",
			"exec --dir DIR --pipe", "shell DIR", "shell DIR --read-only", "export --dir DIR", "import --dir DIR -", "tail DIR --since 0", "serve --dir DIR --addr 127.0.0.1:0",
			"serve --dir DIR --addr 127.0.0.1:0 --follow", "serve --dir DIR --addr 127.0.0.1:0 --read-damaged",
		} {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "store"), os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(dir, "archive.tar")
			if err := os.WriteFile(archive, tarOf(t, golden), 0o600); err != nil {
				t.Fatal(err)
			}
			line := strings.NewReplacer("DIR", filepath.Join(dir, "store"), "NEW", filepath.Join(dir, "new"), "ARCHIVE", archive).Replace(command)
			var out, errs bytes.Buffer
			status := cli.Run(append([]string{"stave"}, strings.Fields(line)...), strings.NewReader(`{"key":"k","type":"string","value":"v"}`), &out, &errs)
			if status != 3 || !strings.Contains(errs.String(), "format version not supported") || strings.Contains(errs.String(), "corrupt") || strings.Contains(errs.String(), "stave repair") {
				t.Errorf("%s: stave %s: status %d\n%s%s", filepath.Base(golden), command, status, out.String(), errs.String())
			}
			if left, err := filepath.Glob(filepath.Join(dir, "new*")); err != nil || len(left) > 0 {
				t.Errorf("%s: stave %s: left %v, %v", filepath.Base(golden), command, left, err)
			}
		}
	}
}

// tarOf is an archive of the files of a directory.
func tarOf(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
