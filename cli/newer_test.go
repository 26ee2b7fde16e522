package cli_test

import (
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
			"check DIR", "stats DIR", "repair DIR --out NEW", "backup --dir DIR NEW", "merge DIR", "exec --dir DIR DBSIZE", "export --dir DIR",
		} {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "store"), os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			line := strings.NewReplacer("DIR", filepath.Join(dir, "store"), "NEW", filepath.Join(dir, "new")).Replace(command)
			var out, errs bytes.Buffer
			status := cli.Run(append([]string{"stave"}, strings.Fields(line)...), strings.NewReader(""), &out, &errs)
			if status != 3 || !strings.Contains(errs.String(), "format version not supported") || strings.Contains(errs.String(), "corrupt") {
				t.Errorf("%s: stave %s: status %d\n%s%s", filepath.Base(golden), command, status, out.String(), errs.String())
			}
		}
	}
}
